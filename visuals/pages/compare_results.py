"""The results of a comparison: figures, charts, and the texts with their differences marked."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import streamlit as st

from inference.records.run import RunTrace
from inference.runs.comparisons import Subject, figures_of, subjects_of
from visuals.charts.chart_files import NamedChart, comparison_charts
from visuals.charts.compare import EXPLANATION
from visuals.charts.compare_table import table_html
from visuals.charts.differences import agreement, differing_parts, marked_html
from visuals.pages.drawn import draw_chart
from visuals.pages.export_menu import export_menu
from visuals.pages.session import bound

STYLE = """<style>
.scroll { overflow-x: auto; }
table.figures { border-collapse: collapse; width: 100%; font-size: 0.95rem; }
table.figures caption { position: absolute; width: 1px; height: 1px; overflow: hidden; }
table.figures th, table.figures td { text-align: left; vertical-align: top; padding: 0.3rem 0.55rem;
  border-bottom: 1px solid rgba(128, 128, 128, 0.35); }
table.figures td.number { white-space: nowrap; font-variant-numeric: tabular-nums; }
table.figures td small { display: block; opacity: 0.8; }
table.figures td.words { min-width: 8.5rem; }
table.figures th[scope="row"] { position: sticky; left: 0; background: inherit; }
.sideways { display: none; opacity: 0.8; font-size: 0.88rem; margin: 0.3rem 0; }
@media (max-width: 1100px) { .sideways { display: block; } }
.footnote { opacity: 0.8; font-size: 0.88rem; margin: 0.3rem 0; }
.texts { display: grid; gap: 0.9rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 340px), 1fr)); }
.texts article { border: 1px solid rgba(128, 128, 128, 0.45); border-radius: 8px;
  padding: 0.7rem 0.9rem; min-width: 0; }
.texts h3 { font-size: 1rem; margin: 0 0 0.4rem; padding: 0; }
.texts p { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; max-height: 20rem;
  overflow-y: auto; }
.texts p.note { opacity: 0.8; font-size: 0.88rem; margin-bottom: 0.4rem; }
.texts mark { background: rgba(230, 159, 0, 0.35); color: inherit; border-radius: 2px; }
</style>"""


def show_results(traces: Sequence[RunTrace]) -> None:
    """Draw the runs side by side: figures, answers, charts."""
    subjects = subjects_of(traces)
    charts = comparison_charts(subjects)
    with st.container(horizontal=True, vertical_alignment="center", key="results-head"):
        st.subheader("Side by side", anchor=False)
        export_menu(traces, charts, title="Comparison of runs", stem="token-by-token-comparison")
    st.html(STYLE + table_html([figures_of(subject) for subject in subjects]))
    _texts(subjects)
    _charts(charts)


def _charts(charts: Sequence[NamedChart]) -> None:
    st.subheader("Charts", anchor=False)
    st.caption(EXPLANATION)
    with st.container(key="comparison-charts"):
        for pair in (charts[start : start + 2] for start in range(0, len(charts), 2)):
            for column, named in zip(st.columns(2), pair, strict=False):
                with column:
                    st.markdown(f"**{named.title}**")
                    chart = named.build().configure_axis(labelFontSize=14, titleFontSize=14)
                    draw_chart(chart, key=f"chart-{named.name}")
                    if named.caption:
                        st.caption(named.caption)


def _texts(subjects: Sequence[Subject]) -> None:
    """Show each answer; words that are not in the chosen one are marked."""
    labels = [subject.label for subject in subjects]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("Answers", anchor=False)
        if len(subjects) > 1:
            chosen = st.selectbox("Marked against", labels, **bound("reference", labels), width=160)
        else:
            chosen = labels[0]
    reference = subjects[labels.index(chosen)]
    st.html(
        f'<div class="texts">{"".join(_card(subject, reference) for subject in subjects)}</div>'
    )


def _card(subject: Subject, reference: Subject) -> str:
    sample, against = subject.samples[0], reference.samples[0]
    if subject is reference:
        note, text = "", escape(sample.text)
    else:
        note = agreement(against.token_ids, sample.token_ids)
        text = marked_html(differing_parts(against.text, sample.text))
    answers = len({answer.text for answer in subject.samples})
    if answers > 1:
        note += f"{'; ' if note else ''}the repeats gave {answers} different answers"
    return (
        f'<article><h3 translate="no">{escape(subject.label)}: {escape(subject.title)}</h3>'
        f'<p class="note">{escape(note)}</p>'
        f'<p translate="no">{text or "(no text)"}</p></article>'
    )
