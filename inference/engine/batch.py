"""Which request sits in which slot, in which order the cache holds them, and what a step feeds.

A :class:`Batch` is the only place that knows who waits, whose prompt is being fed and who decodes.
The scheduler reads it, a runner feeds its rows, the loop records what came out. No torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from inference.records.options import Padding
from inference.records.run import Request
from inference.records.steps import Finish, Phase, RowStep


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A request, by its index in the run's list, and the slot it gets."""

    request: int
    slot: int


@dataclass(slots=True, eq=False)
class BatchRow:
    """One sequence while it is generated.

    Attributes:
        number: Index of the request in the run's list.
        slot: Where it sits in the batch, once it is admitted.
        stored: Its tokens in the cache.
        token_ids: Those selected so far.
    """

    request: Request
    number: int
    slot: int = 0
    stored: int = 0
    token_ids: list[int] = field(default_factory=list)
    finish: Finish | None = None

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the prompt."""
        return len(self.request.prompt_ids)

    def fed(self, tokens: int) -> RowStep:
        """Count tokens that a step fed and return what it did, as far as none is selected."""
        self.stored += tokens
        return RowStep(
            request_id=self.request.request_id,
            slot=self.slot,
            query_tokens=tokens,
            context_tokens=self.stored,
            token_id=None,
            logprob=None,
            finish=None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPadding:
    """Where a block of rows of unequal length is padded.

    Attributes:
        lengths: Real tokens of each row; at least one is shorter than the block.
        side: Where the rest of each row is.
    """

    lengths: tuple[int, ...]
    side: Padding = Padding.LEFT

    @property
    def is_right(self) -> bool:
        """True when rows end in different columns."""
        return self.side is Padding.RIGHT

    def gaps(self, width: int) -> list[slice]:
        """Return the columns of each row, of this many, that are padding."""
        if self.is_right:
            return [slice(length, width) for length in self.lengths]
        return [slice(width - length) for length in self.lengths]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBlock:
    """What one step feeds.

    Attributes:
        rows: In the order of the cache's rows.
        ids: [row, query], padded to one length.
        lengths: Real tokens of each row.
        side: Where shorter rows are padded.
        end: Columns of the prompts fed with it; 0 in a decode step.
        selects: True when a token is selected after it; False for a chunk with more to come.
    """

    phase: Phase
    rows: tuple[BatchRow, ...]
    ids: list[list[int]]
    lengths: tuple[int, ...]
    side: Padding = Padding.LEFT
    end: int = 0
    selects: bool = True

    @property
    def padding(self) -> RowPadding | None:
        """How the rows are padded; None when every token is real."""
        if min(self.lengths) == len(self.ids[0]):
            return None
        return RowPadding(lengths=self.lengths, side=self.side)

    @property
    def fed(self) -> list[tuple[int, BatchRow]]:
        """The rows that were fed something, each with its index in the block."""
        return [(index, row) for index, row in enumerate(self.rows) if self.lengths[index]]


class Batch:
    """The requests of one run.

    Attributes:
        waiting: Those without a slot, in the order of their arrival.
        arriving: Those whose prompts are being fed.
        rows: Those whose prompts are fed, in the cache's order. A row that has ended stays until
            ``retire``.
        fed_columns: Columns of the arriving prompts fed so far.
        latest: What the latest step was; None before the first.
    """

    def __init__(self, requests: Sequence[Request]) -> None:
        by_arrival = sorted(enumerate(requests), key=lambda pair: pair[1].arrival_s)
        self.waiting = [BatchRow(request, number) for number, request in by_arrival]
        self.arriving: tuple[BatchRow, ...] = ()
        self.rows: tuple[BatchRow, ...] = ()
        self.fed_columns = 0
        self.latest: Phase | None = None

    @property
    def live(self) -> tuple[BatchRow, ...]:
        """Rows of the batch that have tokens to come."""
        return tuple(row for row in self.rows if row.finish is None)

    @property
    def stored(self) -> tuple[BatchRow, ...]:
        """Every row that the cache holds, in its order: those that arrive are the last."""
        return self.rows + self.arriving

    @property
    def width(self) -> int:
        """Columns of the longest arriving prompt."""
        return max(row.prompt_tokens for row in self.arriving)

    def admit(self, assignments: Sequence[Assignment]) -> None:
        """Give waiting requests their slots; their prompts are fed next."""
        waiting = {row.number: row for row in self.waiting}
        self.arriving = tuple(waiting[assignment.request] for assignment in assignments)
        for row, assignment in zip(self.arriving, assignments, strict=True):
            row.slot = assignment.slot
            self.waiting.remove(row)
        self.fed_columns = 0

    def retire(self) -> list[int]:
        """Take the rows that have ended out; return the indices of those that stay."""
        kept = [index for index, row in enumerate(self.rows) if row.finish is None]
        self.rows = self.live
        return kept

    def advance(self, block: TokenBlock) -> None:
        """Note that a block was fed; prompts that are fed whole join the batch."""
        self.latest = block.phase
        if block.phase is Phase.DECODE:
            return
        self.fed_columns = block.end
        if block.selects:
            self.rows, self.arriving = self.stored, ()

    def prompt_block(self, end: int, side: Padding = Padding.LEFT) -> TokenBlock:
        """Return the arriving prompts' next columns, up to ``end``."""
        start, width = self.fed_columns, self.width
        prompts = [row.request.prompt_ids for row in self.arriving]
        gaps = [[0] * (width - len(ids)) for ids in prompts]
        if side is Padding.RIGHT:
            padded = [[*ids, *gap] for ids, gap in zip(prompts, gaps, strict=True)]
            lengths = [max(0, min(end, len(ids)) - start) for ids in prompts]
        else:
            padded = [[*gap, *ids] for ids, gap in zip(prompts, gaps, strict=True)]
            lengths = [max(0, end - max(start, width - len(ids))) for ids in prompts]
        return TokenBlock(
            phase=Phase.PREFILL,
            rows=self.arriving,
            ids=[ids[start:end] for ids in padded],
            lengths=tuple(lengths),
            side=side,
            end=end,
            selects=end == width,
        )


def decode_block(rows: tuple[BatchRow, ...]) -> TokenBlock:
    """Return each row's newest token; a row that has ended is fed padding."""
    return TokenBlock(
        phase=Phase.DECODE,
        rows=rows,
        ids=[row.token_ids[-1:] if row.finish is None else [0] for row in rows],
        lengths=tuple(int(row.finish is None) for row in rows),
    )
