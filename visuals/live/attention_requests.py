"""Which attention weights are captured of each run, and those that have come. No torch.

Maps stay in memory, those of the newest runs only. The engine remembers the prompt of the run it
took up last; of older ones only what was recorded can be shown. The owner locks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from inference.process.messages import Attended, CaptureAttention, CaptureRefused, Command
from inference.records.attention import AttentionChoice, AttentionMap
from inference.records.options import Policy
from inference.runs.trace_builder import Recording
from visuals.live.attention_feed import Captured

KEPT_MAPS = 4  # runs; 32 MiB each at most
KEPT_CAPTURES = 64
RECORDED = (
    "Weights stay in the memory of the page that made the run, so a run from a file has none; "
    "start a run to see them."
)
OFF = "Capturing attention is switched off in Settings."
FROM_NEXT_STEP = (
    "This layer is captured from the next step on. For the prompt's rows start another run: it "
    "begins with this choice."
)
ONLY_PROMPT = "The run is over: for other heads only the prompt rows are still available."
OTHER_LAYER = (
    "The run is over, and this layer was not captured during it. The next run begins with the "
    "layer chosen here."
)
SHARED_ROWS = (
    "Several requests take the same row of this batch one after another, so weights are not shown; "
    "give each request a slot of its own, and the same arrival time, to see them."
)
FOLLOWED = "Another run has followed; this one keeps only what was captured during it."


@dataclass(slots=True)
class _Capture:
    """What is captured of one run.

    Attributes:
        kept: What was captured during the run, where another head was asked for afterwards.
        is_possible: False where rows are taken by several requests, one after another.
    """

    choice: AttentionChoice | None
    recording: Recording | None = None
    kept: tuple[AttentionMap, ...] = ()
    notice: str = ""
    is_over: bool = False
    is_possible: bool = True


class Captures:
    """The captures of all runs on one engine."""

    def __init__(self, send: Callable[[Command], None]) -> None:
        self._send = send
        self._captures: dict[str, _Capture] = {}

    def begin(self, run_id: str, choice: AttentionChoice | None) -> None:
        """Take up a run that the engine is to capture with this choice."""
        self._captures[run_id] = _Capture(choice, notice="" if choice is not None else OFF)
        for old in list(self._captures)[:-KEPT_CAPTURES]:
            del self._captures[old]
        for capture in list(self._captures.values())[:-KEPT_MAPS]:
            capture.kept = ()
            if capture.recording is not None:
                capture.recording.forget_attention()

    def started(self, run_id: str, recording: Recording) -> None:
        """Keep maps of this run in its recording."""
        capture = self._captures.get(run_id)
        if capture is None:
            return
        capture.recording = recording
        if not _shares_rows(recording):
            return
        before, capture.choice = capture.choice, None
        capture.notice, capture.is_possible = SHARED_ROWS, False
        if before is not None:
            self._send(CaptureAttention(run_id=run_id, choice=None))

    def ended(self, run_id: str) -> None:
        """Take note that no step will follow."""
        if run_id in self._captures:
            self._captures[run_id].is_over = True

    def ask(self, run_id: str, choice: AttentionChoice, query: int | None = None) -> None:
        """Capture this from the next step on, or one query of the prompt exactly."""
        capture = self._captures.get(run_id)
        if capture is None or not capture.is_possible:
            return
        is_newest = next(reversed(self._captures)) == run_id
        if query is not None:
            if is_newest and choice == capture.choice:
                self._send(CaptureAttention(run_id=run_id, choice=choice, query=query))
            return
        if choice == capture.choice:
            capture.notice = ""
            return
        if capture.is_over:
            capture.kept = capture.kept or _recorded(capture)
            if _held(capture.kept, choice):
                capture.choice, capture.notice = choice, ""
                return
        capture.notice, is_possible = _judged(capture, choice, is_newest=is_newest)
        if is_possible:
            capture.choice = choice
            self._send(CaptureAttention(run_id=run_id, choice=choice))

    def receive(self, reply: Attended | CaptureRefused) -> None:
        """Take what the engine captured, or why it cannot."""
        capture = self._captures.get(reply.run_id)
        if capture is None:
            return
        if isinstance(reply, CaptureRefused):
            maps = _recorded(capture)
            capture.choice = maps[-1].choice if maps else None
            capture.notice = f"{reply.sentence[0].upper()}{reply.sentence[1:]}."
        elif capture.recording is not None and reply.attention.choice == capture.choice:
            capture.recording.add_attention(reply.attention, reply.query)

    def captured(self, run_id: str, *, is_from_file: bool = False) -> Captured:
        """Return the attention weights of a run that are there."""
        capture = self._captures.get(run_id)
        if capture is None:
            return Captured(notice=RECORDED if is_from_file else "")
        recording = capture.recording
        if recording is None:
            return Captured(choice=capture.choice, notice=capture.notice)
        return Captured(
            choice=capture.choice,
            maps=_held(capture.kept, capture.choice) or recording.attention(),
            exact_row=recording.exact_row,
            notice=capture.notice,
        )


def _shares_rows(recording: Recording) -> bool:
    """Return whether a row of the batch is taken by one request after another.

    Requests that come in at different times are in several batches, each from row 0 on.
    """
    plan, requests = recording.info.plan, recording.requests
    is_short = plan.slots is not None and plan.slots < len(requests)
    are_apart = len({request.arrival_s for request in requests}) > 1
    return plan.policy is Policy.STATIC and (is_short or are_apart)


def _recorded(capture: _Capture) -> tuple[AttentionMap, ...]:
    return capture.recording.attention() if capture.recording is not None else ()


def _held(
    kept: tuple[AttentionMap, ...], choice: AttentionChoice | None
) -> tuple[AttentionMap, ...]:
    """Return the kept maps that answer for a choice; of all heads' maps each head's own."""
    if not kept or choice is None:
        return ()
    captured = kept[-1].choice
    if captured == choice:
        return kept
    is_one_of_all = captured.is_all_heads and not choice.is_all_heads and choice.head is not None
    if not is_one_of_all or replace(captured, head=choice.head, is_all_heads=False) != choice:
        return ()
    return tuple(_of_head(one, choice) for one in kept if choice.head in one.heads)


def _of_head(of_all: AttentionMap, choice: AttentionChoice) -> AttentionMap:
    """Return one head's part of a map of all heads."""
    plane = slice(of_all.heads.index(choice.head or 0), None)
    parts = (of_all.weights, of_all.first_token, of_all.rest_of_first_cell)
    weights, first, rest = (None if one is None else one[plane][:1] for one in parts)
    return replace(
        of_all,
        choice=choice,
        heads=of_all.heads[plane][:1],
        weights=weights,
        first_token=first,
        rest_of_first_cell=rest,
    )


def _judged(capture: _Capture, choice: AttentionChoice, *, is_newest: bool) -> tuple[str, bool]:
    """Return what to say of another choice, and whether it is possible at all."""
    before = capture.choice
    is_same_layer = before is not None and before.layer == choice.layer
    if not capture.is_over:
        has_begun = capture.recording is not None and bool(capture.recording.attention())
        return ("" if is_same_layer or not has_begun else FROM_NEXT_STEP), True
    if not is_newest:
        return FOLLOWED, False
    if not is_same_layer:
        return OTHER_LAYER, False
    return ONLY_PROMPT, True
