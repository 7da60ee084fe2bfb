"""Whole runs of several requests under both policies, against each request's run alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from inference.counting.costs import kv_stored_bytes
from inference.engine.clock import HostClock
from inference.engine.loop import Engine, GenerationLimits, GenerationOptions
from inference.engine.row_backend import TorchRowBackend
from inference.figures.latency import run_seconds
from inference.models.shapes import model_shape
from inference.records.errors import InputError
from inference.records.options import BatchPlan, CacheKind, Padding, Policy, Sampling
from inference.records.run import Request
from inference.records.steps import Finish, Phase, StepEvent
from tests.doubles import ScriptedClock, ScriptedDelays
from tests.families import tiny_model

NO_EOS = GenerationLimits(eos_ids=frozenset(), context_tokens=None)
PROMPTS = ((5, 9, 60, 77, 31, 20, 8, 44, 3), (12, 7), (33, 2, 90, 15, 6), (8, 8, 51), (4, 61))
NEW = (5, 9, 3, 7, 1)
# Learned positions, RoPE, ALiBi, a sliding window.
FAMILIES = ["gpt2", "llama", "bloom", "mistral"]
PLANS = [
    BatchPlan(),
    BatchPlan(padding=Padding.RIGHT),
    BatchPlan(slots=2),
    BatchPlan(policy=Policy.CONTINUOUS),
    BatchPlan(policy=Policy.CONTINUOUS, slots=2),
]


def requests(gap_s: float = 0.0) -> list[Request]:
    return [
        Request(
            request_id=f"r{number}",
            prompt_text="",
            prompt_ids=ids,
            max_new_tokens=new,
            sampling=Sampling(),
            arrival_s=number * gap_s,
        )
        for number, (ids, new) in enumerate(zip(PROMPTS, NEW, strict=True))
    ]


def run(
    family: str,
    wanted: Sequence[Request],
    options: GenerationOptions | None = None,
    waits_s: list[float] | None = None,
) -> list[StepEvent]:
    """Return the events of a run whose step times are one second each."""
    engine = Engine(TorchRowBackend(tiny_model(family)), ScriptedClock([1.0] * 200), NO_EOS)
    engine.delays = ScriptedDelays  # a step of scripted length loses nothing

    def idle(seconds: float) -> bool:
        if waits_s is not None:
            waits_s.append(seconds)
        return True

    engine.idle = idle
    return list(engine.generate(wanted, seed=0, zero_s=0.0, options=options or GenerationOptions()))


def tokens(events: Sequence[StepEvent], request_id: str) -> list[int]:
    rows = [row for event in events for row in event.rows if row.request_id == request_id]
    ids = [row.token_id for row in rows if row.token_id is not None]
    assert ids, f"no token of {request_id}"
    return ids


@pytest.mark.golden
@pytest.mark.parametrize(
    "plan", PLANS, ids=lambda plan: f"{plan.policy}-{plan.slots}-{plan.padding}"
)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_request_gets_the_tokens_it_gets_alone(family: str, plan: BatchPlan) -> None:
    wanted = requests(gap_s=1.5)

    events = run(family, wanted, GenerationOptions(plan=plan))

    for one in wanted:
        assert tokens(events, one.request_id) == tokens(run(family, [one]), one.request_id)
    assert [event.index for event in events] == list(range(len(events)))


@pytest.mark.golden
@pytest.mark.parametrize("policy", Policy)
@pytest.mark.parametrize("family", ["gpt2", "llama", "mistral"])
def test_prompts_in_chunks_give_the_same_tokens(family: str, policy: Policy) -> None:
    wanted = requests(gap_s=0.5)
    plan = BatchPlan(policy=policy, slots=3)

    events = run(family, wanted, GenerationOptions(plan=plan, chunk_tokens=2))

    for one in wanted:
        assert tokens(events, one.request_id) == tokens(run(family, [one]), one.request_id)


@pytest.mark.parametrize("chunk", [None, 2])
@pytest.mark.parametrize(
    "plan", PLANS, ids=lambda plan: f"{plan.policy}-{plan.slots}-{plan.padding}"
)
def test_used_bytes_are_those_of_the_real_tokens_of_live_rows(
    plan: BatchPlan, chunk: int | None
) -> None:
    shape = model_shape(tiny_model("llama"))
    chunk = None if plan.padding is Padding.RIGHT else chunk

    events = run("llama", requests(gap_s=1.5), GenerationOptions(plan=plan, chunk_tokens=chunk))

    stored: dict[str, int] = {}
    assert len(events) > 3
    for event in events:
        stored |= {row.request_id: row.context_tokens for row in event.rows}
        expected = sum(kv_stored_bytes(shape, tokens) for tokens in stored.values())
        assert event.cache.used_bytes == expected <= event.cache.allocated_bytes
        for row in event.rows:
            if row.finish is not None:
                del stored[row.request_id]


def test_a_continuous_run_keeps_no_room_for_rows_that_have_left() -> None:
    wanted = requests()

    events = run("llama", wanted, GenerationOptions(plan=BatchPlan(policy=Policy.CONTINUOUS)))

    last = events[-1]
    assert last.rows[0].request_id == "r1"
    assert last.cache.used_bytes == last.cache.allocated_bytes


def test_the_run_waits_for_the_next_arrival_and_its_wait_is_in_no_step_time() -> None:
    waits_s: list[float] = []
    wanted = requests(gap_s=50.0)[:2]

    events = run("llama", wanted, GenerationOptions(plan=BatchPlan(slots=1)), waits_s)

    assert waits_s == [45.0]
    waited = [event for event in events if event.waited_s]
    assert [(event.waited_s, event.phase, event.duration_s) for event in waited] == [
        (45.0, Phase.PREFILL, 1.0)
    ]
    assert run_seconds(events) == 59.0


def test_a_wait_that_is_broken_off_ends_the_run() -> None:
    engine = Engine(TorchRowBackend(tiny_model("llama")), HostClock(), NO_EOS)
    engine.idle = lambda _seconds: False
    wanted = requests(gap_s=1000.0)[:2]

    events = list(engine.generate(wanted, seed=0, zero_s=0.0))

    assert {row.request_id for event in events for row in event.rows} == {"r0"}


def test_a_request_sits_in_one_slot_from_its_first_step_to_its_last() -> None:
    plan = BatchPlan(policy=Policy.CONTINUOUS, slots=2)

    events = run("llama", requests(), GenerationOptions(plan=plan))

    slots: dict[str, set[int]] = {}
    for event in events:
        assert len({row.slot for row in event.rows}) == len(event.rows)
        for row in event.rows:
            slots.setdefault(row.request_id, set()).add(row.slot)
    assert all(len(taken) == 1 for taken in slots.values())
    assert {slot for taken in slots.values() for slot in taken} == {0, 1}


def test_every_request_ends_once_with_a_reason() -> None:
    events = run("llama", requests(), GenerationOptions(plan=BatchPlan(slots=2)))

    ends = [row.finish for event in events for row in event.rows if row.finish is not None]
    assert ends == [Finish.LENGTH] * len(PROMPTS)


@pytest.mark.parametrize("kind", [CacheKind.STATIC, CacheKind.QUANTISED])
def test_rows_come_and_go_in_a_growing_cache_only(kind: CacheKind) -> None:
    options = GenerationOptions(plan=BatchPlan(policy=Policy.CONTINUOUS), cache=kind)

    with pytest.raises(InputError, match="rows cannot come and go"):
        run("llama", requests(), options)


def test_right_padded_prompts_are_not_fed_in_chunks() -> None:
    options = GenerationOptions(plan=BatchPlan(padding=Padding.RIGHT), chunk_tokens=2)

    with pytest.raises(InputError, match="fed at once"):
        run("llama", requests(), options)


def test_a_recurrent_model_runs_no_continuous_batch() -> None:
    options = GenerationOptions(plan=BatchPlan(policy=Policy.CONTINUOUS))

    with pytest.raises(InputError, match="use the static policy"):
        run("mamba", requests(), options)
