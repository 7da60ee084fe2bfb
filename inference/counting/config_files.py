"""The fields of a published ``config.json``, read within bounds. No torch."""

from __future__ import annotations

import json
from pathlib import Path

from inference.records.errors import InputError

MOST_BYTES = 1 << 20


def read_config_fields(content: bytes, name: str = "the file") -> dict[str, object]:
    """Return the fields of a ``config.json``; UTF-8, UTF-16 and UTF-32, with a mark or without.

    Args:
        content: The whole file.
        name: What a refusal calls it.

    Raises:
        InputError: It is too large, or no JSON object.
    """
    if len(content) > MOST_BYTES:
        msg = f"{name} has {len(content):,} bytes; a config.json has a few thousand"
        raise InputError(msg)
    try:
        fields = json.loads(content)
    except RecursionError as error:
        msg = f"{name} is nested too deeply for a model's config; give one as published"
        raise InputError(msg) from error
    except (UnicodeDecodeError, ValueError) as error:
        msg = f"{name} is not JSON; give a config.json as published with a model"
        raise InputError(msg) from error
    if not isinstance(fields, dict):
        msg = f"{name} holds no JSON object; give a config.json as published with a model"
        raise InputError(msg)
    return fields


def config_file_fields(path: Path) -> dict[str, object]:
    """Return the fields of a ``config.json``, or of the one in a folder.

    Raises:
        InputError: It cannot be read, is too large, or no JSON object.
    """
    path = path / "config.json" if path.is_dir() else path
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
            if len(content) > MOST_BYTES:
                msg = f"{path} has more than {MOST_BYTES:,} bytes; a config.json has a few thousand"
                raise InputError(msg)
    except OSError as error:
        msg = f"cannot read {path}: {error.strerror}; give the path of a config.json"
        raise InputError(msg) from error
    return read_config_fields(content, str(path))
