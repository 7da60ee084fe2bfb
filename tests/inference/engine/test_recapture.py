"""What is captured after a run, from its tokens, is what was captured during it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from inference.engine import recapture as recapturing
from inference.engine.backend import TorchBackend
from inference.engine.clock import HostClock
from inference.engine.loop import PLAIN, Engine, GenerationLimits, GenerationOptions
from inference.engine.recapture import OTHER_WEIGHTS, recapture
from inference.engine.row_backend import TorchRowBackend
from inference.models.shapes import model_shape
from inference.records.attention import AttentionChoice, AttentionMap, KnownTokens
from inference.records.errors import InputError
from inference.records.options import BatchPlan, CacheKind, Padding, Policy, Sampling
from inference.records.run import Request, RunTrace
from inference.records.steps import StepEvent
from inference.runs.known_tokens import known_tokens
from tests.builders import run_info
from tests.families import FAMILIES, VOCAB, fresh_model, tiny_model

TOKENS = torch.randint(2, VOCAB, (40,), generator=torch.Generator().manual_seed(5)).tolist()
PROMPT = tuple(TOKENS[:11])
NO_EOS = GenerationLimits(eos_ids=frozenset(), context_tokens=None)
golden = pytest.mark.golden


class Finished:
    """A run that is over, with what was captured during it."""

    def __init__(
        self,
        model: PreTrainedModel,
        *prompts: tuple[int, ...],
        choice: AttentionChoice,
        options: GenerationOptions = PLAIN,
        is_captured: bool = True,
    ) -> None:
        self.backend = TorchRowBackend(model)
        engine = Engine(self.backend, HostClock(), NO_EOS)
        engine.capture(choice if is_captured else None)
        requests = tuple(
            Request(
                request_id=f"r{number}",
                prompt_text="",
                prompt_ids=ids,
                max_new_tokens=5 + 2 * number,
                sampling=Sampling(),
            )
            for number, ids in enumerate(prompts)
        )
        events: list[StepEvent] = []
        self.maps: list[AttentionMap] = []
        for event in engine.generate(requests, seed=0, zero_s=0, options=options):
            events.append(event)
            if engine.attention is not None:
                self.maps.append(engine.attention)
        info = replace(run_info("r"), cache=options.cache, shape=model_shape(model))
        self.trace = RunTrace(
            info=info, requests=requests, events=tuple(events), telemetry=(), outputs=()
        )

    def known(self, number: int = 0) -> KnownTokens:
        known = known_tokens(self.trace, number)
        assert known is not None
        return known


def rows_of(maps: list[AttentionMap], heads: int) -> dict[int, NDArray[np.float64]]:
    """Return [head, key] of every query, over all keys from the first token on."""
    end = max(one.query_start + one.query_tokens for one in maps)
    rows: dict[int, NDArray[np.float64]] = {}
    for one in maps:
        assert one.weights is not None, one.reason
        assert one.query_bin == one.kv_bin == 1
        for at in range(one.query_tokens):
            row = np.zeros((heads, end))
            row[:, one.kv_start : one.kv_start + one.kv_tokens] = one.weights[:, at]
            rows[one.query_start + at] = row
    return rows


def assert_same(before: list[AttentionMap], after: list[AttentionMap], within: float) -> None:
    planes = max(1, len(before[0].heads))
    theirs, ours = rows_of(before, planes), rows_of(after, planes)
    assert sorted(theirs) == sorted(ours) == list(range(len(ours)))
    for query, row in theirs.items():
        assert np.abs(row - ours[query]).max() <= within, query


def is_attending(finished: Finished) -> bool:
    return all(one.weights is not None for one in finished.maps)


@golden
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_gives_the_weights_of_the_run_again(family: str) -> None:
    model = tiny_model(family)

    for layer in range(model.config.num_hidden_layers):
        choice = AttentionChoice(layer=layer, is_all_heads=True)
        finished = Finished(model, PROMPT, choice=choice)
        again = list(recapture(finished.backend, finished.known(), choice))
        if is_attending(finished):
            assert_same(finished.maps, again, within=1e-6)
        else:
            assert [one.reason for one in again[:1]] == [finished.maps[0].reason]


@golden
@pytest.mark.parametrize("padding", [Padding.LEFT, Padding.RIGHT])
def test_a_row_of_a_batch_is_captured_by_itself(padding: Padding) -> None:
    model = tiny_model("llama")
    prompts = (PROMPT, tuple(TOKENS[11:30]), tuple(TOKENS[2:6]))
    options = GenerationOptions(plan=BatchPlan(padding=padding))

    for number in range(3):
        choice = AttentionChoice(layer=1, head=2, slot=number)
        finished = Finished(model, *prompts, choice=choice, options=options)
        again = list(recapture(finished.backend, finished.known(number), choice))
        assert {one.choice for one in again} == {choice}
        assert sum(one.query_tokens for one in again) == len(finished.known(number).ids)
        if padding is Padding.LEFT:
            assert_same(finished.maps, again, within=1e-6)


@golden
def test_a_row_of_a_continuous_batch_can_be_captured_after_it() -> None:
    model = tiny_model("llama")
    prompts = (PROMPT, tuple(TOKENS[11:30]))
    options = GenerationOptions(plan=BatchPlan(policy=Policy.CONTINUOUS, slots=1))
    choice = AttentionChoice(layer=0, is_all_heads=True, slot=1)
    finished = Finished(model, *prompts, choice=choice, options=options, is_captured=False)
    known = finished.known(1)

    again = list(recapture(finished.backend, known, choice))

    with torch.inference_mode():
        eager = fresh_model(model.config, model.dtype, "eager")
        output = eager(torch.tensor([known.ids]), output_attentions=True, use_cache=False)
    for query, row in rows_of(again, 4).items():
        expected = output.attentions[0][0, :, query].numpy()
        assert np.abs(row - expected).max() <= 1e-6


@golden
@pytest.mark.parametrize("family", ["llama", "mistral", "gemma3"])
@pytest.mark.parametrize("cache", [CacheKind.DYNAMIC, CacheKind.STATIC])
def test_a_prompt_fed_in_chunks_is_given_chunk_by_chunk(family: str, cache: CacheKind) -> None:
    choice = AttentionChoice(layer=1)
    options = GenerationOptions(chunk_tokens=4, cache=cache)
    finished = Finished(tiny_model(family), PROMPT, choice=choice, options=options)

    again = list(recapture(finished.backend, finished.known(), choice))

    assert [one.query_tokens for one in again] == [4, 4, 3, 1, 1, 1, 1]
    assert_same(finished.maps, again, within=1e-6)


@golden
def test_long_prompts_and_outputs_are_fed_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recapturing, "BLOCK_TOKENS", 3)
    choice = AttentionChoice(layer=1, is_all_heads=True)
    finished = Finished(tiny_model("mistral"), PROMPT, choice=choice)

    again = list(recapture(finished.backend, finished.known(), choice))

    assert [one.query_tokens for one in again] == [3, 3, 3, 2, 1, 1, 1, 1]
    assert_same(finished.maps, again, within=1e-6)


@golden
def test_of_a_quantised_cache_the_weights_are_near_and_not_the_same() -> None:
    choice = AttentionChoice(layer=1)
    options = GenerationOptions(cache=CacheKind.QUANTISED)
    finished = Finished(tiny_model("llama"), PROMPT, choice=choice, options=options)

    known = finished.known()
    again = list(recapture(finished.backend, known, choice))

    assert known.logprobs == (finished.trace.events[0].rows[0].logprob,)
    assert_same(finished.maps, again, within=0.05)


def test_the_query_that_chose_the_first_output_is_named_once() -> None:
    choice = AttentionChoice(layer=0)
    finished = Finished(tiny_model("llama"), PROMPT, choice=choice)

    again = list(recapture(finished.backend, finished.known(), choice))

    assert [one.first_output_query for one in again] == [10, None, None, None, None]


def test_other_weights_of_the_same_shape_are_refused() -> None:
    model = tiny_model("llama")
    choice = AttentionChoice(layer=0)
    finished = Finished(model, PROMPT, choice=choice)
    torch.manual_seed(99)
    other = type(model)(model.config).to(model.dtype).eval()

    with pytest.raises(InputError, match="another probability"):
        list(recapture(TorchBackend(other), finished.known(), choice))
    assert "weights" in OTHER_WEIGHTS


def test_it_ends_between_two_blocks_when_it_is_to_stop() -> None:
    choice = AttentionChoice(layer=0)
    finished = Finished(tiny_model("llama"), PROMPT, choice=choice)
    asked: list[bool] = []

    def should_stop() -> bool:
        asked.append(True)
        return len(asked) > 1

    again = list(recapture(finished.backend, finished.known(), choice, should_stop))

    assert [one.query_tokens for one in again] == [11]


def test_a_run_that_was_stopped_gives_what_it_fed() -> None:
    choice = AttentionChoice(layer=0)
    finished = Finished(
        tiny_model("llama"), PROMPT, choice=choice, options=GenerationOptions(chunk_tokens=4)
    )
    cut = RunTrace(
        info=finished.trace.info,
        requests=finished.trace.requests,
        events=finished.trace.events[:2],
        telemetry=(),
        outputs=(),
    )
    known = known_tokens(cut, 0)
    assert known is not None

    again = list(recapture(finished.backend, known, choice))

    assert (known.prompt_blocks, known.ids, known.output_ids) == ((4, 4), PROMPT[:8], ())
    assert [one.query_tokens for one in again] == [4, 4]
    assert known_tokens(cut, 1) is None


def test_there_is_no_layer_beyond_the_last() -> None:
    finished = Finished(tiny_model("llama"), PROMPT, choice=AttentionChoice(layer=0))

    with pytest.raises(InputError, match="no layer 77"):
        list(recapture(finished.backend, finished.known(), AttentionChoice(layer=77)))
