"""The growing run: collects events and samples, and hands out RunTrace snapshots. No torch.

The page's run registry and the command line both record through this, so a run looks the same
wherever it was made.
"""

from __future__ import annotations

from collections.abc import Iterable

from inference.models.tokenization import TextCodec
from inference.records.model import TokenPiece
from inference.records.run import Output, Request, RunInfo, RunTrace
from inference.records.status import RunState
from inference.records.steps import StepEvent
from inference.records.telemetry import TelemetrySample, Unavailable
from inference.runs.attention_store import AttentionStore
from inference.runs.interning import Interner

ATTENTION_BYTES = 32 * 2**20  # of maps kept in memory; 8,192 decode rows of 1,000 keys each


class Recording:
    """One run while it grows; not thread-safe, its owner locks.

    Attributes:
        attention: What was captured of it, in memory only.
    """

    def __init__(self, info: RunInfo, requests: tuple[Request, ...], codec: TextCodec) -> None:
        self.info = info
        self.requests = requests
        self._codec: TextCodec | None = codec
        self._events: list[StepEvent] = []
        self._interner = Interner()
        self._telemetry: list[TelemetrySample] = []
        self._pieces: dict[int, TokenPiece] = {}
        self.attention = AttentionStore(ATTENTION_BYTES)
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

    def close(self) -> None:
        """Let go of the tokenizer, which takes megabytes: no step will follow."""
        self._codec = None

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
            if token_id not in self._pieces and self._codec is not None:
                self._pieces[token_id] = self._codec.piece(token_id)
