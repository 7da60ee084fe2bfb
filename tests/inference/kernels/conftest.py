"""The kernels as compiled here, in two widths of vectors, and with changes to their source."""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from inference.kernels.build import compiled, format_options, kernel_library, opened
from inference.kernels.compiler import OPTIONS, SOURCE, source_parts
from inference.kernels.unavailable import UnavailableError
from inference.records.block_formats import BlockFormat

HASWELL = tuple("-march=haswell" if one == "-march=native" else one for one in OPTIONS)
QUICK = tuple("-O1" if one == "-O3" else one for one in OPTIONS)

WIDTHS = {"widest": OPTIONS, "avx2": HASWELL}
SIXTEEN_BITS = {"float16": torch.float16, "bfloat16": torch.bfloat16}
BLOCKS = tuple(BlockFormat)

# From a file's name, words of it and what stands there instead to a compiled library; and, where it
# is not float32, from the format of its numbers.
CompileChanged = Callable[..., Path]


@pytest.fixture(scope="session")
def library() -> ctypes.CDLL:
    try:
        return kernel_library()
    except UnavailableError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session", params=WIDTHS.values(), ids=list(WIDTHS))
def variant(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> ctypes.CDLL:
    return opened(compiled(tmp_path_factory.mktemp("kernels"), request.param))


@pytest.fixture(
    scope="session",
    params=[(numbers, width) for numbers in SIXTEEN_BITS for width in WIDTHS],
    ids="-".join,
)
def half(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[ctypes.CDLL, torch.dtype]:
    """The kernels for one format of 16 bits in one width of vectors, and that format."""
    numbers, width = request.param
    return compiled_for(numbers, width, tmp_path_factory), SIXTEEN_BITS[numbers]


@pytest.fixture(
    scope="session",
    params=[(numbers, width) for numbers in BLOCKS for width in WIDTHS],
    ids="-".join,
)
def block_variant(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[ctypes.CDLL, BlockFormat]:
    """The kernels for one format of blocks in one width of vectors, and that format."""
    numbers, width = request.param
    return compiled_for(numbers, width, tmp_path_factory), numbers


def compiled_for(numbers: str, width: str, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Return the kernels for a format: those that runs use, or quickly compiled narrower ones."""
    if width == "widest":
        return kernel_library(numbers)
    options = tuple("-O1" if one == "-O3" else one for one in format_options(numbers, HASWELL))
    return opened(compiled(tmp_path_factory.mktemp("kernels"), options), numbers)


@pytest.fixture
def compile_changed(tmp_path: Path) -> CompileChanged:
    """Return what compiles the kernels with one change to their source."""

    def compile_it(name: str, words: str, instead: str, numbers: str = "float32") -> Path:
        for part in source_parts(SOURCE):
            shutil.copy(part, tmp_path)
        part = tmp_path / name
        code = part.read_text()
        assert words in code
        part.write_text(code.replace(words, instead))
        options = format_options(numbers, QUICK)
        return compiled(tmp_path / "library", options, tmp_path / SOURCE.name)

    return compile_it
