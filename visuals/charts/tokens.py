"""Tokens as a reader sees them, and their bytes joined to text without a broken character.

A token is a run of bytes and may hold a part of a character only; such a token is shown by its
bytes as a fragment, and the joined text shows the character once its last byte is there. No torch.
"""

from __future__ import annotations

import codecs
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from math import exp
from typing import TypeAlias

from inference.records.model import TokenPiece
from inference.records.steps import Candidate, RowStep

MAX_SHOWN = 24
_MAX_HEX_BYTES = 32
_UNSEEN = ("Cc", "Cf", "Zs", "Zl", "Zp")
_MARKS = {" ": "\u00b7", "\n": "\u23ce", "\t": "\u21e5", "\r": "\u240d"}

Item: TypeAlias = list[object]

EXPLANATION = {
    "what": "Every token of the prompt and of the answer, in order.",
    "read": "Filled: its keys and values are stored. Ringed: it is fed in the step you see. "
    "Dashed: selected, but not stored until it is fed. A token that is only a part of a character "
    "shows its bytes.",
    "how": "Measured: ids, bytes and probabilities are those of this run. A probability is the "
    "model's own, before temperature.",
    "formula": "p = exp(log-probability)",
    "source": "",
}


def pieces_of(pieces: Iterable[TokenPiece], ids: Collection[int]) -> dict[int, TokenPiece]:
    """Return the wanted pieces by token id."""
    return {piece.token_id: piece for piece in pieces if piece.token_id in ids}


@lru_cache(maxsize=1 << 15)
def shown(piece: TokenPiece) -> tuple[str, str]:
    """Return a token as it is written on the strip, and its kind: normal, special or fragment."""
    try:
        text = piece.raw.decode("utf-8")
    except UnicodeDecodeError:
        return piece.raw[:MAX_SHOWN].hex(" "), "fragment"
    is_bare = all(_is_joiner(character) for character in text)
    visible = "".join(_visible(mark, is_bare=is_bare) for mark in text[: MAX_SHOWN + 1])
    if text and unicodedata.combining(text[0]):
        visible = "\u25cc" + visible
    if len(text) > MAX_SHOWN:
        visible = visible[:MAX_SHOWN] + "\u2026"
    return visible or "\u2205", "special" if piece.is_special else "normal"


def hex_bytes(raw: bytes) -> str:
    """Return the bytes in hexadecimal, cut where they are many."""
    cut = " \u2026" if len(raw) > _MAX_HEX_BYTES else ""
    return raw[:_MAX_HEX_BYTES].hex(" ") + cut


def token_item(piece: TokenPiece) -> Item:
    """Return id, bytes, text and kind of a token."""
    return [piece.token_id, hex_bytes(piece.raw), *shown(piece)]


def output_item(row: RowStep, place: tuple[int, int], pieces: dict[int, TokenPiece]) -> Item:
    """Return a selected token with its probability and what else was likely.

    Args:
        row: A step's row that selected a token.
        place: The row's number and the step's.
        pieces: Holds at least the token and the candidates.
    """
    token_id = -1 if row.token_id is None else row.token_id
    candidates = [_candidate_item(candidate, pieces) for candidate in row.candidates]
    finish = None if row.finish is None else row.finish.value
    token = token_item(piece_of(token_id, pieces))
    return [*place, *token, probability(row.logprob), finish, candidates]


def piece_of(token_id: int, pieces: dict[int, TokenPiece]) -> TokenPiece:
    """Return a token's piece; an unknown one stands for no bytes."""
    return pieces.get(token_id) or TokenPiece(token_id=token_id, raw=b"")


def probability(logprob: float | None) -> float | None:
    """Return a probability to four significant digits, or None where it was not recorded."""
    return None if logprob is None else float(f"{exp(min(logprob, 0.0)):.4g}")


def held_back(raw: bytes) -> bytes:
    """Return the bytes at the end that begin a character and do not complete it.

    Three bytes are enough to look at: a character has four at most, and its first byte is never
    one that continues another.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(raw[-3:].lstrip(bytes(range(0x80, 0xC0))))
    return decoder.getstate()[0]


def text_added(before: bytes, added: bytes) -> tuple[str, bytes]:
    """Return the text that new bytes complete, and the bytes still held back after them.

    Args:
        before: What came before; its last three bytes are enough.
        added: The new bytes.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(held_back(before) + added)
    return text, decoder.getstate()[0]


def text_bytes(token_ids: Sequence[int], pieces: dict[int, TokenPiece]) -> bytes:
    """Return the bytes that tokens give to the text: all but those of control tokens."""
    found = (piece_of(token_id, pieces) for token_id in token_ids)
    return b"".join(piece.raw for piece in found if not piece.is_special)


def _visible(character: str, *, is_bare: bool) -> str:
    """Return a character that can be seen: blanks marked, control characters by their number.

    Joiners and variation selectors shape the characters beside them, so they are left in their
    place unless the token holds nothing else (``is_bare``).
    """
    if character in _MARKS:
        return _MARKS[character]
    is_unseen = unicodedata.category(character) in _UNSEEN or _is_joiner(character)
    if is_unseen and (is_bare or not _is_joiner(character)):
        return f"U+{ord(character):04X}"
    return character


def _is_joiner(character: str) -> bool:
    """Return whether a character only shapes those beside it."""
    return character in "\u200c\u200d" or "\ufe00" <= character <= "\ufe0f"


def _candidate_item(candidate: Candidate, pieces: dict[int, TokenPiece]) -> Item:
    """Return id, text and probability of a likely token."""
    text, _ = shown(piece_of(candidate.token_id, pieces))
    return [candidate.token_id, text, probability(candidate.logprob)]
