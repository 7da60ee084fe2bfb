"""Timing linear operations and attention apart, on the tiny model and a scripted time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from inference.engine.clock import HostClock, marks_for
from inference.engine.loop import Engine, GenerationLimits, GenerationOptions
from inference.engine.part_times import PartMeter, attention_modules, linear_modules
from inference.engine.row_backend import TorchRowBackend
from inference.kernels.build import UnavailableError, kernel_library
from inference.kernels.fused_layers import MOST_ROWS
from inference.kernels.install import fused_layers, install, remove
from inference.models.loading import load_model
from inference.records.options import CacheKind, Sampling
from inference.records.run import Request
from inference.records.steps import Part, Phase
from tests.families import kernel_model


class ScriptedMarks:
    """Marks one second apart."""

    def __init__(self) -> None:
        self.taken = 0

    def mark(self) -> float:
        self.taken += 1
        return float(self.taken)

    def seconds(self, start: float, end: float) -> float:
        return end - start


@pytest.fixture(scope="module")
def model(tiny_model_folder: Path) -> nn.Module:
    return load_model(str(tiny_model_folder), is_plain=True, on_stage=lambda _stage: None).model


def request(
    prompt: tuple[int, ...] = (3, 4, 5), new_tokens: int = 6, request_id: str = "r0"
) -> Request:
    return Request(
        request_id=request_id,
        prompt_text="",
        prompt_ids=prompt,
        max_new_tokens=new_tokens,
        sampling=Sampling(),
    )


def engine_on(model: nn.Module, meter: PartMeter | None) -> Engine:
    limits = GenerationLimits(eos_ids=frozenset(), context_tokens=None)
    return Engine(TorchRowBackend(model), HostClock(), limits, meter)


def hooks(model: nn.Module) -> int:
    return sum(len(part._forward_hooks) + len(part._forward_pre_hooks) for part in model.modules())


def test_the_linear_modules_are_all_projections_and_the_head(model: nn.Module) -> None:
    layers = model.config.num_hidden_layers

    assert len(linear_modules(model)) == 7 * layers + 1
    assert len(attention_modules(model)) == layers


def test_packed_experts_are_one_linear_part_and_nothing_inside_is_counted_again() -> None:
    class Experts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate_up = nn.Parameter(torch.zeros(4, 8, 16))
            self.inside = nn.Linear(2, 2)

    network = nn.Sequential(nn.Linear(4, 4), Experts())

    assert linear_modules(network) == (network[0], network[1])


def test_attention_is_what_its_module_takes_without_the_linear_parts_inside(
    model: nn.Module,
) -> None:
    meter = PartMeter(model, ScriptedMarks())
    meter.start(Phase.PREFILL, 1, CacheKind.DYNAMIC)
    model(input_ids=torch.tensor([[3, 4, 5]]))

    parts = {timed.part: timed.duration_s for timed in meter.stop()}

    layers = model.config.num_hidden_layers
    # Each linear part is one tick; a layer's attention is its own two marks around four of them.
    assert parts[Part.LINEAR] == 7 * layers + 1
    assert parts[Part.ATTENTION] == (9 - 4) * layers


def test_nothing_stays_hooked_after_a_step(model: nn.Module) -> None:
    meter = PartMeter(model, ScriptedMarks())
    meter.start(Phase.PREFILL, 1, CacheKind.DYNAMIC)
    assert hooks(model) > 0

    meter.stop()

    assert hooks(model) == 0


def test_a_layer_that_ran_as_one_piece_gives_no_parts(model: nn.Module) -> None:
    meter = PartMeter(model, ScriptedMarks())
    meter.start(Phase.PREFILL, 1, CacheKind.DYNAMIC)
    linear_modules(model)[-1](torch.zeros(1, model.config.hidden_size, dtype=model.dtype))

    assert meter.stop() == ()


def test_the_prefill_and_every_so_many_decode_steps_are_timed_and_marked(
    model: nn.Module,
) -> None:
    engine = engine_on(model, PartMeter(model, marks_for(torch.device("cpu"))))

    options = GenerationOptions(split_every=2)
    events = list(engine.generate([request()], seed=0, zero_s=0.0, options=options))

    assert [bool(event.parts) for event in events] == [True, False, True, False, True, False]
    assert [event.observed for event in events] == [bool(event.parts) for event in events]
    for event in events[::2]:
        assert sum(timed.duration_s for timed in event.parts) <= event.duration_s
    assert events[0].phase is Phase.PREFILL


def test_ttft_and_the_first_steps_are_left_alone_where_nobody_looks_at_parts(
    model: nn.Module,
) -> None:
    """Of a run that nobody looked into, no step was timed in parts."""
    engine = engine_on(model, PartMeter(model, marks_for(torch.device("cpu"))))

    options = GenerationOptions(split_every=4, is_prefill_split=False)
    events = list(engine.generate([request()], seed=0, zero_s=0.0, options=options))

    assert [bool(event.parts) for event in events] == [False, False, False, True, False, False]


def test_timing_parts_changes_no_token(model: nn.Module) -> None:
    meter = PartMeter(model, marks_for(torch.device("cpu")))
    plain = engine_on(model, None).generate([request()], seed=0, zero_s=0.0)
    split = engine_on(model, meter).generate(
        [request()], seed=0, zero_s=0.0, options=GenerationOptions(split_every=1)
    )

    chosen = [[event.rows[0].token_id for event in events] for events in (plain, split)]
    assert chosen[0] == chosen[1]


def test_splitting_can_begin_and_end_while_a_run_goes(model: nn.Module) -> None:
    engine = engine_on(model, PartMeter(model, marks_for(torch.device("cpu"))))
    run = engine.generate([request()], seed=0, zero_s=0.0)

    first = next(run)
    engine.split(1)
    second = next(run)
    engine.split(None)
    third = next(run)

    assert [bool(event.parts) for event in (first, second, third)] == [False, True, False]


def test_only_devices_whose_parts_can_be_timed_have_marks() -> None:
    assert marks_for(torch.device("mps")) is None
    assert marks_for(torch.device("cpu")) is not None


@pytest.fixture
def fused_model() -> Iterator[nn.Module]:
    try:
        kernel_library()
    except UnavailableError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
    made = kernel_model()
    assert install(made).layers == 3
    yield made
    remove(made)


def test_layers_that_run_as_one_call_are_timed_inside_it_and_stay_in_one_piece(
    fused_model: nn.Module,
) -> None:
    meter = PartMeter(fused_model, marks_for(torch.device("cpu")))
    fused = fused_layers(fused_model)

    events = list(
        engine_on(fused_model, meter).generate(
            [request()], seed=0, zero_s=0.0, options=GenerationOptions(split_every=1)
        )
    )

    assert fused is not None
    assert len(events) == 6
    for event in events:
        parts = {timed.part: timed.duration_s for timed in event.parts}
        assert set(parts) == {Part.LINEAR, Part.ATTENTION}
        assert 0 < sum(parts.values()) <= event.duration_s


def test_a_layer_that_somebody_looks_into_is_timed_with_the_others(
    fused_model: nn.Module,
) -> None:
    meter = PartMeter(fused_model, marks_for(torch.device("cpu")))
    handle = fused_layers(fused_model).modules[1].register_forward_hook(lambda *_given: None)

    events = list(
        engine_on(fused_model, meter).generate(
            [request()], seed=0, zero_s=0.0, options=GenerationOptions(split_every=1)
        )
    )
    handle.remove()

    assert [bool(event.parts) for event in events] == [True] * 6


@pytest.mark.parametrize(
    ("rows", "cache"),
    [
        (MOST_ROWS, CacheKind.DYNAMIC),
        (MOST_ROWS + 1, CacheKind.DYNAMIC),
        (2, CacheKind.STATIC),
        (2, CacheKind.QUANTISED),
    ],
)
def test_steps_that_the_kernels_do_not_take_are_timed_in_the_models_own_code(
    fused_model: nn.Module, rows: int, cache: CacheKind
) -> None:
    meter = PartMeter(fused_model, marks_for(torch.device("cpu")))
    batch = [request(new_tokens=4, request_id=f"r{row}") for row in range(rows)]
    options = GenerationOptions(split_every=1, cache=cache)

    events = list(
        engine_on(fused_model, meter).generate(batch, seed=0, zero_s=0.0, options=options)
    )

    assert len(events) == 4
    for event in events:
        parts = {timed.part: timed.duration_s for timed in event.parts}
        assert set(parts) == {Part.LINEAR, Part.ATTENTION}
        assert 0 < sum(parts.values()) <= event.duration_s
