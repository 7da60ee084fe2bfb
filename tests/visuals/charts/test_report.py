"""The report: one file, no requests, the page's numbers, and prompts that stay text."""

from __future__ import annotations

import base64
import gzip
import json
import re
from dataclasses import replace
from html import escape

from inference.records.run import RunTrace
from inference.runs.comparisons import figures_of, subjects_of
from inference.runs.run_file import read_bytes
from tests.builders import run_info
from tests.visuals.traces import trace_of
from visuals.charts.compare_table import table_rows
from visuals.charts.figures import headline
from visuals.charts.report import report_html
from visuals.words.glossary import TERM_OF, terms_in

SCRIPT = b"window.vegaEmbed = () => {}; const end = '</script>';"
EVIL = b'</script><img src=x onerror="hacked()"><!--'


def run(run_id: str = "r", prompt: bytes = EVIL, step_time_s: float = 0.05) -> RunTrace:
    trace = trace_of([prompt], [b" x", EVIL, b" z"], step_time_s=step_time_s)
    return replace(trace, info=run_info(run_id))


def test_nothing_of_a_prompt_or_an_answer_is_markup() -> None:
    html = report_html([run()], SCRIPT, title="A <b>title</b>")

    assert "<img" not in html
    assert "<b>title" not in html
    assert html.count("</script>") == html.count("<script") == 4
    assert "&lt;img src=x onerror=" in html


def test_nothing_is_loaded_from_anywhere() -> None:
    html = report_html([run(), run("s", b"other")], SCRIPT, title="Two runs")
    without_data = re.sub(r"data:application/gzip;base64,[\w+/=]+", "", html)

    assert "default-src 'none'" in html
    assert re.findall(r'(?:src|href)="(?!data:)[^"]', without_data) == []
    addresses = set(re.findall(r"https?://[^\"' ]+", without_data))
    assert [one for one in addresses if "vega.github.io/schema" not in one] == []


def test_a_single_run_shows_the_figures_of_its_panel() -> None:
    trace = run()

    html = report_html([trace], SCRIPT, title="One run")

    figures = headline(trace, "r0")
    assert len(figures) == 6
    for figure in figures:
        assert f'data-figure="{figure.key}">{figure.value}</b>' in html


def test_every_term_in_the_words_of_a_report_is_marked_once_with_its_card() -> None:
    html = report_html([run()], SCRIPT, title="One run")

    marked = re.findall(r'aria-describedby="term-(\w+)"', html)
    assert len(marked) == len(set(marked)) > 10
    shown = re.sub(r'<span class="about".*?</span>', "", html)
    words = re.sub(r"<(pre|script|style|title)[ >].*?</\1>|<[^>]+>", "\n", shown, flags=re.DOTALL)
    body = words[words.index("Figures") :]
    assert {term.key for text in body.split("\n") for term in terms_in(text)} <= set(marked)
    for key in marked:
        [card] = re.findall(rf'id="term-{key}">(.*?)</span></span>', html)
        assert escape(TERM_OF[key].sentence) in card
    [ttft] = [figure for figure in headline(run(), "r0") if figure.key == "ttft"]
    assert f"In this run: {ttft.value} {ttft.unit}." in html


def test_terms_in_a_prompt_and_in_an_answer_are_never_marked() -> None:
    html = report_html([run(prompt=b"goodput, padding, slot")], SCRIPT, title="One run")

    assert not {"goodput", "padding", "slot"} & set(re.findall(r'id="term-(\w+)"', html))


def test_a_comparison_shows_the_table_of_its_page() -> None:
    traces = [run(), run("s", b"other", 0.07)]

    html = report_html(traces, SCRIPT, title="Two runs")

    text = re.sub(r"<[^>]+>", " ", html)
    rows = table_rows([figures_of(one) for one in subjects_of(traces)])
    assert len(rows) == 2
    for cells in rows:
        for cell in cells[2:]:
            assert cell.partition(" (")[0] in text


def test_the_rows_of_every_chart_are_inside() -> None:
    html = report_html([run(), run("s", b"other")], SCRIPT, title="Two runs")
    [specs] = re.findall(r'id="charts">(.*?)</script>', html)

    charts = json.loads(specs)

    assert set(charts) == {"latency-by-step", "latency-by-context", "ttft-by-prompt", "kv-growth"}
    assert len(charts["latency-by-step"]["datasets"]["lines"]) == 4
    for name in charts:
        assert f'id="chart-{name}"' in html


def test_the_run_file_inside_is_the_runs_themselves() -> None:
    traces = (run(), run("s", b"other"))

    html = report_html(traces, SCRIPT, title="Two runs")

    [data] = re.findall(r"base64,([\w+/=]+)", html)
    assert read_bytes(gzip.decompress(base64.b64decode(data))) == traces


def test_a_model_that_failed_its_check_is_said_over_the_figures_and_in_what_it_was_made_with() -> (
    None
):
    warning = "The self-check differs: ids <3 of 8>."
    marked = replace(run(), info=replace(run_info(), check_warning=warning))

    html = report_html([marked, marked, run()], SCRIPT, title="Runs")

    said = '<p class="check-warning">The self-check differs: ids &lt;3 of 8&gt;.</p>'
    assert html.count(said) == 1
    assert html.index(said) < html.index("<h2>Figures</h2>")
    assert "<dt>Self-check</dt>" in html
    assert 'check-warning">' not in report_html([run()], SCRIPT, title="A run")


def test_an_empty_run_has_a_report() -> None:
    html = report_html([trace_of([b"a"], [])], SCRIPT, title="Nothing yet")

    assert "Nothing is stored yet." in html
