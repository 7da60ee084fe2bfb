"""The growing run: collects events and samples, and hands out RunTrace snapshots. No torch.

The page's run registry and the command line both record through this, so a run looks the same
wherever it was made.
"""

from __future__ import annotations

from collections.abc import Iterable

from inference.records import (
    Output,
    Request,
    RunInfo,
    RunState,
    RunTrace,
    StepEvent,
    TelemetrySample,
    TokenPiece,
    Unavailable,
)
from inference.text import TextCodec


class Recording:
    """One run while it grows; not thread-safe, its owner locks."""

    def __init__(self, info: RunInfo, requests: tuple[Request, ...], codec: TextCodec) -> None:
        self.info = info
        self.requests = requests
        self._codec = codec
        self._events: list[StepEvent] = []
        self._telemetry: list[TelemetrySample] = []
        self._pieces: dict[int, TokenPiece] = {}
        self._token_ids: dict[str, list[int]] = {request.request_id: [] for request in requests}
        for request in requests:
            self._name(request.prompt_ids)

    def add(self, event: StepEvent) -> None:
        """Append one step."""
        self._events.append(event)
        for row in event.rows:
            if row.token_id is not None:
                self._token_ids[row.request_id].append(row.token_id)
                self._name((row.token_id,))
            self._name(candidate.token_id for candidate in row.candidates)

    def add_sample(self, sample: TelemetrySample) -> None:
        """Append one telemetry sample."""
        self._telemetry.append(sample)

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
                    request_id=request_id, token_ids=tuple(ids), text=self._codec.decode(tuple(ids))
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
