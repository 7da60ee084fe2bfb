"""Downloads of runs: run file, tables, timeline, report, page that plays, and each chart."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence

import streamlit as st

from inference.records.run import RunTrace
from inference.runs.comparisons import figures_of, subjects_of
from inference.runs.exports import csv_file, figures_csv, steps_csv, steps_parquet
from inference.runs.perfetto import perfetto_json
from inference.runs.run_file import to_json
from visuals.charts.chart_files import NamedChart, png, spec_json, svg, titled
from visuals.charts.report import report_html
from visuals.live.vega_bundle import bundle
from visuals.panel.player_page import player_page

_Content = str | bytes


def export_menu(
    traces: Sequence[RunTrace], charts: Sequence[NamedChart], *, title: str, stem: str
) -> None:
    """Draw the menu of everything that these runs can be exported as.

    Args:
        traces: At least one.
        charts: Those on the page.
        title: Heading of the report.
        stem: Beginning of the files' names, made by the program.
    """
    with st.popover("Export", icon=":material/download:", key="export"):
        _download(
            "Report (HTML)",
            (f"{stem}.html", "text/html"),
            lambda: report_html(traces, bundle(), title=title),
            help_text="One file with charts, figures, texts and the run file; opens offline.",
        )
        _download(
            "Run file (JSON, gzip)",
            (f"{stem}.json.gz", "application/gzip"),
            lambda: gzip.compress(to_json(tuple(traces)).encode(), mtime=0),
            help_text="Every step, token, byte count and reading; this program opens it again.",
        )
        if len(traces) == 1:
            _download(
                "Page that plays (HTML)",
                (f"{stem}-player.html", "text/html"),
                lambda: player_page(traces[0], title=title).content,
                help_text="The run in all its panels, to play and to look at step by step, in one "
                "file that opens offline in any browser.",
            )
        if len(traces) > 1:
            _download(
                "Figures (CSV)",
                (f"{stem}-figures.csv", "text/csv"),
                lambda: csv_file(
                    figures_csv([figures_of(subject) for subject in subjects_of(traces)])
                ),
                help_text="The table of this page, in seconds and bytes.",
            )
        _download(
            "Steps (CSV)",
            (f"{stem}-steps.csv", "text/csv"),
            lambda: csv_file(steps_csv(traces)),
            help_text="One row per step. For one request, step_time_s + wait_s add up to its total "
            "time.",
        )
        _download(
            "Steps (Parquet)",
            (f"{stem}-steps.parquet", "application/vnd.apache.parquet"),
            lambda: steps_parquet(traces),
            help_text="The same rows, typed.",
        )
        if len(traces) == 1:
            _download(
                "Timeline (Perfetto)",
                (f"{stem}.trace.json", "application/json"),
                lambda: perfetto_json(traces[0]),
                help_text="Open it at ui.perfetto.dev or chrome://tracing.",
            )
        _chart_downloads(traces, charts, stem)


def _chart_downloads(traces: Sequence[RunTrace], charts: Sequence[NamedChart], stem: str) -> None:
    """Draw the downloads of the chart chosen."""
    titles = {chart.title: chart for chart in charts}
    chosen = titles[st.selectbox("Chart", list(titles), key="export-chart")]
    with st.container(horizontal=True, gap="xsmall"):
        name = f"{stem}-{chosen.name}"
        _download("PNG", (f"{name}.png", "image/png"), lambda: png(titled(chosen, traces)))
        _download("SVG", (f"{name}.svg", "image/svg+xml"), lambda: svg(titled(chosen, traces)))
        _download(
            "Vega-Lite",
            (f"{name}.vl.json", "application/json"),
            lambda: spec_json(titled(chosen, traces)),
        )


def _download(
    label: str,
    file: tuple[str, str],
    make: Callable[[], _Content],
    *,
    help_text: str | None = None,
) -> None:
    """Draw one button; its file is made when it is pressed."""
    name, mime = file
    st.download_button(
        label,
        data=make,
        file_name=name,
        mime=mime,
        key=f"download-{label}",
        on_click="ignore",
        help=help_text,
    )
