"""The loop: prefill, then one decode step after another, as a generator of StepEvents.

Token ids in, records out: no text, no page, no pacing. N output tokens come from one prefill, or
its chunks, and N-1 decode steps. The consumer's time between two events is in no step time, and
neither is a picture of the step's attention. Which rows run next is decided in scheduler.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch

from inference.engine.batch import Block, Row, choose, fed_only, next_tokens, prompt_block
from inference.engine.clock import StepClock, sleep
from inference.engine.request_checks import check_chunk
from inference.engine.row_backend import Lane, RowBackend
from inference.engine.sampling import Choice, Sampler, describe_choices
from inference.engine.scheduler import Decode, Idle, Prefill, after, new_schedule, next_move
from inference.records.attention import AttentionChoice, AttentionMap
from inference.records.errors import InputError
from inference.records.options import ONE_BATCH, BatchPlan, CacheKind, DecodeMode, Padding, Policy
from inference.records.run import Request
from inference.records.steps import Finish, PartTime, Phase, RowStep, StepEvent

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
        split_every: Time linear operations and attention apart in the prefill and in every so many
            decode steps, from the second on (the first may be cold), which are then marked as
            observed; None for never.
        plan: How several requests share the device.
        decode: How decode steps are handed over, as ``Engine.prepare`` got ready for. A step that
            was eager instead, to be looked into, is marked as observed.
    """

    chunk_tokens: int | None = None
    cache: CacheKind = CacheKind.DYNAMIC
    split_every: int | None = None
    plan: BatchPlan = ONE_BATCH
    decode: DecodeMode = DecodeMode.EAGER


PLAIN = GenerationOptions()


class StepMeter(Protocol):
    """What times the parts of a step."""

    def start(self, phase: Phase, rows: int, cache: CacheKind) -> None:
        """Get ready before the step time of a step of this phase that feeds so many rows."""
        ...

    def stop(self) -> tuple[PartTime, ...]:
        """Return what was timed, after the step time."""
        ...

    def cancel(self) -> None:
        """Forget what was begun."""
        ...


class Engine:
    """Generates on one backend; ``zero_s`` is the run's zero on the clock's host time.

    Attributes:
        attention: What the layer chosen by ``capture`` attended to in the latest step; None when
            nothing was looked at, or the row looked at was not fed.
        idle: Waits so many seconds while no request is there; False when the run is to end.
    """

    def __init__(
        self,
        backend: RowBackend,
        clock: StepClock,
        limits: GenerationLimits,
        meter: StepMeter | None = None,
    ) -> None:
        self.attention: AttentionMap | None = None
        self.idle: Callable[[float], bool] = sleep
        self._backend = backend
        self._clock = clock
        self._limits = limits
        self._meter = meter
        self._options = PLAIN
        self._is_warm = False
        self._decoded = 0  # decode steps of this run
        self._rows: list[Row] = []  # those of the batch, in the cache's order
        self._arriving: list[Row] = []  # those whose prompts are being fed

    def capture(self, choice: AttentionChoice | None) -> None:
        """Look at a layer's attention from the next step on; None to stop. Call between steps.

        Raises:
            InputError: The model has no such layer or head.
        """
        self._backend.capture(choice)
        self.attention = None

    def split(self, every: int | None) -> None:
        """Time the parts of every so many of the next decode steps; None to stop."""
        self._options = replace(self._options, split_every=every)

    def recall(self, query: int | None = None) -> tuple[AttentionMap, ...]:
        """Return the prompt's maps for the choice as it is, one a step that was looked at.

        Another head of the same layer can be asked for after the prompt was fed. Nothing comes back
        where the prompt's queries were too large to keep.

        Args:
            query: Position of one query, to be given exactly; None for all, binned where large.
        """
        return tuple(self._marked(one) for one in self._backend.recall(query))

    def prepare(
        self, requests: Sequence[Request], options: GenerationOptions
    ) -> tuple[GenerationOptions, str]:
        """Get ready, before a run and in no step time, to hand its decode steps over as asked.

        Returns:
            The options to run with, and why their way of decoding is another than the one asked
            for; an empty string when it is not.
        """
        mode, plan = options.decode, options.plan
        note = ""
        if mode is not DecodeMode.EAGER and plan.policy is Policy.CONTINUOUS:
            note = "rows come and go, and a prepared step is for a fixed number of them"
        elif mode is not DecodeMode.EAGER and options.cache is CacheKind.QUANTISED:
            note = f"a prepared step needs a {CacheKind.STATIC} cache, not a {options.cache} one"
        if not requests or note:
            mode = DecodeMode.EAGER
        rows = min(plan.slots or len(requests), len(requests))
        columns = self._room(requests) if requests else 0
        note = self._backend.prepare(mode, rows, columns) or note
        if note:
            return replace(options, decode=DecodeMode.EAGER), note
        if mode is DecodeMode.EAGER:
            return options, ""
        return replace(options, cache=CacheKind.STATIC), ""

    def generate(
        self,
        requests: Sequence[Request],
        *,
        seed: int,
        zero_s: float,
        options: GenerationOptions = PLAIN,
    ) -> Iterator[StepEvent]:
        """Run the requests as the options' plan says, by default as one batch.

        Yields:
            Each step's event as soon as its step time has ended. The prompts are fed first, those
            of a batch together or, where rows come and go, each by itself. A chunk with more to
            come selects no token.

        Raises:
            InputError: The options cannot be had.
            BackendError, OutOfMemoryError: From the backend; events before it stand.
        """
        self._check(requests, options)
        self._options, self._rows, self._arriving = options, [], []
        schedule = new_schedule(requests, options.plan, options.chunk_tokens)
        is_first_run, self._decoded = not self._is_warm, 0
        now_s = waited_s = 0.0
        index = 0
        rows = [
            Row(request=request, slot=0, sampler=Sampler(request.sampling, seed + number))
            for number, request in enumerate(requests)
        ]
        while (move := next_move(schedule, now_s)) is not None:
            if isinstance(move, Idle):
                waited_s = move.until_s - now_s
                if not self.idle(waited_s):
                    return
                now_s = move.until_s
                continue
            block = self._block(move, rows)
            is_cold = is_first_run and self._decoded == 0
            event = replace(self._step(block, index, zero_s), cold=is_cold, waited_s=waited_s)
            self._decoded += event.phase is Phase.DECODE
            self._is_warm = self._is_warm or self._decoded > 0
            now_s += event.duration_s
            index, waited_s = index + 1, 0.0
            assignments = move.assignments
            done = [
                assignment.request
                for assignment in assignments
                if rows[assignment.request].finish is not None
            ]
            schedule = after(schedule, move, done)
            yield event

    def _check(self, requests: Sequence[Request], options: GenerationOptions) -> None:
        """Raise InputError when the run cannot be had as it is asked for."""
        check_chunk(options.chunk_tokens)
        lengths = [len(request.prompt_ids) for request in requests]
        plan = options.plan
        if plan.policy is Policy.CONTINUOUS:
            if options.cache is not CacheKind.DYNAMIC:
                msg = f"rows cannot come and go in a {options.cache} cache; choose the "
                msg += f"{CacheKind.DYNAMIC} one, or the {Policy.STATIC} policy"
                raise InputError(msg)
            self._backend.check_rows()
            self._backend.start()
            for length in lengths:
                self._backend.check_prompts([length], options.chunk_tokens)
            return
        if plan.padding is Padding.RIGHT and len(set(lengths)) > 1:
            if options.chunk_tokens is not None or options.cache is not CacheKind.DYNAMIC:
                msg = "prompts padded on the right are fed at once, into a dynamic cache; pad on "
                msg += "the left, or leave the chunks and the kind of cache as they are"
                raise InputError(msg)
            self._backend.check_right_padding()
        self._backend.check_prompts(lengths, options.chunk_tokens)

    def _block(self, move: Prefill | Decode, rows: Sequence[Row]) -> Block:
        """Seat the rows of a move, get the cache ready for them and return what they are fed."""
        moved = [rows[assignment.request] for assignment in move.assignments]
        for row, assignment in zip(moved, move.assignments, strict=True):
            row.slot = assignment.slot
        if isinstance(move, Decode):
            return next_tokens(moved)
        self._arriving = moved
        plan = self._options.plan
        if plan.policy is Policy.STATIC and move.start == 0:
            self._rows = moved
            requests = [row.request for row in moved]
            self._backend.start(self._options.cache, self._room(requests))
        padding = plan.padding if plan.policy is Policy.STATIC else Padding.LEFT
        return prompt_block(moved, move, padding)

    def _room(self, requests: Sequence[Request]) -> int:
        """Return the most columns a batch of these can come to store."""
        lengths = [len(request.prompt_ids) for request in requests]
        new = max(request.max_new_tokens for request in requests) - 1
        if self._limits.context_tokens is not None:
            new = min(new, max(0, self._limits.context_tokens - min(lengths)))
        return max(lengths) + new

    def _step(self, block: Block, index: int, zero_s: float) -> StepEvent:
        """Feed one block, select a token for each row that was fed, and report both."""
        meter = self._meter_for(block)
        started_s = self._clock.now_s() - zero_s
        self._clock.start_timing()
        logits = self._forward(block)
        chosen = choose(logits, block.rows) if block.selects else None
        host_s = self._clock.launched()
        # On a device, reading the tokens waits for them, as a user does.
        chosen = chosen.cpu() if chosen is not None else None
        duration_s = self._clock.end_timing()
        parts = meter.stop() if meter is not None else ()
        capture_s = self._capture(block.phase)
        steps = self._recorded(block, logits, chosen)
        fed = {step.request_id for step in steps}
        held = self._rows + [row for row in self._arriving if row not in self._rows]
        is_live = [row.finish is None or row.request.request_id in fed for row in held]
        live = [row.stored if lives else 0 for row, lives in zip(held, is_live, strict=True)]
        decode = self._backend.decode if block.phase is Phase.DECODE else None
        has_left = decode is DecodeMode.EAGER is not self._options.decode
        return StepEvent(
            index=index,
            phase=block.phase,
            rows=steps,
            cache=self._backend.cache_state(live),
            started_s=started_s,
            duration_s=duration_s,
            observed=bool(parts) or has_left,
            cold=False,
            capture_s=capture_s,
            parts=parts,
            host_s=host_s,
            decode=decode,
        )

    def _forward(self, block: Block) -> torch.Tensor:
        """Feed the block; where rows come and go, moving them is part of the step."""
        plan = self._options.plan
        if plan.policy is Policy.CONTINUOUS:
            return self._forward_apart(block)
        is_uneven = len(set(block.lengths)) > 1
        if block.phase is Phase.PREFILL and plan.padding is Padding.RIGHT and is_uneven:
            return self._backend.forward_right_padded(block.ids, block.lengths)
        return self._backend.forward(block.ids, block.lengths)

    def _forward_apart(self, block: Block) -> torch.Tensor:
        """Feed the batch, or one prompt apart from it that joins once it is fed whole."""
        self._backend.use(Lane.BATCH)
        live = [index for index, row in enumerate(self._rows) if row.finish is None]
        self._backend.keep_rows(live)
        self._rows = [self._rows[index] for index in live]
        if block.phase is Phase.DECODE:
            return self._backend.forward(block.ids)
        self._backend.use(Lane.ARRIVAL)
        logits = self._backend.forward(block.ids)
        if block.selects:
            self._backend.join()
            self._rows, self._arriving = [*self._rows, *block.rows], []
        return logits

    def _meter_for(self, block: Block) -> StepMeter | None:
        """Return the meter, ready, when this step's parts are to be timed."""
        meter, every = self._meter, self._options.split_every
        if meter is None:
            return None
        meter.cancel()  # a step that failed may have left it in the model
        if every is None or (block.phase is Phase.DECODE and self._decoded % every != 1 % every):
            return None
        meter.start(block.phase, len(block.ids), self._options.cache)
        return meter

    def _capture(self, phase: Phase) -> float | None:
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
        self, block: Block, logits: torch.Tensor, chosen: torch.Tensor | None
    ) -> tuple[RowStep, ...]:
        """Store what the step did to each row that was fed and return it."""
        if chosen is None:
            return tuple(fed_only(row, block.lengths[index]) for index, row in block.fed)
        samplers = [row.sampler for row in block.rows]
        told = describe_choices(logits, chosen, samplers, CANDIDATES)
        return tuple(
            self._record(row, block.lengths[index], told[index]) for index, row in block.fed
        )

    def _record(self, row: Row, fed: int, told: Choice) -> RowStep:
        """Store what the step did to one row and return it."""
        row.token_ids.append(told.token_id)
        row.finish = self._finish(row, told.token_id, row.stored + fed)
        return replace(
            fed_only(row, fed),
            token_id=told.token_id,
            logprob=told.logprob,
            finish=row.finish,
            candidates=told.candidates,
            entropy_nats=told.entropy_nats,
        )

    def _finish(self, row: Row, token_id: int, stored: int) -> Finish | None:
        """Return why the row ends with this token, None while it goes on."""
        if token_id in self._limits.eos_ids:
            return Finish.EOS
        if len(row.token_ids) >= row.request.max_new_tokens:
            return Finish.LENGTH
        limit = self._limits.context_tokens
        if limit is not None and stored >= limit:
            return Finish.CONTEXT
        return None
