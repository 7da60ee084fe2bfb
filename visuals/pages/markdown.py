"""Text that is not ours inside Markdown, where none of it may be markup."""

from __future__ import annotations

import re

MARKS = re.compile(r"[\\`*_\[\]$<>:#~|!]")
LIST_MARKS = re.compile(r"^(?=[-+])|^(\d+)(?=[.)])")
# What becomes a link without any mark; an invisible space keeps it text.
LINKED = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?<=@)", re.IGNORECASE)
INVISIBLE_SPACE = "\u200b"
LONGEST_NAME = 60  # of something that an address names


def escaped(text: str) -> str:
    """Return text that Streamlit shows as it stands: no character of it is Markdown.

    Lines are joined, since a line may begin a list, a heading or a table.
    """
    line = LINKED.sub(INVISIBLE_SPACE, " ".join(text.split()))
    return LIST_MARKS.sub(r"\1\\", MARKS.sub(r"\\\g<0>", line))


def quoted(text: str) -> str:
    """Return what a user wrote as ``escaped`` does, kept apart from the sentence around it.

    The marks, Unicode's isolates, keep its direction to itself, and no term in it is explained.
    """
    return f"\u2068{escaped(text)}\u2069"


def shortened(name: str) -> str:
    """Return a name from an address, cut where it is longer than any of ours."""
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}\u2026"
