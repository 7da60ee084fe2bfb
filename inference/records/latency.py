"""The latency figures of requests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencySummary:
    """The latency figures of one request; None where too little was measured.

    Attributes:
        itl_s: For each token after the first, the step times since the one before it in this
            sequence.
        sequence_tokens_per_s: 1 / TPOT: decode steps only.
        e2e_tokens_per_s: Output tokens / E2E.
        is_cold: True when a step in it may hold first-call costs.
        excluded_steps: Steps left out of the ITL figures because they were observed.
        wait_s: Part of TTFT before its first step: the wait for a slot; None before that step.
        interrupted: Which of ``itl_s`` (0 for the first) hold another row's prefill.
        disturbed_steps: Steps after its first token that other programs disturbed and that were not
            observed. They are left out of the ITL figures too, unless ``is_all_disturbed``.
        is_all_disturbed: True when every ITL that was not observed holds such a step, so that the
            ITL figures are of all of them.
        is_ttft_disturbed: True when a step of its TTFT was disturbed.
    """

    request_id: str
    output_tokens: int
    ttft_s: float | None
    itl_s: tuple[float, ...]
    itl_p50_s: float | None
    itl_p95_s: float | None
    tpot_s: float | None
    e2e_s: float | None
    sequence_tokens_per_s: float | None
    e2e_tokens_per_s: float | None
    is_cold: bool
    excluded_steps: int
    wait_s: float | None = None
    interrupted: tuple[int, ...] = ()
    disturbed_steps: int = 0
    is_all_disturbed: bool = False
    is_ttft_disturbed: bool = False

    @property
    def left_out_steps(self) -> int:
        """Steps that the ITL figures leave out, observed or disturbed."""
        return self.excluded_steps + (0 if self.is_all_disturbed else self.disturbed_steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodput:
    """How many requests kept the limits a user set.

    Attributes:
        good: Their ids.
        undecided: Ids of finished requests that kept the first limit and have no TPOT to hold
            against the second, because every ITL has an observed step in it; neither good nor bad.
        finished: Requests that have their last token.
        requests_per_s: Good ones per second of the run's own time, at least that many where some
            are undecided; None before the first step, and where all finished ones are undecided.
    """

    good: tuple[str, ...]
    undecided: tuple[str, ...]
    finished: int
    requests_per_s: float | None
