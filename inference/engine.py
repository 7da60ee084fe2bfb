"""The loop: prefill once, then one decode step after another, as a generator of StepEvents.

Token ids in, records out: no text, no page, no pacing. N output tokens come from one prefill and
N-1 decode steps. The consumer's time between two events is in no lap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from inference.backend import Backend
from inference.records import Candidate, Finish, Phase, Request, RowStep, StepEvent
from inference.sampling import Sampler, describe
from inference.timing import StepClock

CANDIDATES = 5  # kept for each selected token


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationLimits:
    """What ends a row, beside its own ``max_new_tokens``.

    Attributes:
        eos_ids: Tokens that end a sequence; they are part of the output.
        context_tokens: Most tokens the model can hold; None when it names no limit.
    """

    eos_ids: frozenset[int]
    context_tokens: int | None


@dataclass(slots=True)
class _Row:
    """One sequence while it is generated."""

    request: Request
    slot: int
    sampler: Sampler
    stored: int = 0
    token_ids: list[int] = field(default_factory=list)
    finish: Finish | None = None


class Engine:
    """Generates on one backend; ``zero_s`` is the run's zero on the clock's host time."""

    def __init__(self, backend: Backend, clock: StepClock, limits: GenerationLimits) -> None:
        self._backend = backend
        self._clock = clock
        self._limits = limits
        self._is_warm = False

    def generate(
        self, requests: Sequence[Request], *, seed: int, zero_s: float
    ) -> Iterator[StepEvent]:
        """Run the requests as one batch whose rows stay until all are done.

        Yields:
            The prefill's event, then each decode step's, each as soon as its lap has ended.

        Raises:
            BackendError, OutOfMemoryError: From the backend; events before it stand.
        """
        rows = [
            _Row(request=request, slot=slot, sampler=Sampler(request.sampling, seed + slot))
            for slot, request in enumerate(requests)
        ]
        self._backend.start()
        is_cold = not self._is_warm
        prompts = [row.request.prompt_ids for row in rows]
        yield self._step(Phase.PREFILL, rows, prompts, (0, zero_s, is_cold))
        index = 0
        while any(row.finish is None for row in rows):
            index += 1
            # A row that has finished keeps its place and is fed as padding until all are done.
            fed = [row.token_ids[-1:] if row.finish is None else () for row in rows]
            yield self._step(Phase.DECODE, rows, fed, (index, zero_s, is_cold and index == 1))
            self._is_warm = True

    def _step(
        self,
        phase: Phase,
        rows: list[_Row],
        fed: Sequence[Sequence[int]],
        place: tuple[int, float, bool],
    ) -> StepEvent:
        """Feed one block, select a token for each row that was fed, and report both."""
        index, zero_s, is_cold = place
        width = max(len(ids) for ids in fed)
        block = [[0] * (width - len(ids)) + list(ids) for ids in fed]
        lengths = [len(ids) for ids in fed]
        started_s = self._clock.now_s() - zero_s
        self._clock.start_lap()
        logits = self._backend.forward(block, lengths)
        chosen = _choose(logits, rows).cpu()  # on a device this waits for the token, as a user does
        duration_s = self._clock.end_lap()
        told = _described(logits, chosen)
        steps = tuple(
            self._record(row, lengths[row.slot], told[row.slot])
            for row in rows
            if lengths[row.slot]
        )
        live = [row.stored if row.finish is None or lengths[row.slot] else 0 for row in rows]
        return StepEvent(
            index=index,
            phase=phase,
            rows=steps,
            cache=self._backend.cache_state(live),
            started_s=started_s,
            duration_s=duration_s,
            observed=False,
            cold=is_cold,
        )

    def _record(self, row: _Row, fed: int, told: Choice) -> RowStep:
        """Store what the step did to one row and return it."""
        row.stored += fed
        row.token_ids.append(told.token_id)
        row.finish = self._finish(row, told.token_id)
        return RowStep(
            request_id=row.request.request_id,
            slot=row.slot,
            query_tokens=fed,
            context_tokens=row.stored,
            token_id=told.token_id,
            logprob=told.logprob,
            finish=row.finish,
            candidates=told.candidates,
        )

    def _finish(self, row: _Row, token_id: int) -> Finish | None:
        """Return why the row ends with this token, None while it goes on."""
        if token_id in self._limits.eos_ids:
            return Finish.EOS
        if len(row.token_ids) >= row.request.max_new_tokens:
            return Finish.LENGTH
        limit = self._limits.context_tokens
        if limit is not None and row.stored >= limit:
            return Finish.CONTEXT
        return None


@dataclass(frozen=True, slots=True)
class Choice:
    """A selected token, its log-probability (nats) and the likeliest alternatives."""

    token_id: int
    logprob: float
    candidates: tuple[Candidate, ...]


def _choose(logits: torch.Tensor, rows: Sequence[_Row]) -> torch.Tensor:
    """Return one token id a row from ``logits`` [row, vocab]."""
    if all(row.request.sampling.is_greedy for row in rows):
        return rows[0].sampler.choose(logits)
    picks = [row.sampler.choose(logits[row.slot : row.slot + 1]) for row in rows]
    return torch.cat(picks)


def _described(logits: torch.Tensor, chosen: torch.Tensor) -> list[Choice]:
    """Return what was chosen in each row, read to the host."""
    described = describe(logits, chosen, CANDIDATES)
    return [
        Choice(token_id, logprob, candidates)
        for token_id, (logprob, candidates) in zip(chosen.tolist(), described, strict=True)
    ]
