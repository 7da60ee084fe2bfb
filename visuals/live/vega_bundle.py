"""The JavaScript that draws Vega charts in the browser, from vl-convert's own copy: no network.

Making it takes three seconds in which other threads stand still, so it is kept in the cache folder,
one file for each version of vl-convert.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

import vl_convert

from inference.storage.atomic_write import replace_file
from inference.storage.folders import cache_folder


@cache
def bundle() -> bytes:
    """Return one module that sets ``window.vegaEmbed``; made once for each version."""
    return cached_bundle(cache_folder("js"), make_bundle)


def cached_bundle(folder: Path, make: Callable[[], bytes]) -> bytes:
    """Return the module from a folder, made and kept there first where it is not.

    A folder that cannot be written is no bar: the module is then made again the next time.
    """
    path = folder / f"vega-{version('vl-convert-python')}.js"
    try:
        return path.read_bytes()
    except OSError:
        script = make()
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, script)
    return script


def make_bundle() -> bytes:
    """Return the module made by vl-convert."""
    return vl_convert.javascript_bundle().encode()  # pyright: ignore[reportCallIssue]  # has a default
