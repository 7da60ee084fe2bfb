"""The JavaScript that draws Vega charts in the browser, from vl-convert's own copy: no network.

Making it takes three seconds in which other threads stand still, so it is kept in the user's cache
folder, one file for each version of vl-convert.
"""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path

import vl_convert
from platformdirs import user_cache_path

APP_NAME = "token-by-token"


@cache
def bundle() -> bytes:
    """Return one module that sets ``window.vegaEmbed``; made once for each version."""
    return cached_bundle(user_cache_path(APP_NAME) / "js")


def cached_bundle(folder: Path) -> bytes:
    """Return the module from a folder, written there first where it is not; a full disk is no bar."""
    path = folder / f"vega-{vl_convert.__version__}.js"
    try:
        return path.read_bytes()
    except OSError:
        script = vl_convert.javascript_bundle().encode()
    try:
        _write_whole(path, script)
    except OSError:
        return script
    return script


def _write_whole(path: Path, content: bytes) -> None:
    """Write a file so that no reader ever sees a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    Path(name).replace(path)
