"""Files written in one stroke: a reader sees the old content or the whole of the new. No torch."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def replace_file(path: Path, content: bytes, *, is_private: bool = False) -> None:
    """Put new content in a file's place; its folder must exist.

    Args:
        path: A link there is replaced, not followed.
        content: All of it.
        is_private: Nobody but the user may read it.

    Raises:
        OSError: There is no room, or the folder may not be written; the old file stands.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    scratch = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        if not is_private:
            scratch.chmod(0o666 & ~_umask())  # mkstemp's file is for its owner alone
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
