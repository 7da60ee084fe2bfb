"""The tour's chapters: their addresses, what each runs, and how a recording stands in."""

from __future__ import annotations

import pytest

from inference.process.orders import check_order
from inference.records.status import RunState
from inference.runs.recordings import FIRST_RUN, recorded_runs
from visuals.tour.chapters import (
    CHAPTERS,
    Chapter,
    chapter_at,
    order_of,
    recorded_for,
    variant_of,
)
from visuals.tour.texts import TEXTS


def test_the_addresses_of_the_chapters_are_those_that_were_given_out() -> None:
    slugs = ["forward-pass", "cache", "mask", "weight-reuse", "roofline", "batching", "context"]

    assert [chapter.slug.value for chapter in CHAPTERS] == slugs
    assert [chapter_at(slug) for slug in slugs] == list(CHAPTERS)
    assert chapter_at("nonsense") is None
    assert list(TEXTS) == slugs


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda one: one.slug)
def test_every_variant_is_an_order_that_can_be_run_and_differs_from_the_others(
    chapter: Chapter,
) -> None:
    orders = [order_of(chapter, variant, "Why is it so?") for variant in chapter.variants]

    for order in orders:
        check_order(order)
    assert len(set(orders)) == len(orders) > 1
    assert variant_of(chapter, "no such") is chapter.variants[0]


def test_a_prompt_is_repeated_until_it_has_the_letters_asked_for() -> None:
    chapter = CHAPTERS[-1]
    longest = chapter.variants[-1]

    [short] = order_of(chapter, longest, "abc").prompts
    [long] = order_of(chapter, longest, "a" * 7000).prompts

    assert longest.letters <= short.count("abc") * 3 < longest.letters + 3
    assert long == "a" * 7000


def test_one_forward_pass_of_a_recording_is_a_run_that_asked_for_one_token() -> None:
    [trace] = recorded_runs(FIRST_RUN)

    shown = recorded_for(CHAPTERS[0], trace)

    assert shown.events == trace.events[:1]
    assert [request.max_new_tokens for request in shown.requests] == [1]
    assert shown.state is RunState.DONE
    assert recorded_for(CHAPTERS[-1], trace) is trace
