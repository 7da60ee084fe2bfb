"""What holds of roofs on a GPU, shown without one: room, the size of reads, and TF32."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path

import pytest
import torch

from inference.calibration.ceilings import RoofPlan, measure_ceilings
from inference.calibration.ceilings_store import ceilings_json
from inference.calibration.device_reads import device_read_sizes, short_read_note
from inference.engine.float32_products import exact_float32, is_tf32_on
from inference.models.memory_errors import is_out_of_memory
from inference.records.errors import OutOfMemoryError
from inference.records.rooflines import MeasuredCeilings
from tests.doubles import ScriptedClock, ScriptedDelays

ROOT = Path(__file__).resolve().parents[3]
CPU = torch.device("cpu")
MIB = 1 << 20
CUDA_ERROR = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 512.00 MiB.")
# As aten/src/ATen/mps/MPSAllocator.mm words it.
MPS_ERROR = RuntimeError("MPS backend out of memory (MPS allocated: 15.90 GB, other: 1.1 MB).")


class FullDevice(ScriptedClock):
    """A clock of a device on which whatever is told of with some words finds no memory."""

    def __init__(self, words: str, error: Exception) -> None:
        super().__init__(repeat(0.006))  # far from the budget of all sweeps
        self._words = words
        self._error: Exception = error
        self._is_full = False

    def told(self, _ratio: float, text: str) -> None:
        """Take what is measured next."""
        self._is_full = self._words in text

    def start_timing(self) -> None:
        """Begin a timing, for which there may be no room."""
        if self._is_full:
            raise self._error
        super().start_timing()


def measured(device: FullDevice) -> MeasuredCeilings | None:
    plan = RoofPlan(
        read_bytes=(MIB, 2 * MIB), orders=(8, 16, 32), clock=device, delays=ScriptedDelays
    )
    return measure_ceilings(CPU, torch.float32, device.told, plan=plan)


@pytest.mark.parametrize("error", [CUDA_ERROR, MPS_ERROR], ids=["CUDA", "MPS"])
def test_smaller_products_are_kept_where_a_larger_one_has_no_room(error: Exception) -> None:
    """The roofs used to be lost with the largest order, and MPS's error was not known as one."""
    result = measured(FullDevice("order 16", error))

    assert result is not None
    assert [point.size for point in result.products] == [8]
    assert result.notes == ("no room for matrices of order 16",)
    assert result.ceilings.method.endswith("; no room for matrices of order 16")
    assert json.loads(ceilings_json(result))["notes"] == list(result.notes)


def test_products_are_measured_where_only_a_larger_read_has_no_room() -> None:
    result = measured(FullDevice("reading 2 MiB", CUDA_ERROR))

    assert result is not None
    assert {point.size for point in result.reads} == {MIB}
    assert [point.size for point in result.products] == [8, 16, 32]
    assert result.notes == ("no room for reads of 2 MiB",)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [("reading 1 MiB", "no memory is left for reads of 1 MiB"), ("order 8", "matrices of order 8")],
)
def test_no_room_for_the_smallest_is_said_in_a_sentence(words: str, sentence: str) -> None:
    with pytest.raises(OutOfMemoryError, match=sentence):
        measured(FullDevice(words, MPS_ERROR))


def test_another_error_is_no_lack_of_memory() -> None:
    with pytest.raises(RuntimeError, match="illegal memory access"):
        measured(FullDevice("order 16", RuntimeError("CUDA error: an illegal memory access")))


@pytest.mark.parametrize(
    ("error", "is_memory"),
    [
        (CUDA_ERROR, True),
        (MPS_ERROR, True),
        (MemoryError(), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), True),
        (RuntimeError("CUDA error: device-side assert triggered"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_a_lack_of_memory_is_told_from_other_errors(error: Exception, is_memory: bool) -> None:
    assert is_out_of_memory(error) is is_memory


def test_reads_of_a_gpu_are_16_times_its_cache_and_a_gibibyte_at_least() -> None:
    """They began at four times the cache, of which it may hold a quarter."""
    assert device_read_sizes(60 * MIB, 100_000 * MIB) == (1024 * MIB, 1920 * MIB)
    assert device_read_sizes(126 * MIB, 100_000 * MIB) == (2016 * MIB, 4032 * MIB)
    assert device_read_sizes(4 * MIB, 100_000 * MIB) == (1024 * MIB,)
    assert short_read_note(1920 * MIB, 60 * MIB) == ""


def test_shorter_reads_for_lack_of_memory_are_said_to_be_short() -> None:
    [size] = device_read_sizes(60 * MIB, 2000 * MIB)

    assert size == 500 * MIB
    assert short_read_note(size, 60 * MIB).startswith("reads of 500 MiB at most, for lack of free")
    assert "where 1024 MiB leave" in short_read_note(size, 60 * MIB)


def test_a_full_gpu_is_said_in_a_sentence() -> None:
    with pytest.raises(OutOfMemoryError, match="400 MiB of the GPU's memory are free"):
        device_read_sizes(60 * MIB, 400 * MIB)


FOUND_ON = """
import torch
from inference.engine.float32_products import exact_float32, is_tf32_on
before = is_tf32_on()
with exact_float32() as was_on:
    inside = is_tf32_on()
print(before, was_on, inside, is_tf32_on(), torch.backends.cudnn.allow_tf32)
"""


def test_tf32_that_the_environment_switched_on_is_off_while_float32_is_measured() -> None:
    """It was taken to be off. NVIDIA's images switch it on this way."""
    environment = {**os.environ, "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1"}

    done = subprocess.run(
        [sys.executable, "-c", FOUND_ON],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.split() == ["True", "True", "False", "True", "True"]


def test_tf32_that_was_off_stays_off() -> None:
    with exact_float32() as was_on:
        assert not is_tf32_on()

    assert not was_on
    assert not is_tf32_on()


@pytest.fixture
def tf32() -> Iterator[None]:
    """Switch TF32 on for a test."""
    torch.backends.cuda.matmul.allow_tf32 = True
    yield
    torch.backends.cuda.matmul.allow_tf32 = False


@pytest.mark.usefixtures("tf32")
def test_float32_roofs_tell_that_tf32_was_on_and_leave_it_on() -> None:
    states: list[bool] = []

    class Watching(FullDevice):
        def start_timing(self) -> None:
            states.append(is_tf32_on())
            super().start_timing()

    result = measured(Watching("nothing", CUDA_ERROR))

    assert result is not None
    assert result.notes == ("TF32 was on and was set off for it",)
    assert not any(states)
    assert is_tf32_on()
