"""Attention of runs that are over, captured anew on the model that made them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from inference.engine.backend import TorchBackend
from inference.engine.recapture import recapture
from inference.process.messages import (
    Attended,
    CaptureAttention,
    Recapture,
    RecaptureEnded,
    Reply,
)
from inference.records.attention import AttentionChoice, AttentionMap
from inference.records.errors import TokenByTokenError
from inference.records.run import RunTrace
from inference.runs.known_tokens import known_tokens, recapture_note
from inference.runs.packed_attention import BUDGET_BYTES, packed_together


class Recapturer:
    """Captures attention anew between two runs, and leaves off as soon as a command waits."""

    def __init__(self, report: Callable[[Reply], None], is_called: Callable[[], bool]) -> None:
        """Begin with nothing captured.

        Args:
            report: Sends a reply.
            is_called: Tells whether a command waits.
        """
        self._report = report
        self._is_called = is_called
        self._latest: Recapture | None = None

    def forget(self) -> None:
        """Take it that the engine's memory is of another run from here on."""
        self._latest = None

    def carry_out(self, command: Recapture, backend: TorchBackend) -> None:
        """Send the maps of one layer, and the end."""
        self._latest = None
        left_off: list[bool] = []

        def should_stop() -> bool:
            if self._is_called():
                left_off.append(True)
            return bool(left_off)

        sentence = ""
        try:
            for one in recapture(backend, command.tokens, command.choice, should_stop):
                self._send(command.run_id, one)
        except TokenByTokenError as error:
            sentence = str(error)
        if not sentence and not left_off:
            self._latest = command
        self._report(
            RecaptureEnded(
                number=command.number,
                sentence=sentence,
                is_interrupted=bool(left_off),
            )
        )

    def recall(self, command: CaptureAttention, backend: TorchBackend) -> None:
        """Send one query exactly, where it is of what was captured last."""
        latest = self._latest
        if latest is None or command.query is None:
            return
        if (command.run_id, command.choice) != (latest.run_id, latest.choice):
            return
        for one in backend.recall(command.query):
            self._send(command.run_id, replace(one, choice=latest.choice), command.query)

    def _send(self, run_id: str, captured: AttentionMap, query: int | None = None) -> None:
        self._report(
            Attended(run_id=run_id, step_index=captured.step_index, attention=captured, query=query)
        )


def with_attention(
    trace: RunTrace,
    backend: TorchBackend,
    choices: Sequence[AttentionChoice],
    *,
    budget_bytes: int = BUDGET_BYTES,
) -> RunTrace:
    """Return a finished run with what these layers attend to, for every request.

    Args:
        trace: The run.
        backend: The model that made it, idle.
        choices: The layers and heads.
        budget_bytes: Of the packed text; neighbouring keys share a cell where it is short.

    Raises:
        InputError: There is no such layer or head.
        BackendError, OutOfMemoryError: The model failed.
    """
    note = recapture_note(trace.info)
    captures = (
        (choice, maps, note) for choice, maps in _recaptured(trace, backend, choices) if maps
    )
    return replace(trace, attention=packed_together(captures, budget_bytes=budget_bytes))


def _recaptured(
    trace: RunTrace, backend: TorchBackend, choices: Sequence[AttentionChoice]
) -> Iterator[tuple[AttentionChoice, tuple[AttentionMap, ...]]]:
    for choice in choices:
        for number in range(len(trace.requests)):
            known = known_tokens(trace, number)
            if known is None:
                continue
            of_request = replace(choice, slot=number)
            yield of_request, tuple(recapture(backend, known, of_request))
