"""Charts of runs side by side, aligned at the start of decode; letters name the subjects.

Each line is the median over a subject's repeats. No torch, no page.
"""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from inference.records.costs import Ceilings
from inference.runs.comparisons import Subject
from visuals.charts.compare_rows import (
    cache_rows,
    fit_rows,
    roof_rows,
    roofline_rows,
    subject_step_rows,
    ttft_rows,
)
from visuals.charts.letters import letter_rows
from visuals.charts.theme import DASHED, HOST, ROOF, SOLID, Chart, Row, finished, whole_numbers

# Source: Okabe and Ito 2008, "Color Universal Design"; their yellow is too pale on white.
HUES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#707070", "#8C6D00")
HEIGHT = 260

EXPLANATION = (
    "Aligned at the start of decode: decode step 1 is the first after prefill. A line is the "
    "median over a subject's repeats. Measured: step times and bytes of these runs. Counted: "
    "FLOPs, bytes and FLOP/byte of the roofline's points."
)


def latency_by_step(subjects: Sequence[Subject]) -> Chart:
    """Return the step time of each decode step, a line for each subject."""
    rows = [row for one in subjects for row in subject_step_rows(one, "step")]
    y = ("ms", "ms per step")
    return _lines(subjects, rows, "decode step", y, "milliseconds by decode step")


def latency_by_context(subjects: Sequence[Subject]) -> Chart:
    """Return the step time of each decode step over the context it attends to."""
    rows = [row for one in subjects for row in subject_step_rows(one, "context")]
    y = ("ms", "ms per step")
    return _lines(subjects, rows, "context, tokens", y, "milliseconds by context length")


def kv_growth(subjects: Sequence[Subject]) -> Chart:
    """Return the bytes in the K/V cache after prefill (0) and after each decode step."""
    rows = [row for one in subjects for row in cache_rows(one)]
    y = ("mib", "MiB stored")
    return _lines(subjects, rows, "decode step", y, "MiB in the K/V cache by decode step")


def ttft_by_prompt(subjects: Sequence[Subject]) -> Chart:
    """Return a point for each run: time to first token over prompt tokens, and a fitted line."""
    rows = [row for one in subjects for row in ttft_rows(one)]
    x = alt.X(
        "prompt_tokens:Q", title="prompt tokens", axis=whole_numbers(), scale=alt.Scale(zero=False)
    )
    y = alt.Y("ms:Q", title="TTFT, ms", axis=alt.Axis(tickCount=5), scale=alt.Scale(zero=True))
    points = alt.Chart(alt.NamedData("ttft")).encode(x=x, y=y, color=_colour(subjects))
    dots = points.mark_point(size=90, filled=True, opacity=0.9).encode(
        tooltip=[
            alt.Tooltip("subject:N"),
            alt.Tooltip("prompt_tokens:Q", title="prompt tokens"),
            alt.Tooltip("ms:Q", title="TTFT, ms", format=".4~g"),
            alt.Tooltip("kind:N"),
        ]
    )
    named = alt.Chart(alt.NamedData("letters")).encode(x=x, y=y, color=_letter_colour(subjects))
    letters = named.mark_text(dx=9, align="left", fontSize=13).encode(text="text:N")
    chart = alt.layer(dots, letters)
    datasets = {"ttft": rows, "letters": letter_rows(rows, ("prompt_tokens", "ms"), to_zero=True)}
    if fitted := fit_rows(rows):
        datasets["fit"] = fitted
        line = alt.Chart(alt.NamedData("fit")).mark_line(color=HOST, strokeDash=list(DASHED))
        chart = alt.layer(line.encode(x=x, y=y), dots, letters)
    return _sized(chart, datasets, "Points: milliseconds to the first token by prompt tokens.")


def roofline_points(subjects: Sequence[Subject], ceilings: Ceilings | None = None) -> Chart:
    """Return two points for each subject, prefill and decode, under the roofs where known."""
    rows = [row for one in subjects for row in roofline_rows(one)]
    log, axis = alt.Scale(type="log"), alt.Axis(grid=False, format=",.3~r")
    x = alt.X("intensity:Q", title="FLOP/byte", scale=log, axis=axis)
    y = alt.Y("gflops:Q", title="GFLOP/s", scale=log, axis=axis)
    base = alt.Chart(alt.NamedData("points")).encode(x=x, y=y, color=_colour(subjects))
    points = base.mark_point(size=120, filled=True, opacity=0.9).encode(
        shape=alt.Shape(
            "phase:N",
            title=None,
            scale=alt.Scale(domain=["prefill", "decode"], range=["square", "circle"]),
            legend=alt.Legend(orient="top", symbolFillColor=HOST, symbolStrokeColor=HOST),
        ),
        tooltip=[
            alt.Tooltip("subject:N"),
            alt.Tooltip("phase:N"),
            alt.Tooltip("intensity:Q", title="FLOP/byte, counted", format=".4~g"),
            alt.Tooltip("gflops:Q", title="GFLOP/s, counted FLOPs over measured step times"),
        ],
    )
    named = alt.Chart(alt.NamedData("letters")).encode(x=x, y=y, color=_letter_colour(subjects))
    letters = named.mark_text(dx=10, align="left", fontSize=13).encode(text="text:N")
    chart = alt.layer(points, letters)
    corners = roof_rows(rows, ceilings)
    lettered = letter_rows(rows, ("intensity", "gflops"), is_log=True, frame=corners)
    datasets = {"points": rows, "letters": lettered}
    if corners:
        datasets["roofs"] = corners
        roofs = alt.Chart(alt.NamedData("roofs")).mark_line(color=HOST, strokeWidth=2)
        chart = alt.layer(roofs.encode(x=x, y=y), points, letters)
    return _sized(chart, datasets, "Points: GFLOP/s by FLOP/byte, prefill and decode, log-log.")


def _lines(
    subjects: Sequence[Subject], rows: list[Row], title: str, value: tuple[str, str], what: str
) -> Chart:
    """Return a line for each subject, its letter at the end; ``value`` is a field and its title."""
    axis = alt.X("k:Q", title=title, axis=whole_numbers(), scale=alt.Scale(zero=False))
    y = alt.Y(f"{value[0]}:Q", title=value[1], axis=alt.Axis(tickCount=5))
    base = alt.Chart(alt.NamedData("lines")).encode(x=axis, y=y, color=_colour(subjects))
    lines = base.mark_line(strokeWidth=2.5, strokeJoin="round").encode(
        strokeDash=_dash(subjects),
        tooltip=[
            alt.Tooltip("subject:N"),
            alt.Tooltip("k:Q", title=title),
            alt.Tooltip(f"{value[0]}:Q", title=value[1], format=".4~g"),
        ],
    )
    letters = alt.Chart(alt.NamedData("ends")).encode(x=axis, y=y, color=_letter_colour(subjects))
    chart = alt.layer(
        lines,
        letters.mark_text(dx=6, align="left", fontSize=14, fontWeight="bold").encode(text="text:N"),
    )
    last = {row["label"]: row for row in rows}
    ends = letter_rows(list(last.values()), ("k", value[0]), to_zero=True)
    datasets = {"lines": rows, "ends": ends}
    return _sized(chart, datasets, f"Lines: {what}, one for each subject.")


def _sized(chart: Chart, datasets: dict[str, list[Row]], description: str) -> Chart:
    return finished(chart, datasets, description=description).properties(height=HEIGHT)


def _colour(subjects: Sequence[Subject]) -> alt.Color:
    labels = [one.label for one in subjects]
    hues = [HUES[index % len(HUES)] for index in range(len(labels))]
    return alt.Color("label:N", title=None, scale=alt.Scale(domain=labels, range=hues), legend=None)


def _letter_colour(subjects: Sequence[Subject]) -> alt.Color:
    """Return a subject's own colour for its letter, and grey for the letters of several."""
    return alt.condition("datum.text !== datum.label", alt.value(ROOF), _colour(subjects))


def _dash(subjects: Sequence[Subject]) -> alt.StrokeDash:
    """Return solid lines for the first eight subjects and dashes for those of the same hues."""
    labels = [one.label for one in subjects]
    dashes = [list(DASHED if index // len(HUES) % 2 else SOLID) for index in range(len(labels))]
    return alt.StrokeDash(
        "label:N", title=None, scale=alt.Scale(domain=labels, range=dashes), legend=None
    )
