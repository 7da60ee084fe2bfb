"""The text of a remote answer as it came: each network read apart, with what is known of it.

All of it is the engine's, so every part is escaped. No page, no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby

from inference.figures.arrivals import token_counts
from inference.records.arrivals import Arrival, Channel, RemoteRequest
from visuals.charts.tokens import hex_bytes
from visuals.charts.units import amount, milliseconds

MOST_READS = 600  # drawn apart, the newest; the text before them is one piece
NAMES = {Channel.REASONING: "Reasoning", Channel.TOOL: "Tool call"}


def answer_html(request: RemoteRequest) -> str:
    """Return the answer, one element for each network read that brought text."""
    counts = token_counts(request).per_arrival
    texts = [(one, count) for one, count in zip(request.arrivals, counts, strict=True) if one.raw]
    reads = [list(group) for _read, group in groupby(texts, key=lambda pair: pair[0].read)]
    early, late = reads[:-MOST_READS], reads[-MOST_READS:]
    parts: list[str] = []
    if early:
        raw = b"".join(one.raw for read in early for one, _count in read)
        parts.append(f"<span>{_text(raw)}</span>")
    channel = Channel.ANSWER
    for place, read in enumerate(late):
        if read[0][0].channel is not channel:
            channel = read[0][0].channel
            parts.append(f'<span class="channel">{NAMES.get(channel, "Answer")}</span>')
        parts.append(_read_html(read, request.marks.sent_s, is_even=place % 2 == 0))
    return f'<div class="arrivals" translate="no">{"".join(parts)}</div>'


def _read_html(
    read: Sequence[tuple[Arrival, int | None]], sent_s: float | None, *, is_even: bool
) -> str:
    raw = b"".join(one.raw for one, _count in read)
    known = [count for _one, count in read if count is not None]
    tokens = sum(known) if len(known) == len(read) else None
    first = read[0][0]
    said = [f"network read {first.read}"]
    if sent_s is not None:
        said.append(f"{amount(milliseconds(first.at_s - sent_s), 'ms')} after it was sent")
    said.append("tokens not known" if tokens is None else f"tokens: {tokens}")
    ids = [str(token_id) for one, _count in read for token_id in one.token_ids]
    if ids:
        said.append(f"ids: {' '.join(ids[:32])}")
    said.append(f"bytes: {hex_bytes(raw)}")
    several = f'<sup aria-hidden="true">{tokens}</sup>' if tokens is not None and tokens > 1 else ""
    kind = "even" if is_even else "odd"
    return (
        f'<span class="read {kind}" title="{escape("; ".join(said))}">{_text(raw)}{several}</span>'
    )


def _text(raw: bytes) -> str:
    """Return the text of bytes; those that are only a part of a character stand as their bytes."""
    try:
        return escape(raw.decode("utf-8"))
    except UnicodeDecodeError:
        return escape(f"\u27e8{hex_bytes(raw)}\u27e9")
