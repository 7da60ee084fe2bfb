"""Where this user's files go: a cache that can be made again, and data that cannot. No torch.

Each is a folder of the system's own choice until its environment variable names another.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from inference.records.errors import InputError

APP_NAME = "token-by-token"
CACHE_VARIABLE = "TOKEN_BY_TOKEN_CACHE"
DATA_VARIABLE = "TOKEN_BY_TOKEN_DATA"
PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600
OTHERS = 0o077


def cache_folder(part: str) -> Path:
    """Return where one part of the cache is, there or not; ``TOKEN_BY_TOKEN_CACHE`` moves all.

    Raises:
        InputError: The variable is not set and nothing here knows the system's choice.
    """
    return (_named_by(CACHE_VARIABLE) or _systems_choice("user_cache_path", CACHE_VARIABLE)) / part


def data_folder() -> Path:
    """Return where this user's data is, there or not; ``TOKEN_BY_TOKEN_DATA`` moves it.

    Raises:
        InputError: The variable is not set and nothing here knows the system's choice.
    """
    return _named_by(DATA_VARIABLE) or _systems_choice("user_data_path", DATA_VARIABLE)


def private_folder(folder: Path) -> None:
    """Make a folder that nobody but the user may enter, or make that of one that is there.

    Raises:
        OSError: It cannot be made.
    """
    folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    with suppress(OSError):  # another user's, or a file system without modes
        if folder.stat().st_mode & OTHERS:
            folder.chmod(PRIVATE_FOLDER)


def private_opener(path: str, flags: int) -> int:
    """Open a file for ``open``; one that is made here nobody but the user may read."""
    return os.open(path, flags, PRIVATE_FILE)


def _named_by(variable: str) -> Path | None:
    folder = os.environ.get(variable)
    return Path(folder).expanduser() if folder else None


def _systems_choice(kind: str, variable: str) -> Path:
    # A GPU machine may have torch and little else.
    try:
        import platformdirs  # noqa: PLC0415  see above
    except ImportError as error:
        msg = f"there is no folder to keep files in: set {variable}, or install platformdirs"
        raise InputError(msg) from error
    return getattr(platformdirs, kind)(APP_NAME)
