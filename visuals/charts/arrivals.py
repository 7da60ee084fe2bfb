"""Charts of one request to an engine elsewhere: what TTFT is cut into, gaps, mask, candidates.

An arrival is no step, so nothing here is called a step time, and gaps are inter-token latencies
only where one token really came each time. No page, no torch.
"""

from __future__ import annotations

from math import exp

import altair as alt

from inference.figures.arrivals import ArrivalFigures, TtftPart
from inference.records.arrivals import RemoteRequest, SaidToken
from inference.records.model import TokenPiece
from visuals.charts.theme import DECODE, GPU, HOST_LIGHT, MEMORY, PREFILL, WEIGHTS, Chart, Row
from visuals.charts.theme import finished as finished_chart
from visuals.charts.tokens import shown
from visuals.charts.units import amount, milliseconds

HEIGHT = 240
MOST_MARKS = 1000  # of one chart; the newest
HERE, ENGINE, LEFT = "measured here", "the engine's own clock", "what is left"
PART_COLOURS = (MEMORY, GPU, WEIGHTS, PREFILL, HOST_LIGHT)
PART_ORDER = ("connect", "queue", "load", "prefill", "the rest")


def ttft_rows(parts: tuple[TtftPart, ...]) -> list[Row]:
    """Return a row for each part of TTFT, from left to right."""
    rows: list[Row] = []
    start_s = 0.0
    for place, part in enumerate(parts):
        name = part.name if part.name in PART_ORDER else "the rest"
        is_rest = name == "the rest"
        rows.append(
            {
                "part": name,
                "what": part.name,
                "place": place,
                "start": milliseconds(start_s),
                "end": milliseconds(start_s + part.duration_s),
                "words": amount(milliseconds(part.duration_s), "ms"),
                "clock": HERE if part.is_ours else LEFT if is_rest else ENGINE,
            }
        )
        start_s += part.duration_s
    return rows


def ttft_bar(parts: tuple[TtftPart, ...]) -> Chart:
    """Return TTFT as one bar, cut as far as the engine says."""
    rows = ttft_rows(parts)
    colour = alt.Color(
        "part:N",
        title=None,
        scale=alt.Scale(domain=list(PART_ORDER), range=list(PART_COLOURS)),
        legend=alt.Legend(orient="bottom", columns=5, values=[str(row["part"]) for row in rows]),
    )
    chart = (
        alt.Chart(alt.NamedData("parts"))
        .mark_bar(height=34)
        .encode(
            x=alt.X(
                "start:Q",
                title="ms since the request was sent",
                axis=alt.Axis(tickCount=6, grid=False),
            ),
            x2="end:Q",
            color=colour,
            tooltip=[
                alt.Tooltip("what:N", title="Part"),
                alt.Tooltip("words:N", title="Takes"),
                alt.Tooltip("clock:N", title="By"),
            ],
        )
    )
    words = ", ".join(f"{row['what']} {row['words']}" for row in rows)
    described = f"Time to first token: {words}"
    return finished_chart(chart, {"parts": rows}, description=described).properties(height=150)


def gap_rows(figures: ArrivalFigures) -> list[Row]:
    """Return a row for each gap between network reads that brought tokens, the newest of many."""
    first = max(0, len(figures.gaps_s) - MOST_MARKS)
    return [
        {"arrival": first + k + 2, "gap": milliseconds(gap_s)}
        for k, gap_s in enumerate(figures.gaps_s[first:])
    ]


def gap_name(figures: ArrivalFigures) -> str:
    """Return what the gaps are: inter-token latency only where one token came each time."""
    return "ITL" if figures.is_token_by_token else "Gap between arrivals"


def gaps(figures: ArrivalFigures) -> Chart:
    """Return the gaps in the order in which they came."""
    name = gap_name(figures)
    chart = (
        alt.Chart(alt.NamedData("gaps"))
        .mark_point(filled=True, size=28, color=DECODE, opacity=0.85)
        .encode(
            x=alt.X(
                "arrival:Q",
                title="network read that brought tokens",
                axis=alt.Axis(tickMinStep=1, tickCount=6, grid=False, format=",d"),
                scale=alt.Scale(zero=False, nice=False, padding=8),
            ),
            y=alt.Y("gap:Q", title=f"{name} (ms)", scale=alt.Scale(zero=True)),
            tooltip=[
                alt.Tooltip("arrival:Q", title="Read", format=",d"),
                alt.Tooltip("gap:Q", title=f"{name} (ms)", format=".3~g"),
            ],
        )
    )
    described = f"{name} in milliseconds for each network read after the first that brought tokens"
    rows = gap_rows(figures)
    return finished_chart(chart, {"gaps": rows}, description=described).properties(height=HEIGHT)


def mask_rows(prompt_tokens: int, output_tokens: int) -> list[Row]:
    """Return the outline of a causal mask: what each fed token attends to, by its position.

    The last token selected is fed to nothing, so an answer of n tokens has n - 1 decode rows.
    """
    fed = prompt_tokens + max(0, output_tokens - 1)
    return [
        {"query": 1, "keys": 1, "phase": "prefill"},
        {"query": prompt_tokens, "keys": prompt_tokens, "phase": "prefill"},
        *(
            [
                {"query": prompt_tokens, "keys": prompt_tokens, "phase": "decode"},
                {"query": fed, "keys": fed, "phase": "decode"},
            ]
            if fed > prompt_tokens
            else []
        ),
    ]


def mask(prompt_tokens: int, output_tokens: int) -> Chart:
    """Return the causal mask of a whole sequence, counted from its lengths."""
    chart = (
        alt.Chart(alt.NamedData("mask"))
        .mark_area(opacity=0.75)
        .encode(
            x=alt.X(
                "query:Q",
                title="position of the token that is fed",
                axis=alt.Axis(tickMinStep=1, tickCount=6, grid=False, format=",d"),
            ),
            y=alt.Y(
                "keys:Q",
                title="attended to",
                stack=None,
                axis=alt.Axis(format=",d", tickCount=4),
            ),
            color=alt.Color(
                "phase:N",
                title=None,
                scale=alt.Scale(domain=["prefill", "decode"], range=[PREFILL, DECODE]),
                legend=alt.Legend(orient="bottom"),
            ),
        )
    )
    described = (
        f"Causal mask counted from {prompt_tokens:,} prompt and {output_tokens:,} output tokens: "
        "each token attends to itself and to all before it"
    )
    rows = mask_rows(prompt_tokens, output_tokens)
    return finished_chart(chart, {"mask": rows}, description=described).properties(height=HEIGHT)


def candidate_rows(token: SaidToken) -> list[Row]:
    """Return what the engine might have selected instead, the likeliest first."""
    return [
        {
            "label": f"{place + 1}  {shown(TokenPiece(token_id=-1, raw=one.raw))[0]}",
            "probability": exp(min(one.logprob, 0.0)),
            "selected": "selected" if one.raw == token.raw else "not selected",
        }
        for place, one in enumerate(token.candidates)
    ]


def candidates(token: SaidToken) -> Chart:
    """Return the candidates of one token with their probabilities, as the engine states them."""
    chart = (
        alt.Chart(alt.NamedData("candidates"))
        .mark_bar()
        .encode(
            x=alt.X(
                "probability:Q",
                title="probability, as the engine states it",
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(format="%"),
            ),
            y=alt.Y(
                "label:N", title=None, sort=None, axis=alt.Axis(labelLimit=160, labelOverlap=False)
            ),
            color=alt.Color(
                "selected:N",
                title=None,
                scale=alt.Scale(domain=["selected", "not selected"], range=[DECODE, HOST_LIGHT]),
                legend=alt.Legend(orient="bottom"),
            ),
            tooltip=[
                alt.Tooltip("label:N", title="Token"),
                alt.Tooltip("probability:Q", title="Probability", format=".3~%"),
            ],
        )
    )
    return finished_chart(
        chart,
        {"candidates": candidate_rows(token)},
        description="Candidates for this token and their probabilities",
    ).properties(height=HEIGHT)


def said_tokens(request: RemoteRequest) -> tuple[SaidToken, ...]:
    """Return the tokens that the engine named with candidates, in order."""
    return tuple(token for one in request.arrivals for token in one.tokens if token.candidates)
