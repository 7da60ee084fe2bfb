"""The self-check: sound models pass, and a broken part shows in its own check and in no other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from inference.checks.feeding import EngineRun, engine_run
from inference.checks.job import NEW_TOKENS, CheckLimits, check_model
from inference.checks.references import NoReferenceError, greedy_ids, library_twin
from inference.checks.verdicts import clock_check, ids_check
from inference.engine.clock import HostClock
from inference.kernels.build import kernel_library
from inference.kernels.install import INSTALLED, install, library_code
from inference.kernels.model_layers import decoder_layers
from inference.kernels.unavailable import UnavailableError
from inference.models.block_loading import keep_in_blocks
from inference.models.loading import LoadedModel
from inference.models.shapes import model_shape
from inference.records.block_formats import BlockFormat
from inference.records.checks import CheckKind, CheckOutcome, SelfCheck
from tests.builders import TINY_DEVICE
from tests.families import FAMILIES, fresh_model, kernel_model, loaded_model, tiny_model

ALL = frozenset(CheckKind)
# What is not possible beside the kernels, which tiny models in float64 have none of.
IMPOSSIBLE = {
    "falcon_alibi": {CheckKind.ATTENTION},
    "mamba": {CheckKind.CACHE, CheckKind.ATTENTION},
    "mamba2": {CheckKind.CACHE, CheckKind.ATTENTION},
}


def whole(states: Iterable[SelfCheck]) -> SelfCheck:
    """Return the last state, which must be whole and have every check once, in order."""
    last = list(states)[-1]
    assert last.is_whole
    assert [check.kind for check in last.checks] == list(CheckKind)
    return last


def kinds(check: SelfCheck, outcome: CheckOutcome) -> set[CheckKind]:
    return {one.kind for one in check.of(outcome)}


def differing(loaded: LoadedModel) -> set[CheckKind]:
    return kinds(whole(check_model(loaded, CheckLimits())), CheckOutcome.DIFFERS)


def own_model(family: str = "llama") -> LoadedModel:
    """Return a model that a test may change."""
    model = fresh_model(tiny_model(family).config, torch.float64)
    return replace(loaded_model(family), model=model)


def with_kernels(blocks: BlockFormat | None = None) -> LoadedModel:
    try:
        kernel_library(blocks or "float32")
    except UnavailableError as error:
        pytest.skip(str(error))
    model = kernel_model()
    if blocks is not None:
        keep_in_blocks(model, blocks)
    report = install(model)
    assert report.layers == model.config.num_hidden_layers
    return LoadedModel(
        model=model,
        model_id="tiny",
        shape=model_shape(model),
        device=replace(TINY_DEVICE, dtype="float32"),
        attention="sdpa",
        eos_ids=frozenset(),
        context_limit=1024,
        tokenizer_files=loaded_model().tokenizer_files,
        kernels=report.text,
    )


@pytest.mark.golden
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_passes_what_is_possible(family: str) -> None:
    check = whole(check_model(loaded_model(family), CheckLimits()))

    impossible = {CheckKind.KERNELS} | IMPOSSIBLE.get(family, set())
    assert kinds(check, CheckOutcome.DIFFERS) == set(), check.warning
    assert kinds(check, CheckOutcome.IMPOSSIBLE) == impossible
    assert all(one.reason for one in check.of(CheckOutcome.IMPOSSIBLE))
    assert check.warning == ""


def test_a_model_with_kernels_passes_everything() -> None:
    check = whole(check_model(with_kernels(), CheckLimits()))

    assert kinds(check, CheckOutcome.PASSED) == ALL, check.warning


@pytest.mark.parametrize("blocks", list(BlockFormat))
def test_a_model_in_blocks_passes_everything(blocks: BlockFormat) -> None:
    check = whole(check_model(with_kernels(blocks), CheckLimits()))

    assert kinds(check, CheckOutcome.PASSED) == ALL, check.warning


def test_a_kernel_that_is_off_shows_in_the_kernels_alone() -> None:
    loaded = with_kernels()
    head = loaded.model.get_output_embeddings()
    kernel = head.__dict__["forward"]
    head.forward = lambda given: kernel(given) * 1.001  # the ids stay as they are

    assert differing(loaded) == {CheckKind.KERNELS}
    assert head.__dict__["forward"](torch.zeros(1, 64)).shape == (1, 97)


def test_logits_that_are_off_show_in_the_logits_alone() -> None:
    loaded = own_model()
    head = loaded.model.get_output_embeddings()
    head.register_forward_hook(lambda _module, _given, logits: logits * 1.001)

    assert differing(loaded) == {CheckKind.LOGITS}


def test_other_weights_than_the_library_computes_with_show_in_ids_and_logits() -> None:
    loaded = own_model()
    head = loaded.model.get_output_embeddings()
    head.register_forward_hook(lambda _module, _given, logits: logits.roll(1, dims=-1))

    assert differing(loaded) == {CheckKind.IDS, CheckKind.LOGITS}


def test_a_cache_that_stores_twice_shows_in_the_cache_alone() -> None:
    loaded = own_model()

    def store_twice(
        _module: object, _given: object, named: dict[str, Any], _output: object
    ) -> None:
        if named.get("cache") is not None:
            for layer in named["cache"].layers:
                layer.once_more = [layer.keys.clone(), layer.values.clone()]

    loaded.model.register_forward_hook(store_twice, with_kwargs=True)

    assert differing(loaded) == {CheckKind.CACHE}


def test_attention_that_scales_wrongly_shows_in_the_attention_alone() -> None:
    def scaled_wrongly(
        module: torch.nn.Module, *given: torch.Tensor, scaling: float, **named: object
    ) -> object:
        return sdpa_attention_forward(module, *given, scaling=scaling * 1.1, **named)

    AttentionInterface.register("scaled_wrongly", scaled_wrongly)
    AttentionMaskInterface.register("scaled_wrongly", sdpa_mask)
    model = fresh_model(tiny_model("llama").config, torch.float64, "scaled_wrongly")

    assert differing(replace(loaded_model(), model=model)) == {CheckKind.ATTENTION}


class FastClock(HostClock):
    """A step clock that leaves out nearly all of a step."""

    def end_timing(self) -> float:
        return super().end_timing() / 1000


class SlowClock(HostClock):
    """A step clock that says more than there was, by far more than what lies between two steps."""

    def end_timing(self) -> float:
        return super().end_timing() + 1000


@pytest.mark.parametrize("clock", [FastClock(), SlowClock()], ids=["fast", "slow"])
def test_a_clock_that_is_off_differs_from_the_wall_clock(clock: HostClock) -> None:
    check = clock_check(_end_of(engine_run(tiny_model("llama"), (1, 2, 3), 4, clock)))

    assert check.outcome is CheckOutcome.DIFFERS


def test_ids_that_differ_pass_only_where_rounding_decides() -> None:
    run = EngineRun(
        ids=(1, 2, 3),
        steps_s=1.0,
        forwards_s=1.0,
        wall_s=1.0,
        context_tokens=3,
        stored_bytes=0,
        reported_bytes=0,
    )

    tie = ids_check(run, (1, 9, 8), [0.0, 1e-9, 0.0], 1e-5)
    wrong = ids_check(run, (1, 9, 8), [0.0, 0.1, 0.0], 1e-5)

    assert (tie.outcome, tie.found) == (CheckOutcome.PASSED, "1 of 3 ids are the same")
    assert "tie" in tie.reason
    assert wrong.outcome is CheckOutcome.DIFFERS


def test_a_run_between_any_two_pieces_changes_nothing_in_either() -> None:
    loaded = with_kernels()
    undisturbed = whole(check_model(loaded, CheckLimits()))
    alone = _end_of(engine_run(loaded.model, (4, 8, 15), 3))

    states: list[SelfCheck] = []
    ids: set[tuple[int, ...]] = set()
    for state in check_model(loaded, CheckLimits()):
        states.append(state)
        ids.add(_end_of(engine_run(loaded.model, (4, 8, 15), 3)).ids)

    assert ids == {alone.ids}
    assert (
        kinds(whole(states), CheckOutcome.PASSED) == kinds(undisturbed, CheckOutcome.PASSED) == ALL
    )


def test_a_generation_that_is_called_away_is_done_anew() -> None:
    asked: list[bool] = []

    def should_stop() -> bool:
        asked.append(len(asked) == 1)  # once, at the second token
        return asked[-1]

    check = whole(check_model(loaded_model(), CheckLimits(should_stop=should_stop)))

    assert len(asked) == 2 + NEW_TOKENS
    assert kinds(check, CheckOutcome.DIFFERS) == set()


def test_what_there_was_no_time_for_is_done_the_next_time() -> None:
    loaded = loaded_model()

    first = whole(check_model(loaded, CheckLimits(budget_s=0.0)))
    second = whole(check_model(loaded, CheckLimits(), first))
    third = list(check_model(loaded, CheckLimits(), second))

    assert first.is_cut_short
    assert kinds(first, CheckOutcome.IMPOSSIBLE) == ALL
    assert kinds(second, CheckOutcome.PASSED) == ALL - {CheckKind.KERNELS}
    assert not second.is_cut_short
    assert (third[-1].checks, third[-1].took_s) == (second.checks, 0.0)


def test_the_twin_shares_the_weights_and_nothing_else() -> None:
    model = own_model().model
    model.get_output_embeddings().register_forward_hook(lambda _module, _given, out: out * 0)

    twin = library_twin(model)

    pairs = zip(model.parameters(), twin.parameters(), strict=True)
    assert all(ours.data_ptr() == theirs.data_ptr() for ours, theirs in pairs)
    ours, theirs = model(torch.tensor([[1, 2]])).logits, twin(torch.tensor([[1, 2]])).logits
    assert not ours.any()
    assert theirs.any()


def test_a_model_with_another_part_has_no_twin() -> None:
    model = own_model().model
    model.get_output_embeddings().weight = torch.nn.Parameter(
        torch.zeros(3, 3, dtype=torch.float64), requires_grad=False
    )

    with pytest.raises(NoReferenceError, match="is not found in the model that runs"):
        library_twin(model)


def test_the_publisher_s_settings_do_not_steer_the_library_s_generation() -> None:
    model: PreTrainedModel = own_model().model
    expected = greedy_ids(library_twin(model), (1, 2, 3), 4, lambda: False)
    assert expected is not None
    model.generation_config.repetition_penalty = 50.0
    model.generation_config.eos_token_id = expected[0]

    assert greedy_ids(library_twin(model), (1, 2, 3), 4, lambda: False) == expected


def test_the_library_s_code_runs_inside_and_the_kernels_after_it() -> None:
    model = with_kernels().model
    layer = decoder_layers(model)[0]
    kernel = layer.__dict__["forward"]

    with library_code(model):
        assert "forward" not in layer.__dict__
        assert INSTALLED in model.__dict__

    assert layer.__dict__["forward"] is kernel


def _end_of(pieces: object) -> EngineRun:
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            return end.value


@pytest.mark.parametrize(
    "error",
    [
        # Source: PyTorch, c10/core/impl/alloc_cpu.cpp.
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."),
        RuntimeError("MPS backend out of memory"),
        torch.OutOfMemoryError("CUDA out of memory"),
        MemoryError(),
    ],
)
def test_a_check_without_memory_for_it_is_impossible_on_every_device(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object) -> None:
        raise error

    monkeypatch.setattr("inference.checks.job.uncached_logits", fail)

    check = whole(check_model(loaded_model(), CheckLimits()))

    [logits] = [one for one in check.checks if one.kind is CheckKind.LOGITS]
    assert logits.outcome is CheckOutcome.IMPOSSIBLE
    assert "there is too little memory" in logits.reason
    assert not check.of(CheckOutcome.DIFFERS)


def test_another_error_of_a_check_is_not_taken_for_a_lack_of_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_arguments: object) -> None:
        msg = "shapes cannot be multiplied"
        raise RuntimeError(msg)

    monkeypatch.setattr("inference.checks.job.uncached_logits", fail)

    with pytest.raises(RuntimeError, match="shapes"):
        whole(check_model(loaded_model(), CheckLimits()))
