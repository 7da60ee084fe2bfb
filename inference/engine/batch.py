"""The rows of a run and the blocks of tokens that a step feeds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from inference.engine.sampling import Sampler
from inference.engine.scheduler import Prefill
from inference.records.options import Padding
from inference.records.run import Request
from inference.records.steps import Finish, Phase, RowStep


@dataclass(slots=True, eq=False)
class Row:
    """One sequence while it is generated; ``slot`` is its place in the batch."""

    request: Request
    slot: int
    sampler: Sampler
    stored: int = 0
    token_ids: list[int] = field(default_factory=list)
    finish: Finish | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What one step feeds.

    Attributes:
        rows: In the order of the cache's rows.
        ids: [row, query], padded to one length.
        lengths: Real tokens of each row.
        selects: True when a token is selected after it; False for a chunk with more to come.
    """

    phase: Phase
    rows: tuple[Row, ...]
    ids: list[list[int]]
    lengths: list[int]
    selects: bool = True

    @property
    def fed(self) -> list[tuple[int, Row]]:
        """The rows that were fed something, with their places."""
        return [(index, row) for index, row in enumerate(self.rows) if self.lengths[index]]


def prompt_block(rows: Sequence[Row], move: Prefill, padding: Padding) -> Block:
    """Return the columns of the rows' prompts that a move feeds."""
    start, end, width = move.start, move.end, move.width
    prompts = [row.request.prompt_ids for row in rows]
    gaps = [[0] * (width - len(ids)) for ids in prompts]
    if padding is Padding.RIGHT:
        padded = [[*ids, *gap] for ids, gap in zip(prompts, gaps, strict=True)]
        lengths = [max(0, min(end, len(ids)) - start) for ids in prompts]
    else:
        padded = [[*gap, *ids] for ids, gap in zip(prompts, gaps, strict=True)]
        lengths = [max(0, end - max(start, width - len(ids))) for ids in prompts]
    return Block(
        phase=Phase.PREFILL,
        rows=tuple(rows),
        ids=[ids[start:end] for ids in padded],
        lengths=lengths,
        selects=move.is_last,
    )


def next_tokens(rows: Sequence[Row]) -> Block:
    """Return each row's newest token; a row that is done is fed padding."""
    return Block(
        phase=Phase.DECODE,
        rows=tuple(rows),
        ids=[row.token_ids[-1:] if row.finish is None else [0] for row in rows],
        lengths=[int(row.finish is None) for row in rows],
    )


def fed_only(row: Row, fed: int) -> RowStep:
    """Count the tokens fed to a row and return a step that selects nothing."""
    row.stored += fed
    return RowStep(
        request_id=row.request.request_id,
        slot=row.slot,
        query_tokens=fed,
        context_tokens=row.stored,
        token_id=None,
        logprob=None,
        finish=None,
    )


def choose(logits: torch.Tensor, rows: Sequence[Row]) -> torch.Tensor:
    """Return one token id a row from ``logits`` [row, vocab]."""
    if all(row.request.sampling.is_greedy for row in rows):
        return rows[0].sampler.choose(logits)
    picks = [row.sampler.choose(logits[at : at + 1]) for at, row in enumerate(rows)]
    return torch.cat(picks)
