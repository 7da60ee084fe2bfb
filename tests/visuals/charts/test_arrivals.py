"""What is drawn of a run at an address: parts of TTFT, gaps, mask, K/V, text, side by side."""

from __future__ import annotations

from dataclasses import replace

from inference.figures.arrivals import arrival_figures, ttft_parts
from tests.builders import run_info
from tests.inference.remote.kept_runs import kept_run
from tests.visuals.traces import trace_of
from visuals.charts.arrival_table import figure_rows, kv_words
from visuals.charts.arrival_text import answer_html
from visuals.charts.arrivals import (
    ENGINE,
    LEFT,
    candidate_rows,
    gap_name,
    gap_rows,
    mask_rows,
    said_tokens,
    ttft_rows,
)
from visuals.charts.side_by_side import FROM_READS, FROM_STEPS, prompts_of, side_by_side

REQUEST = kept_run("one").requests[0]
FIGURES = arrival_figures(REQUEST)


def test_the_parts_of_ttft_follow_one_another_each_by_its_clock() -> None:
    rows = ttft_rows(ttft_parts(REQUEST))

    assert [(row["part"], row["start"], row["clock"]) for row in rows] == [
        ("queue", 0.0, ENGINE),
        ("prefill", 250.0, ENGINE),
        ("the rest", 750.0, LEFT),
    ]
    assert rows[-1]["end"] == 1000.0


def test_gaps_with_two_tokens_in_a_read_are_not_called_itl() -> None:
    assert gap_name(FIGURES) == "Gap between arrivals"
    assert gap_rows(FIGURES)[0] == {"arrival": 2, "gap": 500.0}


def test_the_last_token_is_in_no_row_of_the_mask() -> None:
    assert max(row["query"] for row in mask_rows(4, 3) if isinstance(row["query"], int)) == 6
    assert {row["phase"] for row in mask_rows(4, 1)} == {"prefill"}


def test_what_an_engine_sends_is_text_and_reads_are_apart() -> None:
    html = answer_html(REQUEST)

    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert html.count('class="read') == 2
    assert '<sup aria-hidden="true">2</sup>' in html


def test_candidates_are_probabilities_of_which_one_was_selected() -> None:
    [token] = said_tokens(REQUEST)

    rows = candidate_rows(token)

    assert [row["selected"] for row in rows] == ["selected", "not selected"]
    assert [round(float(str(row["probability"])), 3) for row in rows] == [0.607, 0.223]


def test_every_figure_has_an_origin_and_kv_is_counted_by_name_only() -> None:
    rows = figure_rows(REQUEST, FIGURES)

    assert all(row["Where it comes from"] for row in rows)
    assert {"Queue", "Prefill"} <= {row["Figure"] for row in rows}
    assert "147,456 bytes a token" in kv_words(REQUEST, FIGURES)  # 36 layers, 8 heads of 128, x 4
    unknown = replace(REQUEST, ask=replace(REQUEST.ask, model_id="m"))
    assert kv_words(unknown, FIGURES) == ""


def test_local_and_remote_stand_side_by_side_each_with_what_it_rests_on() -> None:
    local = replace(trace_of([b"why"], [b"be", b"cause"]), info=run_info("here"))

    rows = side_by_side([kept_run("one")], [local])

    assert [row["Rests on"] for row in rows] == [FROM_READS, FROM_STEPS]
    assert rows[0]["Between"] == "500\u00a0ms (Gap between arrivals, median)"
    assert prompts_of([kept_run("one")], [local]) == {"why"}
    assert len(prompts_of([kept_run("one", "other")], [local])) == 2
