"""The headline figures of a run, each with its unit, where it comes from and what it rests on.

No torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inference.figures.latency import latency_summary
from inference.records.costs import Source
from inference.records.latency import LatencySummary
from inference.records.run import RunTrace
from inference.records.steps import Phase, StepEvent
from visuals.charts.units import DASH, counted, milliseconds, significant

COLD = "cold"  # one of its steps may hold first-call costs
DISTURBED = "disturbed"  # other programs took time from one of its steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number of the header.

    Attributes:
        key: Its name for tests and styles.
        label: Its short name on the page.
        value: The number as text, a dash where too little was measured.
        unit: The unit, the same however the number grows.
        source: Where it comes from.
        steps: How many steps it rests on.
        note: What is needed to read it, such as that a cold step is included; often empty.
        explanation: What it is, in plain words.
    """

    key: str
    label: str
    value: str
    unit: str
    source: Source
    steps: int
    note: str
    explanation: str


def headline(trace: RunTrace, request_id: str) -> tuple[Figure, ...]:
    """Return the figures of one request in the order of the page, dashes where nothing is known."""
    return figures_of(trace.events, latency_summary(trace, request_id))


def figures_of(events: Sequence[StepEvent], summary: LatencySummary) -> tuple[Figure, ...]:
    """Return the figures of a request that was summed up already."""
    is_cold = any(event.cold and event.phase is Phase.DECODE for event in events)
    prefill_steps = sum(
        event.phase is Phase.PREFILL
        and any(row.request_id == summary.request_id for row in event.rows)
        for event in events
    )
    return (
        _ttft(summary, prefill_steps),
        *_between_tokens(summary, is_cold=is_cold),
        *_rates(summary, len(events), is_cold=is_cold),
    )


def _ttft(summary: LatencySummary, steps: int) -> Figure:
    """Return the time to the first token."""
    chunks = counted(steps, "chunk") if steps > 1 else ""
    return _figure(
        ("ttft", "time to first token (TTFT)", "ms"),
        milliseconds(summary.ttft_s),
        steps,
        note=_noted(COLD * summary.is_cold, DISTURBED * summary.is_ttft_disturbed, chunks),
        explanation="Time to first token: the step times from the start of prefill up to the first "
        "output token. Tokenising the prompt and drawing are not included.",
    )


def _between_tokens(summary: LatencySummary, *, is_cold: bool) -> tuple[Figure, ...]:
    """Return the figures of the time between two tokens."""
    steps = len(summary.itl_s) - summary.left_out_steps
    note = _noted(COLD * is_cold, _left_out(summary))
    texts = {
        "p50": "Inter-token latency, median: half of the tokens after the first came faster.",
        "p95": "Inter-token latency, 95th percentile: one token in twenty took longer.",
    }
    labels = {"p50": "inter-token latency (ITL) p50", "p95": "ITL p95"}
    values_s = {"p50": summary.itl_p50_s, "p95": summary.itl_p95_s}
    shares = [
        _figure(
            (f"itl_{share}", labels[share], "ms"),
            milliseconds(values_s[share]),
            steps,
            note=note,
            explanation=text + _why_left_out(summary),
        )
        for share, text in texts.items()
    ]
    tpot = _figure(
        ("tpot", "time per output token (TPOT)", "ms"),
        milliseconds(summary.tpot_s),
        steps,
        note=note,
        explanation="Time per output token: the mean time between two tokens, the first "
        "excluded: (end-to-end time \u2212 TTFT) / (output tokens \u2212 1)."
        + _why_left_out(summary),
    )
    return (*shares, tpot)


def _rates(summary: LatencySummary, steps: int, *, is_cold: bool) -> tuple[Figure, ...]:
    """Return the figures of tokens per second."""
    decode_steps = len(summary.itl_s) - summary.left_out_steps
    decode = _figure(
        ("decode_rate", "decode", "tok/s"),
        summary.sequence_tokens_per_s,
        decode_steps,
        note=_noted(COLD * is_cold, _left_out(summary)),
        explanation="Tokens per second while decoding: 1 / TPOT. Prefill is not included."
        + _why_left_out(summary),
    )
    e2e = _figure(
        ("e2e_rate", "end to end", "tok/s"),
        summary.e2e_tokens_per_s,
        steps,
        note=_noted(COLD * summary.is_cold, _disturbed_within(summary)),
        explanation="Output tokens per second over the whole run: output tokens / "
        "(TTFT + all times between tokens).",
    )
    return decode, e2e


def _left_out(summary: LatencySummary) -> str:
    """Return which steps the figures of single tokens leave out; short, as a card has no room."""
    if summary.is_all_disturbed:
        return "all disturbed"
    kinds = {"observed": summary.excluded_steps, "disturbed": summary.disturbed_steps}
    counts = {kind: count for kind, count in kinds.items() if count}
    if len(counts) > 1:
        return f"without {sum(counts.values()):,} steps"
    return "".join(f"without {count:,} {kind}" for kind, count in counts.items())


def _why_left_out(summary: LatencySummary) -> str:
    """Return what is to be known of the steps left out, as sentences after an explanation."""
    if summary.is_all_disturbed:
        return " Other programs disturbed every step, so these are the disturbed ones."
    sentences = {
        "Not in it: {} in which something was captured.": summary.excluded_steps,
        "Not in it: {} from which other programs took time.": summary.disturbed_steps,
    }
    return "".join(
        " " + sentence.format(counted(count, "step"))
        for sentence, count in sentences.items()
        if count
    )


def _disturbed_within(summary: LatencySummary) -> str:
    """Return that a figure of the whole run holds disturbed steps, where it does."""
    is_any = summary.is_ttft_disturbed or summary.disturbed_steps > 0
    return DISTURBED * is_any


def _noted(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _figure(
    names: tuple[str, str, str],
    value: float | None,
    steps: int,
    *,
    explanation: str,
    note: str = "",
) -> Figure:
    """Return a measured figure; its names are key, label and unit."""
    key, label, unit = names
    text = significant(value)
    return Figure(
        key=key,
        label=label,
        value=text,
        unit=unit,
        source=Source.MEASURED,
        steps=0 if text == DASH else steps,
        note=note if text != DASH else "",
        explanation=explanation,
    )
