"""The figures of a remote request as rows: a value, and what it rests on. No page, no torch."""

from __future__ import annotations

from inference.counting.public_shapes import public_shape
from inference.counting.served_names import public_name
from inference.figures.arrivals import ArrivalFigures, CountSource
from inference.records.arrivals import EngineTimes, RemoteRequest
from visuals.charts.arrivals import gap_name
from visuals.charts.theme import Row
from visuals.charts.units import DASH, amount, capacity, counted, milliseconds

KV_DTYPE = "bfloat16"
FORMULA = "(last read \u2212 first read) \u00f7 tokens after those of the first read"
SAYS_NOT = "the engine has not said"
OWN_CLOCK = "the engine's own clock"


def figure_rows(request: RemoteRequest, figures: ArrivalFigures) -> list[Row]:
    """Return ours first, then the engine's own times beside them, each with its origin."""
    name = gap_name(figures)
    at_least = " at least" if figures.is_tpot_at_least and figures.tpot_s is not None else ""
    rows = [
        _row("Output tokens", _total(figures), _counted_from(figures)),
        _row("Prompt tokens", *_prompt_tokens(request)),
        _row("TTFT", _ms(figures.ttft_s), "measured here, from sent to the first token's read"),
        _row(f"TPOT{at_least}", _ms(figures.tpot_s), f"measured here: {FORMULA}"),
        _row(f"{name}, median", _ms(figures.gap_p50_s), "measured here"),
        _row(f"{name}, 95 of 100 below", _ms(figures.gap_p95_s), "measured here"),
        _row(f"{name}, largest", _ms(figures.gap_max_s), "measured here"),
        _row("E2E", _ms(figures.e2e_s), "measured here, from sent to the last token's read"),
    ]
    if figures.answer_s is not None and figures.answer_s != figures.ttft_s:
        rows.append(_row("First token of the answer", _ms(figures.answer_s), "measured here"))
    if request.times is not None:
        rows += _own_times(request.times)
    return rows


def kv_words(request: RemoteRequest, figures: ArrivalFigures) -> str:
    """Return how much K/V the sequence takes, counted from a built-in config; empty for unknown."""
    name = public_name(request.ask.model_id)
    lengths = sequence_lengths(request, figures)
    if name is None or lengths is None:
        return ""
    per_token = public_shape(name, KV_DTYPE).kv_bytes_per_token
    if per_token is None:
        return ""
    stored = lengths[0] + max(0, lengths[1] - 1)
    return (
        f"K/V counted from the config of {name} at 2 bytes a number: "
        f"{counted(per_token, 'byte')} a token, {capacity(per_token * stored)} for the "
        f"{counted(stored, 'token')} of this sequence. The engine may keep another number format."
    )


def sequence_lengths(request: RemoteRequest, figures: ArrivalFigures) -> tuple[int, int] | None:
    """Return prompt and output tokens; None where the engine does not say both."""
    prompt = request.usage.prompt_tokens if request.usage is not None else None
    total = figures.counts.total
    return None if not prompt or total is None else (prompt, total)


def _own_times(times: EngineTimes) -> list[Row]:
    said = {
        "Queue": times.queue_s,
        "Loading the model": times.load_s,
        "Prefill": times.prefill_s,
        "Decode": times.decode_s,
        "Whole request": times.total_s,
    }
    rows = [_row(name, _ms(value), OWN_CLOCK) for name, value in said.items() if value is not None]
    if times.drafted_tokens:
        rows.append(
            _row(
                "Drafted tokens accepted",
                f"{times.accepted_tokens or 0:,} of {times.drafted_tokens:,}",
                "the engine's count",
            )
        )
    return rows


def _row(name: str, value: str, origin: str) -> Row:
    return {"Figure": name, "Reading": value, "Where it comes from": origin}


def _ms(seconds: float | None) -> str:
    return amount(milliseconds(seconds), "ms")


def _total(figures: ArrivalFigures) -> str:
    return f"{figures.counts.total:,}" if figures.counts.total else DASH


def _counted_from(figures: ArrivalFigures) -> str:
    counts = figures.counts
    if counts.source is CountSource.UNKNOWN:
        return "the engine's final count" if counts.total else SAYS_NOT
    return f"counted from {counts.source.value}"


def _prompt_tokens(request: RemoteRequest) -> tuple[str, str]:
    usage = request.usage
    if usage is None or usage.prompt_tokens is None:
        return DASH, SAYS_NOT
    cached = f", {usage.cached_tokens:,} of them cached" if usage.cached_tokens else ""
    return f"{usage.prompt_tokens:,}{cached}", "the engine's count"
