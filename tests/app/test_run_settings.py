"""Orders are built from the settings alone, whose defaults stand in one place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inference.process.messages import LoadModel
from inference.process.orders import RunOrder, check_order
from inference.records.options import CacheKind, DecodeMode, Sampling
from visuals.live.hub import UNWATCHED_SPLIT, WATCHED_SPLIT
from visuals.pages.examples import first_prompt
from visuals.pages.run_settings import Decoding, Pace, RunSettings, Split, pace_of


def test_the_defaults_are_a_greedy_run_of_the_first_prompt_on_the_default_model() -> None:
    order = RunSettings().order()

    check_order(order)
    assert order == RunOrder(
        prompts=(first_prompt(),),
        max_new_tokens=64,
        sampling=Sampling(),
        seed=0,
        is_raw=False,
        load=LoadModel(model="default"),
        split_every=UNWATCHED_SPLIT,
        is_prefill_split=False,
        is_captured=True,
    )


def test_sampling_leaves_out_what_keeps_every_token() -> None:
    drawn = RunSettings(decoding=Decoding.SAMPLING)

    assert drawn.sampling == Sampling(temperature=0.8)
    assert replace(drawn, top_k=5, top_p=0.5).sampling == Sampling(
        temperature=0.8, top_k=5, top_p=0.5
    )
    assert replace(drawn, decoding=Decoding.GREEDY, top_k=5).sampling == Sampling()


@pytest.mark.parametrize(
    ("split", "shows_parts", "every"),
    [
        (Split.AUTOMATIC, False, UNWATCHED_SPLIT),
        (Split.AUTOMATIC, True, WATCHED_SPLIT),
        (Split.EVERY, False, 1),
        (Split.NEVER, True, None),
    ],
)
def test_steps_are_timed_in_parts_as_asked(
    split: Split, shows_parts: bool, every: int | None
) -> None:
    """The reader fell back to never where its widget began at automatic."""
    assert RunSettings(split=split).order(shows_parts=shows_parts).split_every == every


def test_a_prefill_is_timed_in_parts_only_for_who_looks_at_them() -> None:
    assert not RunSettings().order().is_prefill_split
    assert RunSettings().order(shows_parts=True).is_prefill_split
    assert RunSettings(split=Split.EVERY).order().is_prefill_split


def test_prepared_steps_are_not_taken_apart_for_nobody() -> None:
    """A step that is timed in parts is launched eagerly, which takes much longer."""
    prepared = RunSettings(decode=DecodeMode.GRAPH)

    assert prepared.order().split_every is None
    assert prepared.order(shows_parts=True).split_every == WATCHED_SPLIT


def test_only_eager_steps_are_captured() -> None:
    assert RunSettings(is_captured=True).order().is_captured
    assert not RunSettings(is_captured=False).order().is_captured
    assert not RunSettings(decode=DecodeMode.GRAPH).order().is_captured


def test_every_pace_is_found_by_its_bound() -> None:
    assert [pace_of(pace.steps_per_s) for pace in Pace] == list(Pace)
    assert pace_of(3.0) is None


def test_settings_are_what_is_ordered() -> None:
    settings = RunSettings(
        prompt="p", max_new_tokens=3, seed=4, has_template=False, model="  ", dtype="float32"
    )
    settings = replace(settings, chunk_tokens=2, cache=CacheKind.STATIC, pace=Pace.HALF)

    order = settings.order(is_paused=True)

    assert (order.prompts, order.max_new_tokens, order.seed) == (("p",), 3, 4)
    assert (order.is_raw, order.is_paused, order.steps_per_s) == (True, True, 0.5)
    assert (order.chunk_tokens, order.cache) == (2, CacheKind.STATIC)
    assert order.load == LoadModel(model="default", dtype="float32")
