"""A run's settings, read back from its order or its records: what makes the same run again."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from inference.process.messages import LoadModel
from inference.process.orders import RunOrder
from inference.records.options import (
    AttentionKind,
    BatchPlan,
    CacheKind,
    DecodeMode,
    Padding,
    Policy,
    Sampling,
)
from inference.records.run import RunInfo
from tests.builders import run_info
from tests.visuals.traces import batch_of, trace_of
from visuals.pages.examples import example_prompts
from visuals.pages.run_settings import BatchSource, Decoding, Pace, RunSettings, Split
from visuals.pages.settings_of_runs import (
    as_by_default,
    changed_from_default,
    settings_of,
    settings_of_trace,
)

SETTINGS = [
    RunSettings(),
    RunSettings(prompt="p", max_new_tokens=120, has_template=False, pace=Pace.TWO),
    RunSettings(
        decoding=Decoding.SAMPLING, temperature=1.3, top_k=5, top_p=0.5, seed=7, dtype="float32"
    ),
    RunSettings(cache=CacheKind.QUANTISED, chunk_tokens=16, is_captured=False, split=Split.EVERY),
    RunSettings(decode=DecodeMode.GRAPH, device="cuda:1", attention=AttentionKind.EAGER, model="a"),
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda one: f"{changed_from_default(one)}")
def test_the_settings_of_an_order_are_those_it_was_made_from(settings: RunSettings) -> None:
    assert settings_of(settings.order()) == settings


def test_every_setting_is_read_back_from_one_of_these_orders() -> None:
    """One that is not would go back to its default at a reload."""
    tried = {name for settings in SETTINGS for name in changed_from_default(settings)}

    names = {field.name for field in fields(RunSettings)} - {"prompt", "pace"}
    assert {name for name in names - tried if not name.startswith("batch_")} == set()


@pytest.mark.parametrize(
    ("prompts", "source"),
    [
        (("a", "a", "a"), BatchSource.SAME),
        (tuple(example.prompt for example in example_prompts())[:2], BatchSource.EXAMPLES),
        (("a", "b\nc"), BatchSource.TYPED),
    ],
    ids=lambda value: value if isinstance(value, BatchSource) else "",
)
def test_the_batch_of_an_order_is_read_back(prompts: tuple[str, ...], source: BatchSource) -> None:
    plan = BatchPlan(policy=Policy.CONTINUOUS, slots=2, padding=Padding.RIGHT)
    arrivals_s = (0.0, *(1.5,) * (len(prompts) - 1))
    order = replace(RunSettings().order(), prompts=prompts, plan=plan, arrivals_s=arrivals_s)

    settings = settings_of(order)

    assert (settings.batch_source, settings.batch_count) == (source, len(prompts))
    assert (settings.batch_policy, settings.batch_slots) == (Policy.CONTINUOUS, 2)
    assert settings.batch_padding is Padding.RIGHT
    assert settings.batch_arrivals.split(", ") == [f"{one:g}" for one in arrivals_s]
    assert settings.prompt.split("\n---\n") == list(prompts) or source is not BatchSource.TYPED


def test_a_kept_runs_settings_make_a_run_like_it() -> None:
    trace = trace_of([b"why"], [b"be", b"cause"])
    request = replace(
        trace.requests[0],
        max_new_tokens=9,
        sampling=Sampling(temperature=0.5, top_k=3),
        is_raw=True,
    )
    info = replace(run_info(), seed=5, cache=CacheKind.STATIC, chunk_tokens=2)

    order = settings_of_trace(replace(trace, info=info, requests=(request,))).order()

    assert order == RunOrder(
        prompts=("why",),
        max_new_tokens=9,
        sampling=Sampling(temperature=0.5, top_k=3),
        seed=5,
        is_raw=True,
        load=LoadModel(model="tiny", dtype="float32"),
        chunk_tokens=2,
        cache=CacheKind.STATIC,
        is_captured=True,
        split_every=order.split_every,  # what the page times of any run
        is_prefill_split=False,
    )
    assert order.split_every is not None
    assert settings_of_trace(batch_of(trace, 3)).batch_count == 3


@pytest.mark.parametrize(
    ("attention", "kernels", "asked"),
    [
        ("sdpa", "own kernels for steps of 1 to 16 rows: 30 fused layers", AttentionKind.AUTO),
        ("sdpa", "own kernels for steps of 1 to 16 rows: linear layers", AttentionKind.SDPA),
        ("sdpa", "the library's own: no compiler", AttentionKind.AUTO),
        ("eager", "", AttentionKind.EAGER),
        ("something else", "", AttentionKind.AUTO),
    ],
)
def test_the_attention_asked_for_is_told_from_the_run(
    attention: str, kernels: str, asked: AttentionKind
) -> None:
    info: RunInfo = replace(run_info(), attention=attention, kernels=kernels)

    trace = replace(trace_of([b"a"], [b"b"]), info=info)

    assert settings_of_trace(trace).attention is asked


def test_a_reset_leaves_the_prompt_and_the_pace() -> None:
    changed = RunSettings(prompt="mine", pace=Pace.ONE, max_new_tokens=3, batch_slots=2)

    assert changed_from_default(changed) == ("max_new_tokens", "batch_slots")
    assert as_by_default(changed) == RunSettings(prompt="mine", pace=Pace.ONE)


def test_both_names_of_the_default_model_are_one_model() -> None:
    """The list offered it twice, and choosing the other name loaded it again."""
    assert RunSettings(model="SmolLM2-135M-Instruct").load == RunSettings().load
