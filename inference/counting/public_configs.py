"""The configs of public models that are built in, to count a model that is not here. No torch."""

from __future__ import annotations

import json
from pathlib import Path

from inference.records.errors import InputError

FOLDER = Path(__file__).parents[2] / "assets" / "configs"


def public_config_names() -> tuple[str, ...]:
    """Return the names of the built-in configs, sorted."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.json")))


def public_config(name: str) -> dict[str, object]:
    """Return a built-in config's fields, as its model's makers published them.

    Raises:
        InputError: If there is none of that name.
    """
    path = next((one for one in FOLDER.glob("*.json") if one.stem.lower() == name.lower()), None)
    if path is None:
        msg = f"there is no built-in config {name!r}; give a path or one of "
        msg += ", ".join(public_config_names())
        raise InputError(msg)
    return json.loads(path.read_text(encoding="utf-8"))
