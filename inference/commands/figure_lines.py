"""The figures of a remote request in words, each with what it rests on."""

from __future__ import annotations

from inference.figures.arrivals import ArrivalFigures, CountSource, arrival_figures, ttft_parts
from inference.records.arrivals import EngineTimes, RemoteRequest


def figure_lines(request: RemoteRequest) -> list[str]:
    """Return lines: ours first, then the engine's own times, then what a reader should know."""
    figures = arrival_figures(request)
    lines = [f"{request.request_id}: {', '.join(_ours(figures))}"]
    parts = ttft_parts(request)
    if parts:
        cut = ", ".join(
            f"{part.name} {in_ms(part.duration_s)}" + (" (here)" if part.is_ours else "")
            for part in parts
        )
        lines.append(f"{request.request_id}: TTFT: {cut}")
    if request.times is not None:
        lines.append(f"{request.request_id}: by the engine's own clock: {_said(request.times)}")
    notes = [figures.counts.note, _hidden_note(figures), _burst_note(figures)]
    notes += [*request.notes, request.message]
    lines += [f"{request.request_id}: {note}" for note in notes if note]
    return lines


def _ours(figures: ArrivalFigures) -> list[str]:
    counts = figures.counts
    total = "tokens not known" if counts.total is None else f"{counts.total:,} tokens"
    said = [f"{total} (counted from {counts.source.value})"]
    if counts.source is CountSource.UNKNOWN and counts.total is not None:
        said = [f"{total} (the engine's final count)"]
    if figures.ttft_s is not None:
        said.append(f"TTFT {in_ms(figures.ttft_s)}")
    if figures.answer_s is not None and figures.answer_s != figures.ttft_s:
        said.append(f"first token of the answer after {in_ms(figures.answer_s)}")
    if figures.tpot_s is not None:
        at_least = "at least " if figures.is_tpot_at_least else ""
        said.append(f"TPOT {at_least}{in_ms(figures.tpot_s)}")
    if figures.gap_p50_s is not None and figures.gap_p95_s is not None:
        name = "ITL" if figures.is_token_by_token else "gap between arrivals"
        said.append(f"{name} median {in_ms(figures.gap_p50_s)}, 95 % {in_ms(figures.gap_p95_s)}")
    if figures.gap_max_s is not None:
        said.append(f"largest {in_ms(figures.gap_max_s)}")
    return said


def _said(times: EngineTimes) -> str:
    said = {
        "queue": times.queue_s,
        "load": times.load_s,
        "prefill": times.prefill_s,
        "decode": times.decode_s,
        "in all": times.total_s,
    }
    words = [f"{name} {in_ms(value)}" for name, value in said.items() if value is not None]
    if times.drafted_tokens:
        words.append(f"{times.accepted_tokens or 0:,} of {times.drafted_tokens:,} drafted accepted")
    return ", ".join(words) or "nothing"


def _hidden_note(figures: ArrivalFigures) -> str:
    count = figures.hidden_tokens
    if not count:
        return ""
    return f"{count:,} of the tokens came without text: an end, half a character, or kept back"


def _burst_note(figures: ArrivalFigures) -> str:
    if not figures.is_in_bursts:
        return ""
    return f"tokens arrive {figures.tokens_per_read:g} at a time, so gaps say little of the engine"


def in_ms(seconds: float) -> str:
    """Return a duration in milliseconds."""
    return f"{seconds * 1e3:.3g} ms"
