"""What the tour says: short enough beside a picture, and true of the run beside it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from inference.counting.costs import step_cost
from inference.counting.what_if import decode_cost
from inference.runs.recordings import FIRST_RUN, recorded_measurements, recorded_runs
from tests.visuals.counted import counted_trace
from visuals.charts.context_costs import BANDS, band_rows, point_rows
from visuals.tour.chapters import CHAPTERS, Slug, recorded_for
from visuals.tour.facts import (
    RunFacts,
    batch_facts,
    context_facts,
    facts_of,
    recorded_batch_facts,
    recorded_context_facts,
)
from visuals.tour.questions import Question
from visuals.tour.readings import reading
from visuals.tour.texts import MOST_WORDS, TEXTS, beside_picture

TRACE = recorded_runs(FIRST_RUN)[0]


def facts(slug: Slug) -> RunFacts:
    """Return the figures of the recorded run as a chapter shows it."""
    chapter = next(one for one in CHAPTERS if one.slug is slug)
    found = facts_of(recorded_for(chapter, TRACE))
    assert found is not None
    return found


def question(slug: Slug) -> Question:
    return TEXTS[slug].question(facts(slug))


@pytest.mark.parametrize("slug", Slug)
def test_what_stands_beside_a_picture_has_at_most_sixty_words(slug: Slug) -> None:
    said = beside_picture(TEXTS[slug], facts(slug))

    assert 30 < len(said.split()) <= MOST_WORDS == 60, said


@pytest.mark.parametrize("slug", Slug)
def test_a_question_tells_the_right_answer_from_others_and_explains_them(slug: Slug) -> None:
    asked = question(slug)

    assert asked.is_right(asked.answer)
    assert asked.verdict(asked.answer) == asked.right != asked.wrong == asked.verdict("no")
    if asked.options:
        assert asked.answer in asked.options
        assert len(set(asked.options)) == len(asked.options) > 1
    else:
        assert asked.answer.isdecimal()
        assert f"{int(asked.answer):,}" in asked.wrong


def test_the_next_pass_can_look_back_on_the_context_of_the_runs_second_step() -> None:
    assert int(question(Slug.FORWARD_PASS).answer) == TRACE.events[1].context_tokens


def test_what_is_stored_at_the_end_is_what_the_cache_holds() -> None:
    asked, shown = question(Slug.CACHE), facts(Slug.CACHE)

    last = TRACE.events[shown.outputs - 1]
    assert int(asked.answer) == last.cache.tokens_per_layer[0]
    assert int(asked.answer) == shown.prompt_tokens + shown.outputs - 1
    assert TEXTS[Slug.CACHE].changed(shown)["Steps, 1 + (N \u2212 1)"] == str(shown.outputs)


def test_the_keys_of_the_step_that_was_not_made_are_those_it_has_in_the_longer_run() -> None:
    shown = facts(Slug.MASK)

    following = TRACE.events[shown.decode_steps + 1]
    assert int(question(Slug.MASK).answer) == following.context_tokens
    assert shown.prefill_cells == sum(range(1, shown.prompt_tokens + 1))


def test_the_formula_of_weight_reuse_is_worked_out_with_the_runs_numbers() -> None:
    said = beside_picture(TEXTS[Slug.WEIGHT_REUSE], facts(Slug.WEIGHT_REUSE))

    factors, result = re.findall(r": (2 [^=T]+) = \*\*([\d.]+)\sMFLOP", said)[-1]
    numbers = [int(factor.replace(",", "")) for factor in factors.split(" \u00b7 ")]
    product = 1
    for number in numbers:
        product *= number
    assert numbers[1] == len(TRACE.requests[0].prompt_ids)
    assert float(result) == pytest.approx(product / 1e6, rel=5e-3)
    assert float(question(Slug.WEIGHT_REUSE).answer.split()[0]) == pytest.approx(
        product / numbers[1] / 1e6, rel=5e-3
    )


def test_a_prompt_turns_where_its_intensity_reaches_the_ridge() -> None:
    shown = facts(Slug.ROOFLINE)
    turn, roofs = shown.compute_bound_tokens, TRACE.info.ceilings
    assert turn is not None
    assert roofs is not None

    assert shown.prefill_of(turn).flops_per_byte >= roofs.ridge_flops_per_byte
    assert shown.prefill_of(turn - 1).flops_per_byte < roofs.ridge_flops_per_byte
    assert question(Slug.ROOFLINE).answer == "reading memory"
    assert f"From **{turn} tokens** on" in TEXTS[Slug.ROOFLINE].figures(shown)


def test_a_prompt_of_one_token_beyond_the_ridge_is_limited_by_computing() -> None:
    roofs = TRACE.info.ceilings
    assert roofs is not None
    low = replace(roofs, flops_per_s=1.0)
    found = facts_of(replace(TRACE, info=replace(TRACE.info, ceilings=low)))
    assert found is not None

    asked = TEXTS[Slug.ROOFLINE].question(found)

    assert asked.answer == "computing"
    assert "right of the ridge" in asked.right


def test_the_batch_at_which_kv_overtakes_the_weights_is_the_first_that_does() -> None:
    shown = facts(Slug.BATCHING)
    rows = int(question(Slug.BATCHING).answer.replace(",", ""))

    def has_more_kv(count: int) -> bool:
        cost = decode_cost(TRACE.info.shape, count, shown.stored)
        return cost.kv_read_bytes >= cost.weight_bytes

    assert has_more_kv(rows)
    assert not has_more_kv(rows - 1)


def test_the_context_at_which_kv_takes_as_many_bytes_is_the_first_that_does() -> None:
    length = int(question(Slug.CONTEXT).answer.replace(",", ""))

    def has_more_kv(tokens: int) -> bool:
        cost = step_cost(TRACE.info.shape, [(1, tokens)])
        return cost.kv_read_bytes >= cost.weight_bytes

    assert has_more_kv(length)
    assert not has_more_kv(length - 1)
    assert "at most 8,192 tokens" in question(Slug.CONTEXT).right


def test_a_run_without_a_step_or_without_matrices_has_no_figures() -> None:
    assert facts_of(None) is None
    assert facts_of(replace(TRACE, events=())) is None
    unlisted = replace(TRACE.info, shape=replace(TRACE.info.shape, matrices=()))
    assert facts_of(replace(TRACE, info=unlisted)) is None


def test_without_roofs_the_roofline_says_no_number_and_still_asks_what_it_can_explain() -> None:
    found = facts_of(counted_trace(roofs=None))
    assert found is not None

    assert TEXTS[Slug.ROOFLINE].figures(found) == ""
    assert TEXTS[Slug.ROOFLINE].changed(found)["Prefill is limited by"] == "not known"


def test_a_run_of_one_step_can_be_told_in_every_chapter() -> None:
    """The first chapter's run has no decode step, and a model may end its answer at once."""
    found = facts_of(counted_trace(prompt_tokens=3, steps=1))
    assert found is not None

    for text in TEXTS.values():
        assert len(beside_picture(text, found).split()) <= MOST_WORDS
        assert text.changed(found)
        assert text.question(found).answer
    assert all(reading(slug, found) for slug in Slug if slug is not Slug.ROOFLINE)


def test_the_factors_of_weight_reuse_give_the_bytes_that_are_said() -> None:
    said = reading(Slug.WEIGHT_REUSE, facts(Slug.WEIGHT_REUSE)).replace("\u00a0", " ")

    rows, columns, each, read = re.findall(
        r"([\d,]+) \u00b7 ([\d,]+) weights of (\d+) bytes are ([\d.]+) MB", said
    )[0]
    product = int(rows.replace(",", "")) * int(columns.replace(",", "")) * int(each)
    assert float(read) == pytest.approx(product / 1e6, rel=2e-3)
    assert "the model has 30 of this kind" in said


def test_how_far_prefill_is_below_its_roof_is_said_with_the_reason() -> None:
    shown = facts(Slug.ROOFLINE)
    roofs, prefill = TRACE.info.ceilings, shown.step(0)
    assert roofs is not None
    least_s = max(prefill.flops / roofs.flops_per_s, prefill.bytes_moved / roofs.bytes_per_s)

    said = reading(Slug.ROOFLINE, shown).replace("\u00a0", " ")

    reached = float(re.findall(r"it reaches ([\d.]+) % of it", said)[0])
    assert reached == pytest.approx(100 * least_s / TRACE.events[0].duration_s, rel=1e-2)
    assert said.endswith("those of a short prompt are small.")
    disturbed = replace(shown, is_prefill_disturbed=True)
    assert reading(Slug.ROOFLINE, disturbed).endswith("other programs disturbed it.")
    assert reading(Slug.ROOFLINE, replace(shown, info=replace(TRACE.info, ceilings=None))) == ""


def test_the_cost_of_a_step_grows_by_the_kv_alone_as_the_context_does() -> None:
    shown = facts(Slug.CONTEXT)
    costs = context_facts([shown])
    assert costs is not None
    rows = band_rows(costs)
    weights = [row["ms"] for row in rows if row["part"] == BANDS[0]]
    kv = {row["context"]: row["ms"] for row in rows if row["part"] == BANDS[1]}
    roofs = TRACE.info.ceilings
    assert roofs is not None

    assert len(set(weights)) == 1
    assert max(kv) == 8192
    read = 2 * 30 * 3 * 64 * 4 * 8192 + 2 * 30 * 3 * 64 * 4  # keys and values, and the new one
    assert kv[8192] == pytest.approx(1e3 * read / roofs.bytes_per_s, rel=1e-3)
    [point] = point_rows(costs)
    assert (point["context"], point["ms"]) == (
        shown.stored,
        pytest.approx(1e3 * (shown.decode_s or 0), abs=1e-4),
    )
    assert context_facts([replace(shown, info=replace(TRACE.info, ceilings=None))]) is None


def test_the_recorded_sweeps_steps_of_one_row_are_the_points_over_the_context() -> None:
    measured = recorded_measurements()
    assert measured is not None

    points = point_rows(recorded_context_facts(measured))

    ones = [point for point in measured.batches.points if point.batch == 1]
    assert [point["context"] for point in points] == sorted(one.context_tokens for one in ones)
    assert len(points) > 1


def test_runs_of_several_sizes_become_points_at_their_own_context() -> None:
    one, other = facts(Slug.BATCHING), replace(facts(Slug.BATCHING), rows=4)
    shorter = facts(Slug.CACHE)

    made = batch_facts([shorter, other, one])

    assert [point.batch for point in made.points] == [1, 4]
    assert made.contexts == (one.stored, 512, 2048)
    assert made.points[0].median_s == one.decode_s
    measured = recorded_measurements()
    assert measured is not None
    assert recorded_batch_facts(measured).points == measured.batches.points


def test_a_time_that_other_programs_disturbed_says_so() -> None:
    disturbed = tuple(replace(event, run_delay_s=event.duration_s / 2) for event in TRACE.events)
    found, quiet = facts_of(replace(TRACE, events=disturbed)), facts_of(TRACE)
    assert found is not None
    assert quiet is not None

    for slug, name in ((Slug.ROOFLINE, "Prefill took"), (Slug.CONTEXT, "Decode step time, median")):
        assert TEXTS[slug].changed(found)[name].endswith(", disturbed by other programs")
        assert TEXTS[slug].changed(quiet)[name].endswith("ms")
    assert batch_facts([found]).points[0].is_disturbed
