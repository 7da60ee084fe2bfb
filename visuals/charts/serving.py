"""An engine's own figures over time, with the requests that were sent from here on the same clock.

Each chart has seconds before the newest reading below. What the engine's version does not say is
named in words and has no chart. No torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import altair as alt

from inference.figures.serving import (
    EngineRates,
    Range,
    engine_rates,
    latency_range,
    row_of,
    since,
)
from inference.records.arrivals import RemoteRun
from inference.records.serving import EngineReading, EngineRow, Latency
from visuals.charts.axes import nice_end
from visuals.charts.theme import (
    DECODE,
    GPU,
    HOST,
    KV,
    MEMORY,
    PREFILL,
    WEIGHTS,
    Chart,
    Row,
    finished,
)
from visuals.charts.units import DASH, amount, milliseconds, percent, share

SHOWN_S = 120.0
NOT_SAID = "this version does not say"
MOST_OWN = 200
HEIGHT = 240
GAP_S = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRequests:
    """What was sent to the engine from here.

    Attributes:
        runs: Those that have ended.
        sending_since: UTC, when those began that go on; None where none do.
    """

    runs: tuple[RemoteRun, ...] = ()
    sending_since: datetime | None = None


class Panel(StrEnum):
    """The charts of an engine's figures, by what they show."""

    REQUESTS = "Requests"
    TOKENS = "Tokens per second"
    SHARES = "K/V, prefix hits, acceptance"


@dataclass(frozen=True, slots=True)
class _Line:
    name: str
    colour: str
    value: Callable[[EngineRow], float | None] | None = None
    rate: Callable[[EngineRates], float | None] | None = None


LINES: Mapping[Panel, tuple[_Line, ...]] = {
    Panel.REQUESTS: (
        _Line("running", DECODE, value=lambda row: row.running),
        _Line("waiting", HOST, value=lambda row: row.waiting),
    ),
    Panel.TOKENS: (
        _Line("prompt", PREFILL, rate=lambda rates: rates.prompt_tokens_per_s),
        _Line("output", DECODE, rate=lambda rates: rates.output_tokens_per_s),
    ),
    Panel.SHARES: (
        _Line("K/V in use", KV, value=lambda row: percent(row.kv_used_ratio)),
        _Line("prefix hits", GPU, rate=lambda rates: percent(rates.prefix_hit_ratio)),
        _Line("drafts accepted", WEIGHTS, rate=lambda rates: percent(rates.accepted_ratio)),
    ),
}
TITLES = {
    Panel.REQUESTS: "requests",
    Panel.TOKENS: "tokens/s",
    Panel.SHARES: "%",
}


def engine_panel(
    panel: Panel, readings: Sequence[EngineReading], own: OwnRequests | None = None
) -> Chart:
    """Return one chart of an engine's figures, a line each; bands are requests sent from here."""
    rows = panel_rows(panel, readings)
    lines = alt.Chart(alt.NamedData("engine"))
    named = [line.name for line in LINES[panel]]
    colour = alt.Color(
        "figure:N",
        title=None,
        scale=alt.Scale(domain=named, range=[line.colour for line in LINES[panel]]),
        legend=alt.Legend(orient="top", columns=2),
    )
    top = 100.0 if panel is Panel.SHARES else _top(rows)
    x = alt.X(
        "s:Q",
        title="seconds before the newest reading",
        scale=alt.Scale(domain=[-SHOWN_S, 0], nice=False),
        axis=alt.Axis(tickCount=5, grid=False),
    )
    y = alt.Y("value:Q", title=TITLES[panel], scale=alt.Scale(domain=[0, top], nice=False))
    bands = (
        alt.Chart(alt.NamedData("own"))
        .mark_rect(color=MEMORY, opacity=0.22)
        .encode(
            x=x,
            x2="until:Q",
            tooltip=[
                alt.Tooltip("request:N", title="sent from here"),
                alt.Tooltip("took:Q", title="s, sent to end", format=".3~g"),
            ],
        )
    )
    drawn = lines.mark_line(strokeWidth=2.5, interpolate="linear").encode(
        x=x,
        y=y,
        color=colour,
        detail="stretch:N",
        tooltip=[
            alt.Tooltip("figure:N"),
            alt.Tooltip("value:Q", title=TITLES[panel], format=".4~g"),
            alt.Tooltip("s:Q", title="s before the newest", format=".1f"),
        ],
    )
    newest = lines.transform_filter("datum.is_newest").mark_point(filled=True, size=50, opacity=1)
    return finished(
        alt.layer(bands, drawn, newest.encode(x=x, y=y, color=colour)),
        {"own": own_rows(readings, own or OwnRequests()), "engine": rows},
        description=f"Line chart: {panel.value} of the engine over the last {SHOWN_S:g} seconds.",
    ).properties(height=HEIGHT)


def panel_rows(panel: Panel, readings: Sequence[EngineReading]) -> list[Row]:
    """Return a row for each figure at each reading; a figure that is not known has none."""
    shown = since(readings, SHOWN_S)
    rows: list[Row] = []
    for line in LINES[panel]:
        values = _values(line, shown)
        stretch, former = 0, None
        for index, (at, value) in enumerate(values):
            if former is not None and (at - former).total_seconds() > GAP_S:
                stretch += 1
            former = at
            rows.append(
                {
                    "figure": line.name,
                    "s": round((at - shown[-1].at).total_seconds(), 2),
                    "value": value,
                    "stretch": f"{line.name} {stretch}",
                    "is_newest": 1 if index == len(values) - 1 else 0,
                }
            )
    return rows


def own_rows(readings: Sequence[EngineReading], own: OwnRequests) -> list[Row]:
    """Return a band for each request that was sent from here, and one for those that go on.

    A request has its moments on its run's own clock, which is tied to UTC where the run began, as
    readings are: on one machine the two agree to milliseconds.
    """
    shown = since(readings, SHOWN_S)
    if not shown:
        return []
    newest = shown[-1].at
    rows: list[Row] = []
    if own.sending_since is not None and own.sending_since < newest:
        begin = (own.sending_since - newest).total_seconds()
        rows.append(_band("a load that goes on", begin, 0.0))
    for run in own.runs:
        for request in run.requests:
            if request.marks.sent_s is None:
                continue
            begin = (run.started_at - newest).total_seconds() + request.marks.sent_s
            ended_s = request.marks.ended_s
            end = 0.0 if ended_s is None else begin + ended_s - request.marks.sent_s
            if end < -SHOWN_S or begin > 0:
                continue
            rows.append(_band(f"{run.run_id} {request.request_id}", begin, end))
    return rows[-MOST_OWN:]


def _band(request: str, begin: float, end: float) -> Row:
    return {
        "request": request,
        "s": round(max(begin, -SHOWN_S), 2),
        "until": round(min(end, 0.0), 2),
        "took": round(end - begin, 4),
    }


def unsaid(panel: Panel, readings: Sequence[EngineReading]) -> tuple[str, ...]:
    """Return the names of what this version of the engine does not say at all."""
    newest = _newest(readings)
    if newest is None:
        return ()
    known = {
        "running": newest.running,
        "waiting": newest.waiting,
        "prompt": newest.prompt_tokens,
        "output": newest.output_tokens,
        "K/V in use": newest.kv_used_ratio,
        "prefix hits": newest.prefix_hit_tokens,
        "drafts accepted": newest.drafted_tokens,
    }
    return tuple(line.name for line in LINES[panel] if known[line.name] is None)


def engine_table(readings: Sequence[EngineReading], window_s: float) -> list[Row]:
    """Return the newest figures, a row for each data-parallel engine and one for all of them."""
    shown = since(readings, window_s)
    if not shown or shown[-1].whole is None:
        return []
    names = [one.engine for one in shown[-1].engines]
    return [_table_row(shown, name) for name in (*names, "")]


def latency_rows(readings: Sequence[EngineReading], window_s: float) -> list[Row]:
    """Return between which bounds half and 95 of a hundred lie, by the engine's own buckets."""
    shown = since(readings, window_s)
    if not shown:
        return []
    before, after = shown[0].whole, shown[-1].whole
    if before is None or after is None:
        return []
    kept = {one.latency for one in after.latencies}
    rows: list[Row] = []
    for latency in Latency:
        half = latency_range(before, after, latency, 0.5)
        most = latency_range(before, after, latency, 0.95)
        nothing = "nothing ended in this time" if latency in kept else NOT_SAID
        rows.append(
            {
                "Latency, by the engine's clock": latency.value,
                "Half": range_text(half) or nothing,
                "95 %": range_text(most),
                "Counted": "" if half is None else f"{half.requests:,}",
            }
        )
    return rows


def range_text(found: Range | None) -> str:
    """Return a range as it is said, such as ``between 40 and 60 ms``; empty for none."""
    if found is None:
        return ""
    low = _number(found.low_s)
    if found.high_s is None:
        return f"above {low} ms"
    if found.low_s == 0:
        return f"at most {_number(found.high_s)} ms"
    return f"between {low} and {_number(found.high_s)} ms"


def _number(seconds: float) -> str:
    return f"{milliseconds(seconds) or 0.0:,.4g}"


def _table_row(shown: Sequence[EngineReading], engine: str) -> Row:
    row = row_of(shown[-1], engine) or EngineRow(engine=engine)
    first = row_of(shown[0], engine)
    edges = (shown[0], shown[-1])
    rates = engine_rates(edges, engine) if first is not None else ()
    rate = rates[0] if rates else None
    return {
        "Engine": engine or ("all" if shown[-1].engines else "the engine"),
        "Running": _whole(row.running),
        "Waiting": _whole(row.waiting),
        "K/V in use": _said(share(row.kv_used_ratio)),
        "Prompt": _rate(row.prompt_tokens, rate and rate.prompt_tokens_per_s),
        "Output": _rate(row.output_tokens, rate and rate.output_tokens_per_s),
        "Prefix hits": _share(row.prefix_hit_tokens, rate and rate.prefix_hit_ratio),
        "Drafts accepted": _share(row.drafted_tokens, rate and rate.accepted_ratio),
        "Preemptions": _whole(row.preemptions),
    }


def _whole(count: int | None) -> str:
    return NOT_SAID if count is None else f"{count:,}"


def _said(text: str) -> str:
    return NOT_SAID if text == DASH else text


def _rate(counter: int | None, rate: float | None) -> str:
    return NOT_SAID if counter is None else amount(rate, "tokens/s")


def _share(counter: int | None, ratio: float | None) -> str:
    return NOT_SAID if counter is None else share(ratio)


def _values(line: _Line, shown: Sequence[EngineReading]) -> list[tuple[datetime, float]]:
    if line.value is not None:
        rows = [(one.at, one.whole) for one in shown]
        said = [(at, line.value(row)) for at, row in rows if row is not None]
    else:
        rates = engine_rates(shown)
        said = [(one.at, None if line.rate is None else line.rate(one)) for one in rates]
    return [(at, value) for at, value in said if value is not None]


def _top(rows: Sequence[Row]) -> float:
    values = [value for row in rows if isinstance(value := row["value"], (int, float))]
    return max(nice_end(max(values, default=0.0)), 2.0)


def _newest(readings: Sequence[EngineReading]) -> EngineRow | None:
    return next((one.whole for one in reversed(readings) if one.whole is not None), None)


def silent_s(readings: Sequence[EngineReading]) -> float | None:
    """Return for how long the metrics page could not be read; None where it can."""
    if not readings or readings[-1].whole is not None:
        return None
    read = [one.at for one in readings if one.whole is not None]
    zero = read[-1] if read else readings[0].at
    return (readings[-1].at - zero).total_seconds()
