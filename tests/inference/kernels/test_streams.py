"""A read of memory as weights are read: it takes all of it, by every thread."""

from __future__ import annotations

import ctypes

import pytest
import torch

from inference.kernels import streams
from inference.kernels.build import opened
from inference.kernels.streams import (
    CHUNK_FLOATS,
    read_streams,
    stream_library,
    streamed_bytes,
)
from inference.kernels.unavailable import UnavailableError
from tests.inference.kernels.conftest import CompileChanged

pytestmark = pytest.mark.usefixtures("library")


@pytest.mark.parametrize("chunks", [1, 2, 7])
def test_every_float_of_the_whole_chunks_is_read_once(variant: ctypes.CDLL, chunks: int) -> None:
    generator = torch.Generator().manual_seed(chunks)
    data = torch.rand(chunks * CHUNK_FLOATS + 3, generator=generator)

    read = read_streams(variant, data)

    assert read == pytest.approx(float(data[: chunks * CHUNK_FLOATS].double().sum()), rel=1e-5)


def test_less_than_a_chunk_is_not_read(variant: ctypes.CDLL) -> None:
    assert read_streams(variant, torch.ones(CHUNK_FLOATS - 1)) == 0.0
    assert streamed_bytes(4 * CHUNK_FLOATS - 1) == 0
    assert streamed_bytes(9 * CHUNK_FLOATS) == 8 * CHUNK_FLOATS


def test_the_read_of_this_machine_is_used() -> None:
    assert stream_library(torch.device("cpu")) is not None


def test_another_device_has_no_such_read() -> None:
    assert stream_library(torch.device("meta")) is None


def test_a_read_that_leaves_something_out_is_not_used(
    compile_changed: CompileChanged, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = compile_changed("kernels_stream.h", "r < ROW_BLOCK; r++) sum +=", "r < 3; r++) sum +=")
    monkeypatch.setattr(streams, "kernel_library", lambda: opened(path))

    assert stream_library(torch.device("cpu")) is None


def test_without_kernels_there_is_no_such_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_here() -> ctypes.CDLL:
        msg = "no C compiler (gcc) is installed"
        raise UnavailableError(msg)

    monkeypatch.setattr(streams, "kernel_library", none_here)

    assert stream_library(torch.device("cpu")) is None
