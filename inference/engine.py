"""The loop: prefill, then one decode step after another, as a generator of StepEvents.

Token ids in, records out: no text, no page, no pacing. N output tokens come from one prefill, or
its chunks, and N-1 decode steps. The consumer's time between two events is in no lap, and neither
is a picture of the step's attention.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch

from inference.backend import Backend
from inference.records import (
    AttentionChoice,
    AttentionMap,
    CacheKind,
    Finish,
    Phase,
    Request,
    RowStep,
    StepEvent,
)
from inference.requests import check_chunk
from inference.sampling import Choice, Sampler, describe_choices
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


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationOptions:
    """How a run is done, where there is a choice.

    Attributes:
        chunk_tokens: Feed the prompt in chunks of so many columns; None for all at once.
        cache: How keys and values are stored.
    """

    chunk_tokens: int | None = None
    cache: CacheKind = CacheKind.DYNAMIC


PLAIN = GenerationOptions()


@dataclass(slots=True)
class _Row:
    """One sequence while it is generated."""

    request: Request
    slot: int
    sampler: Sampler
    stored: int = 0
    token_ids: list[int] = field(default_factory=list)
    finish: Finish | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """What one step feeds.

    Attributes:
        ids: [row, query], padded on the left.
        lengths: Real tokens of each row.
        selects: True when a token is selected after it; False for a chunk with more to come.
    """

    phase: Phase
    ids: list[list[int]]
    lengths: list[int]
    selects: bool = True


class Engine:
    """Generates on one backend; ``zero_s`` is the run's zero on the clock's host time.

    Attributes:
        attention: What the layer chosen by ``look_at`` attended to in the latest step; None when
            nothing was looked at, or the row looked at was not fed.
    """

    def __init__(self, backend: Backend, clock: StepClock, limits: GenerationLimits) -> None:
        self.attention: AttentionMap | None = None
        self._backend = backend
        self._clock = clock
        self._limits = limits
        self._is_warm = False
        self._rows: list[_Row] = []

    def look_at(self, choice: AttentionChoice | None) -> None:
        """Look at a layer's attention from the next step on; None to stop. Call between steps.

        Raises:
            InputError: The model has no such layer or head.
        """
        self._backend.look_at(choice)
        self.attention = None

    def recall(self, query: int | None = None) -> tuple[AttentionMap, ...]:
        """Return the prompt's maps for the choice as it is, one a step that was looked at.

        Another head of the same layer can be asked for after the prompt was fed. Nothing comes back
        where the prompt's queries were too large to keep.

        Args:
            query: Position of one query, to be given exactly; None for all, binned where large.
        """
        return tuple(self._marked(one) for one in self._backend.recall(query))

    def generate(
        self,
        requests: Sequence[Request],
        *,
        seed: int,
        zero_s: float,
        options: GenerationOptions = PLAIN,
    ) -> Iterator[StepEvent]:
        """Run the requests as one batch whose rows stay until all are done.

        Yields:
            The prefill's event or its chunks', then each decode step's, each as soon as its lap has
            ended. A chunk with more to come selects no token.

        Raises:
            InputError: The options cannot be had.
            BackendError, OutOfMemoryError: From the backend; events before it stand.
        """
        check_chunk(options.chunk_tokens)
        rows = self._rows = [
            _Row(request=request, slot=slot, sampler=Sampler(request.sampling, seed + slot))
            for slot, request in enumerate(requests)
        ]
        lengths = [len(request.prompt_ids) for request in requests]
        self._backend.check_prompts(lengths, options.chunk_tokens)
        self._backend.start(options.cache, self._room(requests))
        is_cold = not self._is_warm
        index = 0
        for block in _prompt_blocks(requests, options.chunk_tokens):
            yield self._step(block, index, zero_s, is_cold=is_cold)
            index += 1
        first_decode = index
        while any(row.finish is None for row in rows):
            cold = is_cold and index == first_decode
            yield self._step(_next_tokens(rows), index, zero_s, is_cold=cold)
            self._is_warm = True
            index += 1

    def _room(self, requests: Sequence[Request]) -> int:
        """Return the most columns the run can come to store."""
        lengths = [len(request.prompt_ids) for request in requests]
        new = max(request.max_new_tokens for request in requests) - 1
        if self._limits.context_tokens is not None:
            new = min(new, max(0, self._limits.context_tokens - min(lengths)))
        return max(lengths) + new

    def _step(self, block: _Block, index: int, zero_s: float, *, is_cold: bool) -> StepEvent:
        """Feed one block, select a token for each row that was fed, and report both."""
        rows, lengths = self._rows, block.lengths
        started_s = self._clock.now_s() - zero_s
        self._clock.start_lap()
        logits = self._backend.forward(block.ids, lengths)
        # On a device, reading the tokens waits for them, as a user does.
        chosen = _choose(logits, rows).cpu() if block.selects else None
        duration_s = self._clock.end_lap()
        look_s = self._look(block.phase)
        steps = self._recorded(block, logits, chosen)
        live = [row.stored if row.finish is None or lengths[row.slot] else 0 for row in rows]
        return StepEvent(
            index=index,
            phase=block.phase,
            rows=steps,
            cache=self._backend.cache_state(live),
            started_s=started_s,
            duration_s=duration_s,
            observed=False,
            cold=is_cold,
            look_s=look_s,
        )

    def _look(self, phase: Phase) -> float | None:
        """Form the picture of the step's attention; return what that took, None for no picture."""
        started_s = self._clock.now_s()
        seen = self._backend.attention(is_prompt=phase is Phase.PREFILL)
        self.attention = None if seen is None else self._marked(seen)
        return None if seen is None else self._clock.now_s() - started_s

    def _marked(self, seen: AttentionMap) -> AttentionMap:
        """Return the map with the query named that the first output token was chosen by."""
        last = len(self._rows[seen.choice.slot].request.prompt_ids) - 1
        is_held = seen.query_start <= last < seen.query_start + seen.query_tokens
        return replace(seen, first_output_query=last) if is_held else seen

    def _recorded(
        self, block: _Block, logits: torch.Tensor, chosen: torch.Tensor | None
    ) -> tuple[RowStep, ...]:
        """Store what the step did to each row that was fed and return it."""
        fed = [row for row in self._rows if block.lengths[row.slot]]
        if chosen is None:
            return tuple(_fed_only(row, block.lengths[row.slot]) for row in fed)
        samplers = [row.sampler for row in self._rows]
        told = describe_choices(logits, chosen, samplers, CANDIDATES)
        return tuple(self._record(row, block.lengths[row.slot], told[row.slot]) for row in fed)

    def _record(self, row: _Row, fed: int, told: Choice) -> RowStep:
        """Store what the step did to one row and return it."""
        row.token_ids.append(told.token_id)
        row.finish = self._finish(row, told.token_id, row.stored + fed)
        return replace(
            _fed_only(row, fed),
            token_id=told.token_id,
            logprob=told.logprob,
            finish=row.finish,
            candidates=told.candidates,
            entropy_nats=told.entropy_nats,
        )

    def _finish(self, row: _Row, token_id: int, stored: int) -> Finish | None:
        """Return why the row ends with this token, None while it goes on."""
        if token_id in self._limits.eos_ids:
            return Finish.EOS
        if len(row.token_ids) >= row.request.max_new_tokens:
            return Finish.LENGTH
        limit = self._limits.context_tokens
        if limit is not None and stored >= limit:
            return Finish.CONTEXT
        return None


def _prompt_blocks(requests: Sequence[Request], chunk_tokens: int | None) -> Iterator[_Block]:
    """Yield the prompts as one block, or as chunks of so many columns."""
    prompts = [request.prompt_ids for request in requests]
    width = max(len(ids) for ids in prompts)
    padded = [[0] * (width - len(ids)) + list(ids) for ids in prompts]
    step = chunk_tokens or width
    for start in range(0, width, step):
        end = min(start + step, width)
        yield _Block(
            phase=Phase.PREFILL,
            ids=[ids[start:end] for ids in padded],
            lengths=[max(0, end - max(start, width - len(ids))) for ids in prompts],
            selects=end == width,
        )


def _next_tokens(rows: Sequence[_Row]) -> _Block:
    """Return each row's newest token; a finished row is fed padding until all are done."""
    return _Block(
        phase=Phase.DECODE,
        ids=[row.token_ids[-1:] if row.finish is None else [0] for row in rows],
        lengths=[int(row.finish is None) for row in rows],
    )


def _fed_only(row: _Row, fed: int) -> RowStep:
    """Count the tokens fed to a row and return a step that selects nothing."""
    row.stored += fed
    return RowStep(
        request_id=row.request.request_id,
        slot=row.slot,
        query_tokens=fed,
        context_tokens=row.stored,
        token_id=None,
        logprob=None,
        finish=None,
    )


def _choose(logits: torch.Tensor, rows: Sequence[_Row]) -> torch.Tensor:
    """Return one token id a row from ``logits`` [row, vocab]."""
    if all(row.request.sampling.is_greedy for row in rows):
        return rows[0].sampler.choose(logits)
    picks = [row.sampler.choose(logits[row.slot : row.slot + 1]) for row in rows]
    return torch.cat(picks)
