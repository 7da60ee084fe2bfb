"""Charts, table and texts of runs side by side, as data."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from inference.records.costs import Ceilings, Source
from inference.records.model import MatrixRole, WeightMatrix
from inference.records.run import RunTrace
from inference.runs.comparisons import figure_spread, figures_of, subjects_of
from tests.builders import KV_BYTES_PER_TOKEN, TINY_SHAPE, run_info
from tests.visuals.traces import batch_of, trace_of
from visuals.charts import compare
from visuals.charts.chart_files import (
    comparison_charts,
    png,
    run_charts,
    shared_ceilings,
    spec_json,
    svg,
    titled,
)
from visuals.charts.compare_rows import (
    cache_rows,
    fit_caption,
    roofline_rows,
    subject_step_rows,
    ttft_rows,
)
from visuals.charts.compare_table import COLUMNS, table_html, table_rows, verdict
from visuals.charts.differences import agreement, differing_parts, marked_html
from visuals.charts.letters import letter_rows
from visuals.charts.theme import Row

ROOFS = Ceilings(flops_per_s=1e9, bytes_per_s=1e8, source=Source.MEASURED, method="a test")
MATRIX = WeightMatrix(
    name="lm_head", in_features=16, out_features=258, copies=1, bytes=16512, role=MatrixRole.HEAD
)


def run(prompt: str, step_time_s: float = 0.1, *, run_id: str = "r", tokens: int = 6) -> RunTrace:
    outputs = [f" w{number}".encode() for number in range(tokens)]
    trace = trace_of([letter.encode() for letter in prompt], outputs, step_time_s=step_time_s)
    return replace(trace, info=run_info(run_id))


def counted(trace: RunTrace, ceilings: Ceilings | None = None) -> RunTrace:
    """Return the run with a shape whose work can be counted."""
    shape = replace(
        TINY_SHAPE,
        matrices=(MATRIX,),
        kv_row_bytes_per_layer=(32, 32),
        pair_flops_per_layer=(64, 64),
        windows_per_layer=(None, None),
    )
    return replace(trace, info=replace(trace.info, shape=shape, ceilings=ceilings))


SUBJECTS = subjects_of([run("ab"), run("abcd", 0.2), run("abcd", 0.4, run_id="again")])


def test_decode_is_aligned_at_its_start_and_repeats_are_joined_to_their_median() -> None:
    rows = subject_step_rows(SUBJECTS[1], "step")

    assert [row["k"] for row in rows] == [1, 2, 3, 4, 5]
    assert [row["ms"] for row in rows] == pytest.approx([300.0] * 5)
    assert [row["k"] for row in subject_step_rows(SUBJECTS[1], "context")] == [5, 6, 7, 8, 9]


def test_the_cache_begins_with_what_prefill_stored() -> None:
    rows = cache_rows(SUBJECTS[0])

    assert [row["k"] for row in rows] == [0, 1, 2, 3, 4, 5]
    assert rows[0]["mib"] == pytest.approx(2 * KV_BYTES_PER_TOKEN / 2**20, abs=1e-6)


def test_long_runs_are_thinned_and_keep_their_median() -> None:
    [subject] = subjects_of([run("ab", tokens=2001)])

    rows = subject_step_rows(subject, "step")

    assert len(rows) <= 400
    assert [row["ms"] for row in rows] == pytest.approx([100.0] * len(rows))


def test_the_line_through_ttft_rests_on_warm_runs_of_four_lengths() -> None:
    prompts = ("ab", "abcd", "abcdefg", "abcdefgh")
    runs = [run(prompt, 0.05 * len(prompt)) for prompt in prompts]
    cold, warm = subjects_of(runs), subjects_of([warmed(trace) for trace in runs])
    scattered = subjects_of([warmed(run(p, s)) for p, s in zip(prompts, (5, 9, 4, 6), strict=True)])

    assert "at least 4 prompt lengths" in fit_caption(cold)
    assert "at least 4 prompt lengths" in fit_caption(warm[:3])
    assert "50.0 ms" in fit_caption(warm)
    assert "scatter more" in fit_caption(scattered)
    drawn = [compare.ttft_by_prompt(ones).to_dict()["datasets"] for ones in (warm, scattered)]
    assert ["fit" in datasets for datasets in drawn] == [True, False]
    assert {row["kind"] for one in cold for row in ttft_rows(one)} == {"cold"}


def warmed(trace: RunTrace) -> RunTrace:
    """Return the run with no cold step."""
    return replace(trace, events=tuple(replace(event, cold=False) for event in trace.events))


def test_the_chart_of_the_cache_ends_where_the_table_says_it_does() -> None:
    """Of a batch the chart drew all rows and the table one."""
    subjects = subjects_of([run("ab"), batch_of(run("ab"), 4)])

    ends = [cache_rows(one)[-1]["mib"] for one in subjects]

    in_table = [figures_of(one).kv_bytes for one in subjects]
    assert ends == pytest.approx([(size or 0) / 2**20 for size in in_table], abs=1e-6)


def test_letters_at_one_place_are_written_side_by_side() -> None:
    rows: list[Row] = [
        {"label": "A", "k": 9, "ms": 100.0},
        {"label": "B", "k": 9, "ms": 100.5},
        {"label": "C", "k": 9, "ms": 150.0},
        {"label": "D", "k": 9, "ms": None},
    ]

    lettered = letter_rows(rows, ("k", "ms"), to_zero=True)

    assert [row["text"] for row in lettered] == ["A, B", "C"]
    assert letter_rows([], ("k", "ms")) == []
    close: list[Row] = [{"label": "A", "x": 0.5, "y": 1.4}, {"label": "B", "x": 0.5, "y": 1.2}]
    frame: list[Row] = [{"x": 0.2, "y": 3.0}, {"x": 30.0, "y": 100.0}]
    under_roofs = letter_rows(close, ("x", "y"), is_log=True, frame=frame)
    assert [row["text"] for row in under_roofs] == ["A, B"]
    beside: list[Row] = [{"label": "A", "x": 20.0, "y": 9.0}, {"label": "B", "x": 21.0, "y": 9.0}]
    [both] = letter_rows(beside, ("x", "y"), is_log=True, frame=frame)
    assert (both["text"], both["x"]) == ("A, B", 21.0), "no point stands on the letters"


def test_the_roofline_counts_work_and_measures_step_times_of_both_phases() -> None:
    [subject] = subjects_of([counted(run("ab"))])

    prefill, decode = roofline_rows(subject)

    assert (prefill["phase"], decode["phase"]) == ("prefill", "decode")
    head_flops = 2 * 16 * 258
    attention = (4 * 128 + 5 * 128 + 6 * 128 + 7 * 128) / 4  # the first decode step is cold
    assert decode["gflops"] == pytest.approx((head_flops + attention) / 0.1 / 1e9)
    assert roofline_rows(SUBJECTS[0]) == []


def test_roofs_are_drawn_only_where_all_runs_share_them() -> None:
    with_roofs = counted(run("ab"), ROOFS)
    device = replace(with_roofs.info.device, dtype="bfloat16")
    elsewhere = replace(with_roofs, info=replace(with_roofs.info, device=device))

    assert shared_ceilings(subjects_of([with_roofs])) == ROOFS
    assert shared_ceilings(subjects_of([with_roofs, elsewhere])) is None
    chart = compare.roofline_points(subjects_of([with_roofs]), ROOFS).to_dict()
    assert [row["gflops"] for row in chart["datasets"]["roofs"]][1] == pytest.approx(1.0)


@pytest.mark.parametrize("tokens", [0, 1, 2], ids=["empty", "a single step", "two steps"])
def test_every_chart_stands_short_runs(tokens: int) -> None:
    charts = comparison_charts(subjects_of([counted(run("ab", tokens=tokens))]))

    assert charts
    for one in charts:
        spec = one.build().to_dict()
        assert "NaN" not in json.dumps(spec)
        assert spec["description"]


def test_colours_and_letters_are_the_same_in_every_chart() -> None:
    scales = [
        json.dumps(layer["encoding"]["color"]["scale"])
        for chart in comparison_charts(SUBJECTS)
        for layer in chart.build().to_dict()["layer"]
        if "color" in layer["encoding"]
    ]

    assert set(scales) == {json.dumps({"domain": ["A", "B"], "range": ["#0072B2", "#D55E00"]})}


def test_axes_name_their_unit() -> None:
    spec = json.dumps([one.build().to_dict() for one in comparison_charts(SUBJECTS)])

    for title in ("ms per step", "decode step", "context, tokens", "TTFT, ms", "MiB stored"):
        assert f'"title": "{title}"' in spec


def test_a_run_is_taken_away_with_every_chart_that_has_something_to_show() -> None:
    plain = [one.name for one in run_charts(run("ab"))]
    whole = [one.name for one in run_charts(batch_of(counted(run("ab"), ROOFS), 2))]

    assert "roofline-step" not in plain
    assert {"roofline-step", "slots"} <= set(whole)
    assert "roofline-linear" not in whole  # no step was timed in parts
    assert len(set(whole)) == len(whole)


def test_a_chart_can_be_taken_away_as_picture_and_spec() -> None:
    chart = run_charts(run("ab"))[0].build()

    assert png(chart).startswith(b"\x89PNG")
    assert svg(chart).startswith("<svg")
    assert json.loads(spec_json(chart))["width"] == 900


def test_a_chart_taken_away_says_what_it_shows_and_what_it_was_made_with() -> None:
    """A picture had neither title nor model nor date, and the first of the list was one bar."""
    one, other = run("ab"), run("cd")
    first = run_charts(one)[0]

    alone = titled(first, [one]).to_dict()["title"]
    several = titled(first, [one, replace(other, info=replace(other.info, model_id="another"))])

    assert first.title == alone["text"] == "Decode, step by step"
    assert alone["subtitle"] == ["tiny \u00b7 float32 \u00b7 a test machine \u00b7 2 January 2026"]
    assert len(several.to_dict()["title"]["subtitle"]) == 2
    assert png(titled(first, [one])).startswith(b"\x89PNG")


def test_the_table_shows_medians_with_both_ends_and_what_a_difference_means() -> None:
    first, second = table_rows([figures_of(one) for one in SUBJECTS])

    told = dict(zip(COLUMNS, second, strict=True))
    assert dict(zip(COLUMNS, first, strict=True))["time per output token (TPOT), ms"] == "100"
    assert told["time per output token (TPOT), ms"] == "300 (200\u2013400)"
    assert told["time to first token (TTFT), ms"] == "300 (200\u2013400) (cold)"
    assert told["K/V at the end"] == "0.000549\u00a0MiB"
    assert "without repeats the spread is unknown" in told["decode against the first"]


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ((10.0, 10.1), (12.0, 12.1), "20 % faster, more than the spread"),
        ((10.0, 12.0), (10.0, 13.0), "5 % faster, smaller than the spread"),
        ((10.0, 10.1), (5.0, 5.1), "50 % slower, more than the spread"),
        ((10.0, 10.1), (58.2, 58.3), "5.8 times as fast, more than the spread"),
        ((), (1.0, 1.0), "unknown"),
    ],
)
def test_a_difference_smaller_than_the_spread_is_called_that(
    first: tuple[float, ...], second: tuple[float, ...], words: str
) -> None:
    assert verdict(figure_spread(first), figure_spread(second)) == words


def test_the_rate_of_all_rows_is_shown_only_where_there_is_a_batch() -> None:
    alone, batch = run("ab"), batch_of(run("ab"), 4)

    shown = table_html([figures_of(one) for one in subjects_of([alone, batch])])

    assert "all rows, tok/s" in shown
    assert '<td class="number">40.0</td>' in shown
    assert "all rows" not in table_html([figures_of(one) for one in subjects_of([alone])])


def test_a_run_by_itself_is_compared_with_nothing() -> None:
    """Its report had the column "decode against the first" with a dash in it."""
    alone = table_html([figures_of(one) for one in subjects_of([run("ab")])])

    assert "against the first" not in alone
    assert "side by side" not in alone
    assert "against the first" in table_html([figures_of(one) for one in SUBJECTS])


def test_nothing_of_a_prompt_is_markup_in_the_table() -> None:
    html = table_html([figures_of(one) for one in subjects_of([run("<b>"), run("&")])])

    assert "&lt;b&gt;" in html
    assert "<b>" not in html


def test_words_not_in_the_reference_are_marked_and_markup_is_text() -> None:
    parts = differing_parts("the sky is blue", "the sea is <b>blue</b>")

    assert "".join(part.text for part in parts) == "the sea is <b>blue</b>"
    assert next(part.text for part in parts if part.is_different) == "sea"
    assert "<mark>sea</mark>" in marked_html(parts)
    assert "<b>" not in marked_html(parts)
    assert not any(part.is_different for part in differing_parts("a b", "a b"))
    assert marked_html(differing_parts("a b c", "x y c")) == "<mark>x y</mark> c"


def test_very_long_texts_are_compared_in_part_and_kept_whole() -> None:
    text = "word " * 5000

    parts = differing_parts("word " * 2000, text)

    assert "".join(part.text for part in parts) == text
    assert not parts[-1].is_different


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ((1, 2, 3), "the same tokens"),
        ((1, 2), "the same for all 2 tokens of the shorter one"),
        ((1, 9, 3), "the same for 1 token, then different"),
        ((9,), "different from the start"),
    ],
)
def test_how_far_two_outputs_agree_is_said_in_tokens(ids: tuple[int, ...], words: str) -> None:
    assert agreement((1, 2, 3), ids) == words


def test_a_comparison_says_which_steps_it_leaves_out_and_which_it_cannot() -> None:
    quiet, noisy = run("a"), run("b")
    halves = [replace(e, run_delay_s=e.duration_s / 2 * (e.index > 1)) for e in quiet.events]
    whole = [replace(event, run_delay_s=event.duration_s / 2) for event in noisy.events]
    runs = [replace(quiet, events=tuple(halves)), replace(noisy, events=tuple(whole))]

    html = table_html([figures_of(one) for one in subjects_of(runs)])

    assert f"A: {len(halves) - 2} of {len(halves)} steps disturbed by other programs, left" in html
    assert f"B: All {len(whole)} steps disturbed by other programs, with no others" in html
    assert "in the TTFT of 1 of 1 run." in html
    assert "disturbed" not in table_html([figures_of(one) for one in subjects_of([run("a")])])
