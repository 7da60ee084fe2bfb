"""Two texts, word by word: which parts of one are not in the other. No torch, no page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from html import escape

from visuals.charts.units import counted

WORDS = re.compile(r"\s+|\w+|[^\w\s]")
MOST_WORDS = 3000  # comparing takes time with the square of them


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPart:
    """A run of words, all of them in the other text or none."""

    text: str
    is_different: bool


def differing_parts(reference: str, text: str) -> tuple[TextPart, ...]:
    """Return the text in parts; those not in the reference are marked.

    Beyond the first few thousand words nothing is compared and nothing is marked.
    """
    old, new = WORDS.findall(reference)[:MOST_WORDS], WORDS.findall(text)
    compared, rest = new[:MOST_WORDS], "".join(new[MOST_WORDS:])
    matcher = SequenceMatcher(None, old, compared, autojunk=False)
    parts = [
        TextPart(text="".join(compared[start:end]), is_different=kind != "equal")
        for kind, _, _, start, end in matcher.get_opcodes()
        if end > start
    ]
    if rest:
        parts.append(TextPart(text=rest, is_different=False))
    return _joined(parts)


def agreement(reference: Sequence[int], ids: Sequence[int]) -> str:
    """Return how far two outputs go together, in words."""
    if tuple(reference) == tuple(ids):
        return "the same tokens"
    pairs = zip(reference, ids, strict=False)
    same = next((index for index, (one, other) in enumerate(pairs) if one != other), None)
    if same is None:
        shorter = min(len(reference), len(ids))
        return f"the same for all {counted(shorter, 'token')} of the shorter one"
    if same == 0:
        return "different from the start"
    return f"the same for {counted(same, 'token')}, then different"


def _joined(parts: Sequence[TextPart]) -> tuple[TextPart, ...]:
    """Return the parts with blanks between two different ones counted to them."""
    joined: list[TextPart] = []
    for index, part in enumerate(parts):
        before, after = parts[max(index - 1, 0)], parts[min(index + 1, len(parts) - 1)]
        is_gap = not part.text.strip() and before.is_different and after.is_different
        is_different = part.is_different or is_gap
        if joined and joined[-1].is_different == is_different:
            joined[-1] = TextPart(text=joined[-1].text + part.text, is_different=is_different)
        else:
            joined.append(TextPart(text=part.text, is_different=is_different))
    return tuple(joined)


def marked_html(parts: Sequence[TextPart]) -> str:
    """Return the parts as HTML in which nothing of the text is markup."""
    return "".join(
        f"<mark>{escape(part.text)}</mark>"
        if part.is_different and part.text.strip()
        else escape(part.text)
        for part in parts
    )
