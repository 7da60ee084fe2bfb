"""The growing run: collects events and samples, and hands out RunTrace snapshots. No torch.

The page's run registry and the command line both record through this, so a run looks the same
wherever it was made.
"""

from __future__ import annotations

from collections.abc import Iterable

from inference.models.tokenization import TextCodec
from inference.records.attention import AttentionMap
from inference.records.model import TokenPiece
from inference.records.run import Output, Request, RunInfo, RunTrace
from inference.records.status import RunState
from inference.records.steps import StepEvent
from inference.records.telemetry import TelemetrySample, Unavailable
from inference.runs.interning import Interner

ATTENTION_BYTES = 32 * 2**20  # of maps kept in memory; 8,192 decode rows of 1,000 keys each


class Recording:
    """One run while it grows; not thread-safe, its owner locks.

    Attributes:
        exact_row: The weights of the one query of the prompt asked for last; None before that.
    """

    def __init__(self, info: RunInfo, requests: tuple[Request, ...], codec: TextCodec) -> None:
        self.info = info
        self.requests = requests
        self._codec = codec
        self._events: list[StepEvent] = []
        self._interner = Interner()
        self._telemetry: list[TelemetrySample] = []
        self._pieces: dict[int, TokenPiece] = {}
        self._attention: dict[int, AttentionMap] = {}
        self._attention_bytes = 0
        self.exact_row: AttentionMap | None = None
        self._token_ids: dict[str, list[int]] = {request.request_id: [] for request in requests}
        # Joined as they come: a snapshot is taken ten times a second, at any length.
        self._text: dict[str, bytearray] = {request.request_id: bytearray() for request in requests}
        for request in requests:
            self._name(request.prompt_ids)

    def add(self, event: StepEvent) -> None:
        """Append one step."""
        event = self._interner.shared(event)
        self._events.append(event)
        for row in event.rows:
            if row.token_id is not None:
                self._token_ids[row.request_id].append(row.token_id)
                self._name((row.token_id,))
                piece = self._pieces[row.token_id]
                self._text[row.request_id] += b"" if piece.is_special else piece.raw
            self._name(candidate.token_id for candidate in row.candidates)

    def add_sample(self, sample: TelemetrySample) -> None:
        """Append one telemetry sample."""
        self._telemetry.append(sample)

    def add_attention(self, attention: AttentionMap, query: int | None = None) -> None:
        """Keep the map of one step, in memory only; the oldest decode steps go first.

        Args:
            attention: The map; of another choice than those kept, it replaces all of them.
            query: The one query that was asked for; None when the map is of the whole step.
        """
        if query is not None:
            self.exact_row = attention
            return
        first = next(iter(self._attention.values()), attention)
        if first.choice != attention.choice:
            self.forget_attention()
        before = self._attention.pop(attention.step_index, None)
        self._attention[attention.step_index] = attention
        self._attention_bytes += attention.nbytes - (before.nbytes if before is not None else 0)
        while self._attention_bytes > ATTENTION_BYTES:
            rows = (step for step, kept in self._attention.items() if kept.query_tokens == 1)
            oldest = next(rows, attention.step_index)
            if oldest == attention.step_index:
                return
            self._attention_bytes -= self._attention.pop(oldest).nbytes

    def forget_attention(self) -> None:
        """Drop all maps, to make room for those of later runs."""
        self._attention.clear()
        self._attention_bytes = 0
        self.exact_row = None

    def attention(self) -> tuple[AttentionMap, ...]:
        """Return the maps kept, in the order of their steps; all are of one choice."""
        return tuple(self._attention[step] for step in sorted(self._attention))

    def snapshot(
        self, state: RunState, message: str = "", unavailable: tuple[Unavailable, ...] = ()
    ) -> RunTrace:
        """Return the run so far, complete up to its newest event."""
        return RunTrace(
            info=self.info,
            requests=self.requests,
            events=tuple(self._events),
            telemetry=tuple(self._telemetry),
            outputs=tuple(
                Output(
                    request_id=request_id,
                    token_ids=tuple(ids),
                    text=self._text[request_id].decode("utf-8", errors="replace"),
                )
                for request_id, ids in self._token_ids.items()
            ),
            pieces=tuple(self._pieces.values()),
            unavailable=unavailable,
            state=state,
            message=message,
        )

    def _name(self, ids: Iterable[int]) -> None:
        """Remember the bytes of ids not met before."""
        for token_id in ids:
            if token_id not in self._pieces:
                self._pieces[token_id] = self._codec.piece(token_id)
