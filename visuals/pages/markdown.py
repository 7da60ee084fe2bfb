"""Text of users inside Markdown, where none of it may be markup."""

from __future__ import annotations

MARKS = frozenset("\\`*_[]$<>:#~|")


def plain(text: str) -> str:
    """Return text in which no character is Markdown."""
    return "".join(f"\\{mark}" if mark in MARKS else mark for mark in text)
