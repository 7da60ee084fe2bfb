"""The energy that a GPU took in each phase of a run, from the samples of its counter.

Pure: a trace in, numbers and sentences out. No torch, no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import fsum

import numpy as np

from inference.figures.phase_spans import phase_spans
from inference.records.run import RunTrace
from inference.records.steps import Phase, StepEvent
from inference.records.telemetry import TelemetrySample

# Chosen: each end of a span is known to one interval of the counter only; beyond a fifth not even
# the first digit of its energy means much.
MOST_UNCERTAIN = 0.2
# Chosen: time that the counter does not cover is filled in at the mean rate; up to a tenth of it
# that stays within the uncertainty above.
LEAST_COVERED = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseEnergy:
    """Energy of the whole GPU while one phase went on.

    Attributes:
        tokens: Fed in prefill, or selected in decode.
        seconds: Host time of the phase's steps, short gaps between them included.
        energy_j: None where it is not known.
        interval_s: How often the counter moves; None when there is none.
        uncertain_ratio: The most that ``energy_j`` may be off, since the counter is that coarse.
        reason: Why there is no energy; empty otherwise.
    """

    phase: Phase
    tokens: int
    seconds: float
    energy_j: float | None = None
    interval_s: float | None = None
    uncertain_ratio: float | None = None
    reason: str = ""

    @property
    def joules_per_token(self) -> float | None:
        """Energy of one token; None where it is not known."""
        if self.energy_j is None or not self.tokens:
            return None
        return self.energy_j / self.tokens


def energy_by_phase(trace: RunTrace) -> tuple[PhaseEnergy, ...]:
    """Return the energy of prefill and of decode, each None with a reason where it is not known.

    The counter is read ten times a second or so and moves in steps of its own, so a phase needs
    some seconds for its energy to mean something. What other programs and the idle device take
    meanwhile is in it.
    """
    counter = _Counter(trace.telemetry)
    return tuple(_phase_energy(trace.events, phase, counter) for phase in Phase)


class _Counter:
    """The energy counter over host time.

    Attributes:
        interval_s: How often it moves, as far as the samples tell; None when it does not.
    """

    def __init__(self, samples: Iterable[TelemetrySample]) -> None:
        read = [(one.at_s, one.energy_j) for one in samples if one.energy_j is not None]
        self._at_s = np.array([at_s for at_s, _ in read], dtype=np.float64)
        self._energy_j = np.array([energy for _, energy in read], dtype=np.float64)
        self.interval_s: float | None = None
        if len(read) > 1:
            moved_at = self._at_s[1:][np.diff(self._energy_j) > 0]
            if len(moved_at) > 1:
                self.interval_s = float(np.median(np.diff(moved_at)))

    def covered(self, start_s: float, end_s: float) -> tuple[float, float]:
        """Return the energy between two moments and for how many seconds of them it is known."""
        start_s, end_s = max(start_s, self._at_s[0]), min(end_s, self._at_s[-1])
        if end_s <= start_s:
            return 0.0, 0.0
        first, last = np.interp([start_s, end_s], self._at_s, self._energy_j)
        return float(last - first), float(end_s - start_s)


def _phase_energy(events: Sequence[StepEvent], phase: Phase, counter: _Counter) -> PhaseEnergy:
    steps = [event for event in events if event.phase is phase]
    interval_s = counter.interval_s
    spans = list(phase_spans(events, phase, interval_s or 0.0))
    measured = PhaseEnergy(
        phase=phase,
        tokens=_tokens(steps, phase),
        seconds=fsum(end_s - start_s for start_s, end_s in spans),
        interval_s=interval_s,
    )
    if not steps:
        return replace(measured, reason="no such step yet")
    if interval_s is None:
        return replace(measured, reason="the GPU's energy counter was not read, or did not move")
    parts = [counter.covered(*span) for span in spans]
    energy_j, covered_s = fsum(one for one, _ in parts), fsum(one for _, one in parts)
    uncertain = 2 * len(spans) * interval_s / covered_s if covered_s else 1.0
    if uncertain > MOST_UNCERTAIN or covered_s < LEAST_COVERED * measured.seconds:
        needed_s = 2 * len(spans) * interval_s / MOST_UNCERTAIN
        reason = (
            f"too short: it took {measured.seconds:.2g} s; the counter is updated every "
            f"{interval_s:.2g} s, so {needed_s:.2g} s are needed"
        )
        return replace(measured, reason=reason)
    return replace(
        measured,
        energy_j=energy_j * measured.seconds / covered_s,
        uncertain_ratio=uncertain,
    )


def _tokens(steps: Iterable[StepEvent], phase: Phase) -> int:
    if phase is Phase.PREFILL:
        return sum(event.query_tokens for event in steps)
    return sum(row.token_id is not None for event in steps for row in event.rows)
