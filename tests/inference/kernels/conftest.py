"""The kernels as compiled here, in two widths of vectors, and with changes to their source."""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from inference.kernels.build import compiled, kernel_library, opened
from inference.kernels.compiler import OPTIONS, SOURCE, source_parts
from inference.kernels.unavailable import UnavailableError

HASWELL = tuple("-march=haswell" if one == "-march=native" else one for one in OPTIONS)
QUICK = tuple("-O1" if one == "-O3" else one for one in OPTIONS)

# From a file's name, words of it and what stands there instead to a compiled library.
CompileChanged = Callable[[str, str, str], Path]


@pytest.fixture(scope="session")
def library() -> ctypes.CDLL:
    try:
        return kernel_library()
    except UnavailableError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session", params=[OPTIONS, HASWELL], ids=["widest", "avx2"])
def variant(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> ctypes.CDLL:
    return opened(compiled(tmp_path_factory.mktemp("kernels"), request.param))


@pytest.fixture
def compile_changed(tmp_path: Path) -> CompileChanged:
    """Return what compiles the kernels with one change to their source."""

    def compile_it(name: str, words: str, instead: str) -> Path:
        for part in source_parts(SOURCE):
            shutil.copy(part, tmp_path)
        part = tmp_path / name
        code = part.read_text()
        assert words in code
        part.write_text(code.replace(words, instead))
        return compiled(tmp_path / "library", QUICK, tmp_path / SOURCE.name)

    return compile_it
