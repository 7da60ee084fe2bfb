"""The loop against the library's own generation, and its events against the cache and the clock."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from inference.engine.backend import TorchBackend
from inference.engine.clock import HostClock
from inference.engine.loop import Engine, GenerationLimits
from inference.records.options import Sampling
from inference.records.run import Request
from inference.records.steps import Finish, Phase, StepEvent
from tests.doubles import ScriptedBackend, ScriptedClock, ScriptedDelays

PROMPT = (5, 9, 120, 77, 31, 200, 8)
NO_EOS = GenerationLimits(eos_ids=frozenset(), context_tokens=None)


@pytest.fixture(scope="module")
def model(tiny_model_folder: Path) -> PreTrainedModel:
    return AutoModelForCausalLM.from_pretrained(tiny_model_folder, dtype=torch.float64).eval()


def request(
    ids: tuple[int, ...] = PROMPT, *, new_tokens: int = 12, request_id: str = "r0"
) -> Request:
    return Request(
        request_id=request_id,
        prompt_text="",
        prompt_ids=ids,
        max_new_tokens=new_tokens,
        sampling=Sampling(),
    )


def run(
    model: PreTrainedModel, *requests: Request, limits: GenerationLimits = NO_EOS
) -> list[StepEvent]:
    engine = Engine(TorchBackend(model), HostClock(), limits)
    return list(engine.generate(requests, seed=0, zero_s=0.0))


def tokens(events: list[StepEvent], request_id: str = "r0") -> list[int | None]:
    ids = [row.token_id for event in events for row in event.rows if row.request_id == request_id]
    assert ids, f"no token of {request_id}"
    return ids


@pytest.mark.golden
def test_greedy_tokens_are_those_of_generate(model: PreTrainedModel) -> None:
    expected = model.generate(
        torch.tensor([PROMPT]), do_sample=False, max_new_tokens=12, eos_token_id=None
    )

    assert tokens(run(model, request())) == expected[0, len(PROMPT) :].tolist()


@pytest.mark.golden
def test_cached_decode_gives_the_log_probabilities_of_a_full_recompute(
    model: PreTrainedModel,
) -> None:
    events = run(model, request())
    fed = [*PROMPT, *tokens(events)]

    with torch.inference_mode():
        logprobs = model(torch.tensor([fed])).logits[0].log_softmax(-1)

    for event in events:
        row = event.rows[0]
        expected = logprobs[row.context_tokens - 1]
        assert row.token_id == expected.argmax().item()
        assert row.logprob == pytest.approx(expected.max().item(), abs=1e-12)


@pytest.mark.golden
def test_used_bytes_are_the_formula_and_the_tensors(model: PreTrainedModel) -> None:
    backend = TorchBackend(model)
    engine = Engine(backend, HostClock(), NO_EOS)
    config = model.config
    token_bytes = 2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim * 8

    events = 0
    for event in engine.generate([request()], seed=0, zero_s=0.0):
        events += 1
        held = sum(layer.keys.nbytes + layer.values.nbytes for layer in backend.batch.cache.layers)
        assert event.cache.used_bytes == held == token_bytes * event.context_tokens
        assert event.cache.tokens_per_layer == (event.context_tokens,) * config.num_hidden_layers
    assert events == 12


def test_n_tokens_come_from_one_prefill_and_n_minus_1_decode_steps(
    model: PreTrainedModel,
) -> None:
    events = run(model, request(new_tokens=6))

    assert [event.phase for event in events] == [Phase.PREFILL] + [Phase.DECODE] * 5
    assert [event.index for event in events] == list(range(6))
    assert [(event.query_tokens, event.context_tokens) for event in events] == [
        (7, 7),
        *((1, 7 + step) for step in range(1, 6)),
    ]
    assert [event.rows[0].finish for event in events] == [None] * 5 + [Finish.LENGTH]


def test_one_new_token_needs_no_decode_step(model: PreTrainedModel) -> None:
    [event] = run(model, request(new_tokens=1))

    assert event.phase is Phase.PREFILL
    assert event.rows[0].finish is Finish.LENGTH


def test_an_end_token_ends_the_row_and_is_part_of_the_output(model: PreTrainedModel) -> None:
    third = tokens(run(model, request()))[2]
    limits = GenerationLimits(eos_ids=frozenset({third}), context_tokens=None)

    events = run(model, request(), limits=limits)

    assert tokens(events)[-1] == third
    assert events[-1].rows[0].finish is Finish.EOS
    assert len(events) <= 3


def test_a_full_context_ends_the_row(model: PreTrainedModel) -> None:
    limits = GenerationLimits(eos_ids=frozenset(), context_tokens=10)

    events = run(model, request(), limits=limits)

    assert events[-1].context_tokens == 10
    assert events[-1].rows[0].finish is Finish.CONTEXT


@pytest.mark.golden
def test_rows_of_a_batch_give_the_tokens_they_give_alone(model: PreTrainedModel) -> None:
    prompts = [PROMPT, PROMPT[:2], (3, *PROMPT, *PROMPT)]
    lengths = [9, 4, 12]
    batch = [
        request(ids, new_tokens=length, request_id=f"r{slot}")
        for slot, (ids, length) in enumerate(zip(prompts, lengths, strict=True))
    ]

    events = run(model, *batch)

    for one in batch:
        alone = run(model, one)
        assert tokens(events, one.request_id) == tokens(alone, one.request_id)
    assert len(events) == 12
    assert [len(event.rows) for event in events] == [3] * 4 + [2] * 5 + [1] * 3


def test_padding_is_allocated_and_not_used(model: PreTrainedModel) -> None:
    batch = [request(PROMPT, request_id="long"), request(PROMPT[:2], request_id="short")]

    prefill = run(model, *batch)[0]

    token_bytes = prefill.cache.allocated_bytes // (2 * len(PROMPT))
    assert prefill.cache.used_bytes == token_bytes * (len(PROMPT) + 2)


def test_a_slow_consumer_stretches_no_step_time() -> None:
    clock = ScriptedClock([0.25, 0.5, 0.125])
    engine = Engine(ScriptedBackend(vocabulary=8), clock, NO_EOS)
    events: list[StepEvent] = []

    for event in engine.generate([request((1, 2), new_tokens=3)], seed=0, zero_s=0.0):
        events.append(event)
        clock.advance(10.0)  # drawing, pausing, pacing

    assert [event.duration_s for event in events] == [0.25, 0.5, 0.125]
    assert [event.started_s for event in events] == [0.0, 10.25, 20.75]


def test_only_the_first_prefill_and_the_first_decode_step_after_loading_are_cold() -> None:
    engine = Engine(ScriptedBackend(vocabulary=8), ScriptedClock([1.0] * 6), NO_EOS)

    first = list(engine.generate([request((1, 2), new_tokens=3)], seed=0, zero_s=0.0))
    second = list(engine.generate([request((1, 2), new_tokens=3)], seed=0, zero_s=0.0))

    assert [event.cold for event in first + second] == [True, True, False, False, False, False]


def test_on_a_device_the_first_decode_step_of_each_number_of_rows_is_cold() -> None:
    """A device loads a kernel when it is first launched; such a step passed for a warm one."""
    clock = ScriptedClock([1.0] * 30)
    clock.host_s = 0.5
    engine = Engine(ScriptedBackend(vocabulary=8), clock, NO_EOS)

    def colds(rows: int) -> list[bool]:
        batch = [request((1, 2), request_id=f"r{row}", new_tokens=3) for row in range(rows)]
        return [event.cold for event in engine.generate(batch, seed=0, zero_s=0.0)]

    assert [colds(rows) for rows in (1, 2, 1, 2)] == [
        [True, True, False],
        [False, True, False],
        [False, False, False],
        [False, False, False],
    ]


def test_the_best_alternatives_come_best_first_and_hold_the_chosen_one(
    model: PreTrainedModel,
) -> None:
    events = run(model, request())

    assert len(events) == 12
    for event in events:
        candidates = event.rows[0].candidates
        assert len(candidates) == 5
        assert candidates[0].token_id == event.rows[0].token_id
        assert list(candidates) == sorted(candidates, key=lambda one: -one.logprob)


def test_each_step_says_how_long_its_threads_had_no_processor() -> None:
    """Of a wait that began before the step no more counts than the step took."""
    engine = Engine(ScriptedBackend(vocabulary=8), ScriptedClock([1.0] * 3), NO_EOS)
    delays = ScriptedDelays(0.25, None, 7.0)
    engine.delays = lambda: delays

    events = list(engine.generate([request((1, 2), new_tokens=3)], seed=0, zero_s=0.0))

    assert [event.run_delay_s for event in events] == [0.25, None, 1.0]
    assert delays.calls == ["open", *["start", "stop"] * 3, "close"]


def test_on_a_device_only_delays_until_the_launch_count() -> None:
    clock = ScriptedClock([1.0] * 2)
    clock.host_s = 0.5
    engine = Engine(ScriptedBackend(vocabulary=8), clock, NO_EOS)
    delays = ScriptedDelays(0.25, 0.0)
    engine.delays = lambda: delays

    events = list(engine.generate([request((1, 2), new_tokens=2)], seed=0, zero_s=0.0))

    assert [event.run_delay_s for event in events] == [0.25, 0.0]
    assert delays.calls.count("stop") == 2


def test_an_abandoned_run_closes_what_it_opened() -> None:
    engine = Engine(ScriptedBackend(vocabulary=8), ScriptedClock([1.0] * 2), NO_EOS)
    delays = ScriptedDelays(0.0, 0.0)
    engine.delays = lambda: delays
    run = engine.generate([request((1, 2), new_tokens=2)], seed=0, zero_s=0.0)
    next(run)

    run.close()

    assert delays.calls[-1] == "close"
