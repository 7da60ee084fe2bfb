"""Where a model goes, on machines with any number of GPUs, none of which is needed here."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from transformers import PreTrainedModel

from inference.models.devices import (
    available_devices,
    choice_note,
    choose_device,
    describe_device,
    device_options,
    gpu_id,
    processor_name,
)
from inference.models.placement import check_on_gpus, free_gpu_bytes, placement
from inference.records.block_formats import BlockFormat
from inference.records.errors import InputError, OutOfMemoryError

GPU = torch.device("cuda", 0)
CPU = torch.device("cpu")
GIB = 2**30


def test_a_model_that_fits_one_gpu_stays_on_it() -> None:
    assert placement("m", 10 * GIB, GPU, (24 * GIB, 24 * GIB)) == GPU


def test_a_model_larger_than_one_gpu_is_spread_over_all() -> None:
    shares = placement("m", 30 * GIB, GPU, (24 * GIB, 20 * GIB))

    assert shares == {0: int(24 * GIB * 0.85), 1: int(20 * GIB * 0.85)}


def test_a_model_is_spread_when_that_is_asked_for() -> None:
    assert placement("m", GIB, GPU, (24 * GIB, 24 * GIB), is_spread=True) != GPU


def test_a_model_larger_than_all_gpus_is_refused_before_it_is_loaded() -> None:
    with pytest.raises(OutOfMemoryError) as refused:
        placement("owner/name", 50 * GIB, GPU, (24 * GIB, 24 * GIB))

    assert str(refused.value) == (
        "owner/name needs 50.0 GiB and 48.0 GiB of 2 GPUs are free; end other programs on it, or "
        "choose a smaller dtype or model"
    )


def test_a_model_larger_than_the_only_gpu_is_refused() -> None:
    with pytest.raises(OutOfMemoryError, match="of the GPU are free"):
        placement("m", 30 * GIB, GPU, (24 * GIB,))


def test_on_a_cpu_nothing_is_placed_anywhere_else() -> None:
    assert free_gpu_bytes("auto", CPU, GIB) == ()
    assert placement("m", 10**15, CPU, ()) == CPU


class Gpus:
    """Stands for torch.cuda's memory: 24 GiB free on each of two GPUs, and a reserve on the first.

    Source: torch 2.13, torch/cuda/memory.py: ``mem_get_info`` knows nothing of what torch holds.

    Attributes:
        asked: The GPUs that were asked, each of which gives memory to a process that asks.
    """

    def __init__(self) -> None:
        self.asked: list[int] = []

    def mem_get_info(self, number: int) -> tuple[int, int]:
        self.asked.append(number)
        return 24 * GIB, 32 * GIB

    def memory_snapshot(self) -> list[dict[str, Any]]:
        whole = {"device": 0, "total_size": 4 * GIB, "allocated_size": GIB}
        return [
            {**whole, "segment_pool_id": (0, 0)},
            {**whole, "segment_pool_id": (0, 1)},  # a recorded graph's own
            {**whole, "device": 1, "segment_pool_id": (0, 0)},
        ]

    def device_count(self) -> int:
        return 2


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Gpus:
    made = Gpus()
    for name in ("mem_get_info", "memory_snapshot", "device_count"):
        monkeypatch.setattr(torch.cuda, name, getattr(made, name))
    return made


def test_only_the_gpus_that_are_needed_are_asked(gpus: Gpus) -> None:
    assert free_gpu_bytes("auto", GPU, 20 * GIB) == (27 * GIB,)
    assert gpus.asked == [0]

    assert free_gpu_bytes("auto", GPU, 30 * GIB) == (27 * GIB, 27 * GIB)
    assert free_gpu_bytes("cuda:0", GPU, 30 * GIB) == (27 * GIB,)
    assert free_gpu_bytes("cuda:all", GPU, GIB) == (27 * GIB, 27 * GIB)


def test_layers_that_would_be_read_from_the_disk_are_refused() -> None:
    spread = SimpleNamespace(hf_device_map={"embed": 0, "layers.0": 1, "layers.1": "disk"})

    with pytest.raises(OutOfMemoryError, match="m does not fit the GPUs: 1 of its parts"):
        check_on_gpus("m", cast("PreTrainedModel", spread))
    for whole in ({"": "cpu"}, {"embed": 0, "layers.0": 1}, None):
        check_on_gpus("m", cast("PreTrainedModel", SimpleNamespace(hf_device_map=whole)))


def test_a_mac_is_told_by_its_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    """``platform`` knows every one of them as arm, so none ever matched its data sheet."""
    asked: list[tuple[str, ...]] = []

    def run(command: tuple[str, ...], **_options: object) -> SimpleNamespace:
        asked.append(command)
        return SimpleNamespace(stdout="Apple M3 Max\n")

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(subprocess, "run", run)

    assert processor_name() == "Apple M3 Max"
    assert asked == [("/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string")]


def test_an_apple_gpu_is_named_after_its_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    chip = SimpleNamespace(stdout="Apple M3 Max\n")
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(subprocess, "run", lambda *_args, **_options: chip)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)

    labels = {option.name: option.label for option in device_options()}

    assert labels["mps"] == "mps \u00b7 GPU of Apple M3 Max"


def test_what_was_asked_for_needs_no_other_reason() -> None:
    note = choice_note(("cuda:0", "float16"), GPU, torch.float16)

    assert note == "Runs on cuda:0 (as asked) in float16 (as asked)."


@pytest.mark.parametrize("blocks", list(BlockFormat))
def test_weights_in_blocks_compute_in_float32_on_a_cpu(blocks: BlockFormat) -> None:
    note = choice_note(("cpu", blocks), CPU, torch.float32)

    assert choose_device("cpu", blocks) == (CPU, torch.float32)
    assert describe_device(CPU, torch.float32, blocks).dtype == blocks
    assert note == f"Runs on cpu (as asked) in {blocks} (as asked)."


def test_weights_in_blocks_are_refused_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)

    with pytest.raises(InputError, match="q8_0 runs on a CPU only here; choose the device cpu"):
        choose_device("mps", "q8_0")


def test_a_format_that_nobody_has_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"no dtype 'q5_k'; use .*, q8_0, q4_0, q4_1"):
        choose_device("cpu", "q5_k")


def test_auto_says_why_it_took_the_cpu() -> None:
    note = choice_note(("auto", "auto"), CPU, torch.float32)

    assert note == "Runs on cpu (torch finds no GPU here) in float32 (the default there)."


def test_every_device_has_a_name_that_people_know() -> None:
    options = device_options()

    assert tuple(option.name for option in options) == available_devices()
    assert all(option.label.startswith(option.name) for option in options)


def test_a_cpu_is_no_gpu_of_the_driver() -> None:
    assert gpu_id(CPU) is None


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_driver_knows_the_gpu_that_torch_runs_on() -> None:
    from inference.process.nvml import GpuCounters  # noqa: PLC0415  asks a driver

    counters = GpuCounters(gpu_id(GPU) or 0)

    assert counters.is_found, counters.reasons
    counters.close()
