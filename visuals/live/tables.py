"""Rows as they travel: the names of the columns once, then lists of cells. No torch, no page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeAlias

from visuals.charts.theme import Row

Table: TypeAlias = dict[str, object]


def appended(rows: Sequence[Row]) -> Table:
    """Return rows that come after those the viewer has."""
    return _table("append", rows)


def replaced(rows: Sequence[Row]) -> Table:
    """Return rows that take the place of those the viewer has."""
    return _table("replace", rows)


def merged(rows: Sequence[Row]) -> Table:
    """Return rows of which the viewer may have some: those with a greater ``k`` are added."""
    return _table("merge", rows)


def json_size(value: object) -> int:
    """Return how many bytes a value takes in a frame, at most."""
    return len(json.dumps(value, separators=(",", ":")))


def _table(mode: str, rows: Sequence[Row]) -> Table:
    """Return rows, all of the same columns, with how they are to be taken."""
    columns = list(rows[0]) if rows else []
    return {"mode": mode, "columns": columns, "rows": [list(row.values()) for row in rows]}
