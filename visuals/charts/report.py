"""One run or several as a single HTML file that opens offline: charts, figures, texts, run file.

Nothing is loaded from anywhere: the chart library, the rows and the run file are inside, and the
page's own policy forbids requests. Prompts and answers are text and never markup. No torch.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from inference.records.finite import finite
from inference.records.run import RunTrace
from inference.runs.comparisons import Subject, SubjectFigures, figures_of, subjects_of
from inference.runs.run_file import to_json
from visuals.charts.chart_files import NamedChart, comparison_charts, run_charts, styled_spec
from visuals.charts.compare import EXPLANATION
from visuals.charts.compare_table import table_html
from visuals.charts.differences import agreement, differing_parts, marked_html
from visuals.charts.figures import Figure, headline
from visuals.charts.inline_script import inline_script
from visuals.charts.made_with import made_with
from visuals.charts.report_terms import SCRIPT, ReportTerms, numbers_of

_STYLE = (Path(__file__).parent / "report.css").read_text(encoding="utf-8")
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:"
)
DRAW = """
const charts = JSON.parse(document.getElementById("charts").textContent);
let drawn = 0;
for (const [name, spec] of Object.entries(charts)) {
  const box = document.getElementById("chart-" + name);
  try {
    await window.vegaEmbed(box, spec, { renderer: "svg", actions: { editor: false } });
    drawn += 1;
  } catch (error) {
    box.textContent = "This chart cannot be drawn here: " + error.message;
  }
}
document.documentElement.dataset.drawn = String(drawn);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What the report is about; ``headline`` is empty but for a single run."""

    traces: Sequence[RunTrace]
    subjects: Sequence[Subject]
    figures: Sequence[SubjectFigures]
    charts: Sequence[NamedChart]
    headline: Sequence[Figure]


def report_html(traces: Sequence[RunTrace], script: bytes, *, title: str) -> str:
    """Return the report of one run or of a comparison.

    Args:
        traces: At least one.
        script: The module that sets ``window.vegaEmbed``.
        title: Its heading.
    """
    subjects = subjects_of(traces)
    is_one = len(subjects) == 1 and len(traces) == 1
    charts = run_charts(traces[0]) if is_one else comparison_charts(subjects)
    parts = _Parts(
        traces=traces,
        subjects=subjects,
        figures=[figures_of(one) for one in subjects],
        charts=charts,
        headline=headline(traces[0], traces[0].requests[0].request_id) if is_one else (),
    )
    terms = ReportTerms(numbers_of(parts.headline))
    specs = {one.name: styled_spec(one.build()) for one in charts}
    body = "\n".join(
        (
            f"<h1>{escape(title)}</h1>",
            _made_with(parts, terms),
            _headline(parts, terms),
            _warnings(traces),
            f"<h2>Figures</h2>{table_html(parts.figures, terms.marked)}",
            _charts(parts, terms),
            _texts(parts),
            _run_file(parts),
        )
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main>{body}</main>"
        f'<script type="application/json" id="charts">{_json(specs)}</script>'
        f'<script type="module">{inline_script(script.decode())}</script>'
        f'<script type="module">{SCRIPT}</script>'
        f'<script type="module">{DRAW}</script></body></html>'
    )


def _made_with(parts: _Parts, terms: ReportTerms) -> str:
    """Return what the runs were made with, each distinct setting once."""
    pairs = {**made_with(parts.traces), "Runs": str(len(parts.traces))}
    rows = "".join(
        f"<dt>{terms.marked(name)}</dt><dd>{escape(text)}</dd>" for name, text in pairs.items()
    )
    return f'<dl class="made-with">{rows}</dl>'


def _headline(parts: _Parts, terms: ReportTerms) -> str:
    """Return the figures of a single run as they stand over its panel."""
    items = "".join(
        f'<li title="{escape(one.explanation)}"><span>{terms.marked(one.label)}</span>'
        f'<b data-figure="{escape(one.key)}">{escape(one.value)}</b> '
        f"<span>{escape(one.unit)}</span> <small>{terms.marked(one.source.value)}"
        f"{terms.marked(f', {one.note}' if one.note else '')}</small></li>"
        for one in parts.headline
    )
    return f'<ul class="headline">{items}</ul>' if items else ""


def _warnings(traces: Sequence[RunTrace]) -> str:
    """Return what must be known of all figures below: where a model failed its self-check."""
    said = dict.fromkeys(trace.info.check_warning for trace in traces if trace.info.check_warning)
    return "".join(f'<p class="check-warning">{escape(one)}</p>' for one in said)


def _charts(parts: _Parts, terms: ReportTerms) -> str:
    """Return a place for each chart, in words where it cannot be seen."""
    is_compared = len(parts.subjects) > 1
    note = f'<p class="footnote">{terms.marked(EXPLANATION)}</p>' if is_compared else ""
    figures = "".join(
        f"<figure><figcaption><h3>{terms.marked(one.title)}</h3></figcaption>"
        f'<div id="chart-{one.name}" class="chart"></div>'
        f'<p class="footnote">{terms.marked(one.caption)}</p></figure>'
        for one in parts.charts
    )
    return f"<h2>Charts</h2>{note}<div class='charts'>{figures}</div>"


def _texts(parts: _Parts) -> str:
    """Return every prompt and answer; words that are not in the first answer are marked."""
    first = parts.subjects[0].samples[0]
    cards: list[str] = []
    for subject in parts.subjects:
        sample = subject.samples[0]
        is_first = subject is parts.subjects[0]
        marked = (
            escape(sample.text)
            if is_first
            else marked_html(differing_parts(first.text, sample.text))
        )
        note = "" if is_first else f" ({agreement(first.token_ids, sample.token_ids)})"
        cards.append(
            f"<article><h3>{escape(subject.label)}: {escape(subject.title)}</h3>"
            f"<h4>Prompt</h4><pre>{escape(sample.request.prompt_text)}</pre>"
            f"<h4>Answer{escape(note)}</h4><pre>{marked}</pre></article>"
        )
    note = "" if len(cards) == 1 else "<p>Marked: words not in the first answer.</p>"
    return f"<h2>Prompts and answers</h2>{note}<div class='texts'>{''.join(cards)}</div>"


def _run_file(parts: _Parts) -> str:
    """Return a link that saves the run file, which is inside the report."""
    content = gzip.compress(to_json(tuple(parts.traces)).encode(), mtime=0)
    data = base64.b64encode(content).decode()
    return (
        '<h2>Run file</h2><p><a download="token-by-token.json.gz" id="run-file" '
        f'href="data:application/gzip;base64,{data}">Save the run file</a> that this report was '
        "made from: every step, token, byte count and reading. The program opens it.</p>"
    )


def _json(value: object) -> str:
    """Return JSON that cannot end the script element it stands in."""
    return json.dumps(finite(value), allow_nan=False).replace("<", "\\u003c")
