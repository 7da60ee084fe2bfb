"""Which attention weights are captured of each run, and those that are there. No torch.

While a run goes, a choice is captured from its next step on. Of a run that is over, whatever is not
there is computed from its tokens as soon as the engine has nothing else to do. Maps stay in memory
for the runs looked at last; the run file keeps them for all. The owner locks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from inference.process.messages import (
    Attended,
    CaptureAttention,
    CaptureRefused,
    Command,
    ModelReady,
    Recapture,
    RecaptureEnded,
)
from inference.records.attention import AttentionChoice, AttentionMap, PackedAttention
from inference.records.errors import RunFileError
from inference.records.options import Policy
from inference.records.run import RunTrace
from inference.runs.attention_store import AttentionStore
from inference.runs.known_tokens import known_tokens, recapture_note
from inference.runs.packed_attention import unpacked
from inference.runs.trace_builder import Recording
from visuals.live.attention_feed import Captured
from visuals.live.attention_maps import Maps, answering, answers, covered, is_whole
from visuals.live.attention_words import (
    FROM_NEXT_STEP,
    NOT_FED,
    OFF,
    SHARED_ROWS,
    computing,
    incomplete,
    refused,
    why_not,
)

KEPT_MAPS = 4  # runs
AGAIN_BYTES = 64 * 2**20  # of the maps captured after a run
UNPACKED = 2  # choices of a run file held unpacked
KEPT_CAPTURES = 64

Made = tuple[AttentionChoice, Maps, str]  # a choice with its maps and how they were captured


@dataclass(slots=True)
class _Capture:
    """What is captured of one run.

    Attributes:
        choice: What is shown, or waited for.
        recording: Of a run made here.
        trace: Of a run that is over, once something was asked of it.
        packed: What its run file keeps.
        again: What was captured after it was over.
        exact_row: The query asked for last.
        awaited: The choice that is being computed; None while none is.
        fed: Tokens that each request of a run that is over was fed, as far as asked for.
        former: The choice to return to when the one waited for cannot be met.
        is_possible: False while it goes where rows are taken by several requests.
        is_dropped: Its maps were dropped to make room for those of later runs.
    """

    choice: AttentionChoice | None
    recording: Recording | None = None
    trace: RunTrace | None = None
    packed: tuple[PackedAttention, ...] = ()
    again: AttentionStore = field(default_factory=lambda: AttentionStore(AGAIN_BYTES))
    opened: dict[int, Maps] = field(default_factory=dict[int, Maps])
    exact_row: AttentionMap | None = None
    awaited: AttentionChoice | None = None
    fed: dict[int, int] = field(default_factory=dict[int, int])
    former: AttentionChoice | None = None
    notice: str = ""
    note: str = ""
    is_over: bool = False
    is_possible: bool = True
    is_dropped: bool = False


class Captures:
    """The captures of all runs on one engine."""

    def __init__(
        self,
        send: Callable[[Command], None],
        model: Callable[[], ModelReady | None] = lambda: None,
    ) -> None:
        """Begin without a run.

        Args:
            send: Sends a command to the engine.
            model: The one that the engine holds.
        """
        self._send = send
        self._model = model
        self._captures: dict[str, _Capture] = {}
        self._remembered = ""  # the run whose prompt the engine can still be asked about
        self._wanted: dict[str, Recapture] = {}
        self._sent: Recapture | None = None
        self._number = 0

    # A run that goes

    def begin(self, run_id: str, choice: AttentionChoice | None) -> None:
        """Take up a run that the engine is to capture with this choice."""
        self._keep(run_id, _Capture(choice, notice="" if choice is not None else OFF))
        self._remembered = run_id

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
        capture = self._captures.get(run_id)
        if capture is not None:
            capture.is_over = capture.is_possible = True
            if capture.choice is None:
                capture.notice = ""  # from here on everything can be asked for

    def ask(self, run_id: str, choice: AttentionChoice, query: int | None = None) -> None:
        """Capture this from the next step on, or one query exactly that the engine remembers."""
        capture = self._captures.get(run_id)
        if capture is None or not capture.is_possible:
            return
        if query is not None:
            if run_id == self._remembered and choice == capture.choice:
                self._send(CaptureAttention(run_id=run_id, choice=choice, query=query))
            return
        if capture.is_over:
            return  # ``ask_again`` is for those
        if choice == capture.choice:
            capture.notice = ""
            return
        before = capture.choice
        is_same_layer = before is not None and before.layer == choice.layer
        has_begun = capture.recording is not None and bool(capture.recording.attention.all())
        capture.notice = "" if is_same_layer or not has_begun else FROM_NEXT_STEP
        capture.choice = choice
        self._send(CaptureAttention(run_id=run_id, choice=choice))

    # A run that is over

    def open(self, run_id: str, trace: RunTrace) -> None:
        """Take up a run that is over, with what its run file keeps."""
        capture = self._captures.get(run_id)
        if capture is None:
            first = trace.attention[0] if trace.attention else None
            capture = _Capture(
                first.choice if first is not None else None,
                trace=trace,
                packed=trace.attention,
                note=first.note if first is not None else "",
                is_over=True,
            )
        elif capture.is_dropped:
            capture.packed, capture.is_dropped = trace.attention, False
            if not trace.attention:
                capture.choice = None
        self._keep(run_id, capture)

    def is_open(self, run_id: str) -> bool:
        """Return whether what is known of the run's attention is in memory."""
        capture = self._captures.get(run_id)
        return capture is not None and not capture.is_dropped

    def ask_again(self, run_id: str, choice: AttentionChoice, trace: RunTrace) -> None:
        """Show this of a run that is over; compute it from its tokens where it is not there."""
        capture = self._captures.get(run_id)
        if capture is None:
            return
        self._wanted.pop(run_id, None)
        capture.trace = trace
        known = known_tokens(trace, choice.slot)
        fed = capture.fed[choice.slot] = 0 if known is None else len(known.ids)
        found = answering(self._sources(capture, choice), choice, fed)
        if known is not None and is_whole(found, fed):
            capture.choice, capture.awaited = choice, None
            capture.notice, capture.note = "", _note(capture, choice)
            return
        obstacle = NOT_FED if known is None else why_not(trace.info, self._model())
        if known is None or obstacle:
            capture.notice = incomplete(obstacle) if found else refused(choice, obstacle)
            capture.choice = choice if found else capture.choice
            return
        if capture.awaited is None:
            capture.former = capture.choice
        capture.choice = capture.awaited = choice
        capture.notice, capture.note = "", computing(choice)
        self._number += 1
        self._wanted[run_id] = Recapture(
            number=self._number, run_id=run_id, choice=choice, tokens=known
        )

    def begin_waiting(self) -> None:
        """Have the idle engine compute what is waited for; a newer wish of a run goes first."""
        sent = self._sent
        if sent is not None and sent.run_id not in self._wanted:
            return
        run_id = sent.run_id if sent is not None else next(iter(self._wanted), None)
        if run_id is None:
            return
        command = self._wanted.pop(run_id)
        capture = self._captures.get(run_id)
        if capture is None or capture.trace is None:
            return
        obstacle = why_not(capture.trace.info, self._model())  # another model may have come
        if obstacle:
            self._fail(capture, command.choice, obstacle)
            return
        self._sent, self._remembered = command, ""
        self._send(command)

    def recaptured(self, reply: RecaptureEnded) -> None:
        """Take the end of what was computed from a run's tokens."""
        sent = self._sent
        if sent is None or sent.number != reply.number:
            return  # a newer wish has taken its place
        self._sent = None
        capture = self._captures.get(sent.run_id)
        if capture is None or capture.awaited != sent.choice:
            return
        if reply.is_interrupted:
            self._wanted.setdefault(sent.run_id, sent)
        elif reply.sentence:
            self._fail(capture, sent.choice, reply.sentence)
        else:
            self._remembered = sent.run_id
            capture.awaited = None
            capture.note = _note(capture, sent.choice)

    def died(self) -> None:
        """Take it that the engine is gone, and what it was to compute with it."""
        self._remembered = ""
        waiting = [*self._wanted.values(), *((self._sent,) if self._sent is not None else ())]
        self._wanted.clear()
        self._sent = None
        for command in waiting:
            capture = self._captures.get(command.run_id)
            if capture is not None and capture.awaited == command.choice:
                self._fail(capture, command.choice, "the engine process ended")

    # What comes, and what is there

    def receive(self, reply: Attended | CaptureRefused) -> None:
        """Take what the engine captured, or why it cannot."""
        capture = self._captures.get(reply.run_id)
        if capture is None:
            return
        if isinstance(reply, CaptureRefused):
            maps = _recorded(capture)
            capture.choice = maps[0][-1].choice if maps else None
            capture.notice = f"{reply.sentence[0].upper()}{reply.sentence[1:]}."
        elif reply.query is not None:
            capture.exact_row = reply.attention
        elif capture.is_over:
            capture.again.add(reply.attention)
        elif capture.recording is not None:
            capture.recording.attention.add(reply.attention)

    def captured(self, run_id: str) -> Captured:
        """Return the attention weights of a run that are there."""
        capture = self._captures.get(run_id)
        if capture is None:
            return Captured()
        choice = capture.choice
        maps: Maps = ()
        notice = capture.notice
        if choice is not None:
            try:
                maps = self._shown(capture, choice)
            except RunFileError as error:
                notice = f"{str(error)[0].upper()}{str(error)[1:]}."
        return Captured(
            choice=choice,
            maps=maps,
            exact_row=capture.exact_row,
            notice=notice,
            note=capture.note,
            is_over=capture.is_over,
        )

    def kept(self, run_id: str) -> tuple[tuple[Made, ...], tuple[PackedAttention, ...]]:
        """Return what a run file is to keep: what was captured here, and what its file had.

        The choice that is shown comes first.
        """
        capture = self._captures.get(run_id)
        if capture is None:
            return (), ()
        made = [(maps, "") for maps in _recorded(capture)]
        made += [(maps, _recapture_note(capture)) for maps in capture.again.all()]
        best: dict[AttentionChoice, Made] = {}
        for maps, note in sorted(made, key=lambda one: covered(one[0])):
            best[maps[-1].choice] = (maps[-1].choice, maps, note)
        ranked = sorted(best.values(), key=lambda one: one[0] != capture.choice)
        return tuple(ranked), capture.packed

    def _shown(self, capture: _Capture, choice: AttentionChoice) -> Maps:
        """Return the maps to draw; those that are being computed as far as they have come."""
        if capture.awaited == choice:
            return capture.again.of(choice)
        return answering(self._sources(capture, choice), choice, capture.fed.get(choice.slot, 0))

    def _sources(self, capture: _Capture, choice: AttentionChoice) -> Iterator[Maps]:
        """Yield maps that may answer for a choice, those of the run itself first."""
        for maps in (*_recorded(capture), *capture.again.all()):
            if maps and answers(maps[-1].choice, choice):
                yield maps
        ranked = sorted(enumerate(capture.packed), key=lambda one: one[1].choice != choice)
        for number, one in ranked:
            if answers(one.choice, choice):
                yield self._opened(capture, number, one)

    def _opened(self, capture: _Capture, number: int, packed: PackedAttention) -> Maps:
        """Return maps of a run file, unpacked once.

        Raises:
            RunFileError: They are damaged.
        """
        if number not in capture.opened:
            maps = unpacked(packed)
            for old in list(capture.opened)[: 1 - UNPACKED]:
                del capture.opened[old]
            capture.opened[number] = maps
        return capture.opened[number]

    def _fail(self, capture: _Capture, choice: AttentionChoice, sentence: str) -> None:
        capture.again.forget(choice)
        capture.choice, capture.awaited, capture.note = capture.former, None, ""
        capture.notice = refused(choice, sentence)

    def _keep(self, run_id: str, capture: _Capture) -> None:
        """Put a run last, and let go of what was kept of the runs that were put last long ago."""
        self._captures.pop(run_id, None)
        self._captures[run_id] = capture
        for old in list(self._captures)[:-KEPT_CAPTURES]:
            del self._captures[old]
        for one in list(self._captures.values())[:-KEPT_MAPS]:
            one.opened.clear()
            one.again.forget()
            if one.recording is not None and one.is_over:
                one.recording.attention.forget()
                one.is_dropped = True


def _recorded(capture: _Capture) -> tuple[Maps, ...]:
    return capture.recording.attention.all() if capture.recording is not None else ()


def _note(capture: _Capture, choice: AttentionChoice) -> str:
    """Return how the maps that answer for a choice were captured; empty when during the run."""
    if any(maps and answers(maps[-1].choice, choice) for maps in _recorded(capture)):
        return ""
    packed = [one.note for one in capture.packed if answers(one.choice, choice)]
    return packed[0] if packed else _recapture_note(capture)


def _recapture_note(capture: _Capture) -> str:
    info = capture.trace.info if capture.trace is not None else None
    return recapture_note(info) if info is not None else ""


def _shares_rows(recording: Recording) -> bool:
    """Return whether a row of the batch is taken by one request after another.

    Requests that come in at different times are in several batches, each from row 0 on.
    """
    plan, requests = recording.info.plan, recording.requests
    is_short = plan.slots is not None and plan.slots < len(requests)
    are_apart = len({request.arrival_s for request in requests}) > 1
    return plan.policy is Policy.STATIC and (is_short or are_apart)
