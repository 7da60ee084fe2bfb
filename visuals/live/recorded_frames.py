"""The frames of a run that is over, in one piece, for a page that plays it without a server.

They are those that the live route would send to a viewer who watches the run as it plays again. A
long run has fewer stops, each of several steps, so that making them takes seconds and not minutes;
no step is left out for that. No torch, no page.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from inference.records.run import RunTrace
from inference.records.status import RunState, RunStatus
from inference.runs.replay import run_until, step_ends_s
from visuals.live.frame_tokens import Frame
from visuals.live.frames import frame
from visuals.live.playback import ending
from visuals.live.tally import Tally

MOST_STOPS = 800  # about as many as a slider has places
STOPS_OF_LONG_RUNS = 400  # each frame looks at all steps before it
LEVEL = 9  # of zlib
GZIP_BITS = 31  # zlib's largest window, in gzip's wrapping
HELD_BACK_BYTES = 64 * 1024  # what zlib may have taken in and not yet given out
TIME_DIGITS = 6  # microseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedFrames:
    """A run as a page plays it.

    Attributes:
        stops: Steps shown wherever the run can be held, from 0 up.
        ends_s: When each of them is over at the run's own pace.
        packed: For each stop a list of the frames that lead to it from the one before: JSON, gzip.
    """

    stops: tuple[int, ...]
    ends_s: tuple[float, ...]
    packed: bytes

    @property
    def steps(self) -> int:
        """Steps that the frames hold."""
        return self.stops[-1]


def stops_of(steps: int) -> tuple[int, ...]:
    """Return after how many steps a run can be held: all, or of a long one every few.

    Before the first step, after it and at the end in any case.
    """
    stride = 1 if steps <= MOST_STOPS else ceil(steps / STOPS_OF_LONG_RUNS)
    wanted = {0, 1, *range(stride, steps, stride), steps}
    return tuple(sorted(stop for stop in wanted if stop <= steps))


def recorded_frames(trace: RunTrace, most_bytes: int) -> RecordedFrames:
    """Return the frames of a run from its beginning on, as many as fit.

    Args:
        trace: A run that is over.
        most_bytes: That they may take, packed. What leads to the first stop is there in any case.
    """
    viewer = _Viewer(trace)
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP_BITS)
    pieces: list[bytes] = []
    held: list[int] = []
    size = 0
    for stop in stops_of(len(trace.events)):
        if held and size + HELD_BACK_BYTES > most_bytes:
            break
        text = json.dumps([*viewer.until(stop)], separators=(",", ":"), allow_nan=False)
        pieces.append(packer.compress(f"{',' if held else '['}{text}".encode()))
        size += len(pieces[-1])
        held.append(stop)
    pieces.append(packer.compress(b"]") + packer.flush())
    ends_s = (0.0, *step_ends_s(trace.events))
    return RecordedFrames(
        stops=tuple(held),
        ends_s=tuple(round(ends_s[stop], TIME_DIGITS) for stop in held),
        packed=b"".join(pieces),
    )


class _Viewer:
    """Somebody who watches a run as it plays again, and draws whatever comes."""

    def __init__(self, trace: RunTrace) -> None:
        self._trace = trace
        self._tally = Tally()
        self._cursor = 0

    def until(self, steps: int) -> Iterator[Frame]:
        """Yield the frames that lead from what was drawn to the run after so many steps."""
        is_whole = steps == len(self._trace.events)
        state = ending(self._trace) if is_whole else RunState.PAUSED
        message = self._trace.message if is_whole else ""
        shown = run_until(self._trace, steps, state, message)
        status = RunStatus(state=state, message=message)
        while True:
            update = frame(shown, status, self._cursor, self._tally)
            yield update
            self._cursor = int(str(update["to"]))
            if self._cursor == update["total"]:
                return
