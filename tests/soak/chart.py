"""The chart of a soak: memory, descriptors, threads and disk over its minutes."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from tests.soak.verdict import Sample
from visuals.charts.chart_files import CONFIG
from visuals.charts.theme import DECODE, KV, PREFILL, Chart, Row

COLOURS = {"app": PREFILL, "engine": DECODE, "kept runs": KV}
WIDTH, HEIGHT = 780, 110
MEMORY, DESCRIPTORS, THREADS, DISK = (
    "Memory (MiB)",
    "Open descriptors",
    "Threads",
    "Kept runs on disk (MB)",
)


def soak_chart(
    samples: Sequence[Sample], kills: Sequence[float], subtitle: str
) -> alt.VConcatChart:
    """Return four charts one below the other, with a line wherever the engine was killed.

    Args:
        samples: In the order of time.
        kills: Minutes.
        subtitle: Where, when and how long.
    """
    rows = [row for sample in samples for row in _rows(sample)]
    parts = [_part(rows, kills, title) for title in (MEMORY, DESCRIPTORS, THREADS, DISK)]
    drawn = alt.vconcat(*parts, spacing=12).properties(
        title=alt.TitleParams(
            "The server over hours: runs, model switches, tabs, kills of the engine",
            subtitle=[subtitle, "Dashed lines: the engine process was killed."],
            anchor="start",
        )
    )
    return drawn.configure(**CONFIG).configure_view(strokeWidth=0)


def _part(rows: Sequence[Row], kills: Sequence[float], title: str) -> Chart:
    ours = [row for row in rows if row["what"] == title]
    minutes = alt.X("minute:Q", title="minute" if title == DISK else None)
    lines = (
        alt.Chart(alt.Data(values=ours))
        .mark_line(interpolate="step-after", strokeWidth=1.5)
        .encode(
            x=minutes,
            y=alt.Y("value:Q", title=title, scale=alt.Scale(zero=True, nice=True)),
            color=alt.Color(
                "process:N",
                title=None,
                scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
                legend=alt.Legend(orient="top") if title == MEMORY else None,
            ),
            detail="life:N",
        )
    )
    marks = (
        alt.Chart(alt.Data(values=[{"minute": minute} for minute in kills]))
        .mark_rule(strokeDash=[4, 3], color="#707070")
        .encode(x="minute:Q")
    )
    return alt.layer(lines, marks).properties(width=WIDTH, height=HEIGHT)


def _rows(sample: Sample) -> list[Row]:
    """Return what is drawn of a sample; an engine started anew begins a line of its own."""
    found: list[tuple[str, str, float, int]] = [
        (DISK, "kept runs", sample.disk_bytes / 1e6, 0),
    ]
    for process, reading in (("app", sample.app), ("engine", sample.engine)):
        if reading is not None:
            life = reading.process_id
            found += [
                (MEMORY, process, reading.memory_bytes / 2**20, life),
                (DESCRIPTORS, process, reading.descriptors, life),
                (THREADS, process, reading.threads, life),
            ]
    return [
        {"what": what, "process": process, "value": value, "life": life, "minute": sample.minute}
        for what, process, value, life in found
    ]
