"""The loop: prefill, then one decode step after another, as a generator of StepEvents.

Token ids in, records out: no text, no page, no pacing. N output tokens come from one prefill, or
its chunks, and N-1 decode steps. The consumer's time between two events is in no step time, and
neither is a map of the step's attention. The scheduler decides which rows run next, a runner
feeds them, and the loop records what came out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from torch import Tensor

from inference.engine.backend_protocol import RowBackend
from inference.engine.batch import Batch, BatchRow, TokenBlock
from inference.engine.clock import StepClock, sleep
from inference.engine.request_checks import check_chunk
from inference.engine.run_delay import StepDelays, ThreadDelays
from inference.engine.runners import ContinuousRunner, Runner, StaticRunner, columns_needed
from inference.engine.sampling import Choice, Sampler, choose_each, describe_choices, read_choices
from inference.engine.scheduler import Idle, Scheduler, check_arrivals
from inference.records.attention import AttentionChoice, AttentionMap
from inference.records.options import ONE_BATCH, BatchPlan, CacheKind, DecodeMode, Policy
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

    def finish(self, row: BatchRow) -> Finish | None:
        """Return why the row ends with its newest token; None while it goes on."""
        if row.token_ids[-1] in self.eos_ids:
            return Finish.EOS
        if len(row.token_ids) >= row.request.max_new_tokens:
            return Finish.LENGTH
        if self.context_tokens is not None and row.stored >= self.context_tokens:
            return Finish.CONTEXT
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationOptions:
    """How a run goes, where there is a choice.

    Attributes:
        chunk_tokens: Feed the prompt in chunks of this many columns; None for all at once.
        cache: How keys and values are stored.
        split_every: Time linear operations and attention apart in every n-th decode step, which is
            then marked as observed; None for never.
        is_prefill_split: Time them apart in the prefill too, and in decode steps from the second on
            (the first may be cold). Otherwise TTFT and the first steps are left alone: the first
            step timed so is in the middle of the first n.
        plan: How several requests share the device.
        decode: How decode steps are launched, as ``Engine.prepare`` got ready for. A step that was
            eager instead, to be captured or timed in parts, is marked as observed.
    """

    chunk_tokens: int | None = None
    cache: CacheKind = CacheKind.DYNAMIC
    split_every: int | None = None
    is_prefill_split: bool = True
    plan: BatchPlan = ONE_BATCH
    decode: DecodeMode = DecodeMode.EAGER


PLAIN = GenerationOptions()


class StepMeter(Protocol):
    """What times the parts of a step."""

    def start(self, phase: Phase, rows: int, cache: CacheKind) -> None:
        """Get ready before the step time of a step of this phase that feeds this many rows."""
        ...

    def stop(self) -> tuple[PartTime, ...]:
        """Return what was timed, after the step time."""
        ...

    def cancel(self) -> None:
        """Forget what was begun."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """What belongs to one run.

    Attributes:
        samplers: One for each request, in the order of the run's list.
        delays: Reads how long the step's threads waited for a processor.
        zero_s: The run's zero on the clock's host time.
    """

    batch: Batch
    runner: Runner
    samplers: tuple[Sampler, ...]
    delays: StepDelays
    zero_s: float


class Engine:
    """Generates on one backend.

    Attributes:
        attention: What the layer chosen by ``capture`` attended to in the latest step; None when
            nothing was captured, or the chosen row was not fed.
        idle: Waits this many seconds while no request is there; False when the run is to end.
        delays: Makes what reads how long a run's threads waited for a processor.
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
        self.delays: Callable[[], StepDelays] = ThreadDelays
        self._backend = backend
        self._clock = clock
        self._limits = limits
        self._meter = meter
        self._options = PLAIN
        self._is_warm = False
        self._shapes: set[tuple[CacheKind, int]] = set()  # of eager decode steps since loading
        self._decoded = 0  # decode steps of this run
        self._batch = Batch(())  # the latest run's

    def capture(self, choice: AttentionChoice | None) -> None:
        """Capture a layer's attention from the next step on; None to stop. Call between steps.

        Raises:
            InputError: The model has no such layer or head.
        """
        self._backend.capture(choice)
        self.attention = None

    def split(self, every: int | None) -> None:
        """Time the parts of every n-th of the next decode steps; None to stop."""
        self._options = replace(self._options, split_every=every, is_prefill_split=True)

    def recall(self, query: int | None = None) -> tuple[AttentionMap, ...]:
        """Return the prompt's maps for the choice as it is, one for each captured step.

        Another head of the same layer can be asked for after the prompt was fed. Nothing comes back
        where the prompt's queries were too large to keep.

        Args:
            query: Position of one query, to be given exactly; None for all, binned where large.
        """
        return tuple(self._marked(captured) for captured in self._backend.recall(query))

    def prepare(
        self, requests: Sequence[Request], options: GenerationOptions
    ) -> tuple[GenerationOptions, str]:
        """Get ready, before a run and in no step time, to launch its decode steps as asked.

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
        columns = columns_needed(requests, self._limits.context_tokens) if requests else 0
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

        Args:
            requests: One row each.
            seed: The first request's; each further one takes the next number.
            zero_s: The run's zero on the clock's host time.
            options: How the run goes.

        Yields:
            Each step's event as soon as its step time has ended. The prompts are fed first, those
            of a batch together or, where rows come and go, each by itself. A chunk with more to
            come selects no token.

        Raises:
            InputError: The options do not go together, or with this model.
            BackendError, OutOfMemoryError: From the backend; events before it stand.
        """
        run = self._begin(requests, seed, zero_s, options)
        with run.delays:
            yield from self._steps(run, options)

    def _steps(self, run: _Run, options: GenerationOptions) -> Iterator[StepEvent]:
        """Yield the run's events, one move of the scheduler after another."""
        scheduler = Scheduler(options.plan, options.chunk_tokens)
        is_first_run = not self._is_warm
        now_s = waited_s = 0.0
        index = 0
        while (move := scheduler.next_move(run.batch, now_s)) is not None:
            if isinstance(move, Idle):
                waited_s = move.until_s - now_s
                if not self.idle(waited_s):
                    return
                now_s = move.until_s
                continue
            is_cold = is_first_run and self._decoded == 0
            event = self._step(run, run.runner.block(move), index)
            is_cold = self._is_new_shape(event) or is_cold
            self._decoded += event.phase is Phase.DECODE
            self._is_warm = self._is_warm or self._decoded > 0
            now_s += event.duration_s
            yield replace(event, cold=is_cold, waited_s=waited_s)
            index, waited_s = index + 1, 0.0

    def _is_new_shape(self, event: StepEvent) -> bool:
        """Tell whether a device decoded this many rows eagerly for the first time.

        A device loads a kernel when it is first launched, and which kernels a step takes depends on
        its rows. Prompts have a length each, so of prefills it is not known.

        Source:
            CUDA C++ programming guide, lazy loading.
        """
        if event.host_s is None or event.decode is not DecodeMode.EAGER:
            return False
        shape = (self._options.cache, len(event.rows))
        is_new = shape not in self._shapes
        self._shapes.add(shape)
        return is_new

    def _begin(
        self, requests: Sequence[Request], seed: int, zero_s: float, options: GenerationOptions
    ) -> _Run:
        """Check the run and return what belongs to it, before its first step."""
        check_chunk(options.chunk_tokens)
        check_arrivals([request.arrival_s for request in requests])
        batch = Batch(requests)
        runner = self._runner(batch, options)
        runner.check(requests, options.chunk_tokens)
        self._options, self._batch, self._decoded = options, batch, 0
        samplers = tuple(
            Sampler(request.sampling, seed + number) for number, request in enumerate(requests)
        )
        return _Run(
            batch=batch, runner=runner, samplers=samplers, delays=self.delays(), zero_s=zero_s
        )

    def _runner(self, batch: Batch, options: GenerationOptions) -> Runner:
        if options.plan.policy is Policy.CONTINUOUS:
            return ContinuousRunner(self._backend, batch, options.cache)
        context_tokens = self._limits.context_tokens
        padding = options.plan.padding
        return StaticRunner(self._backend, batch, options.cache, padding, context_tokens)

    def _step(self, run: _Run, block: TokenBlock, index: int) -> StepEvent:
        """Feed one block, select a token for each row that was fed, and report both."""
        samplers = [run.samplers[row.number] for row in block.rows]
        meter = self._meter_for(block)
        run.delays.start()
        started_s = self._clock.now_s() - run.zero_s
        self._clock.start_timing()
        logits = run.runner.forward(block)
        launched = choose_each(logits, samplers) if block.selects else None
        if launched is not None:  # behind the work on a device, and waited for with it
            launched = launched.to("cpu", non_blocking=True)
        host_s = self._clock.launched()
        # From here on a device goes on by itself, so what the host loses costs the step nothing.
        lost_s = None if host_s is None else run.delays.stop()
        duration_s = self._clock.end_timing()
        lost_s = run.delays.stop() if host_s is None else lost_s
        chosen = None if launched is None else read_choices(launched)
        parts = meter.stop() if meter is not None else ()
        run.batch.advance(block)
        capture_s = self._captured(block.phase)
        stored = run.batch.stored
        was_live = [row.finish is None for row in stored]
        steps = self._recorded(block, logits, chosen, samplers)
        live = [row.stored if lives else 0 for row, lives in zip(stored, was_live, strict=True)]
        decode = self._backend.decode if block.phase is Phase.DECODE else None
        is_eager = decode is DecodeMode.EAGER
        is_eager_instead = is_eager and self._options.decode is not DecodeMode.EAGER
        return StepEvent(
            index=index,
            phase=block.phase,
            rows=steps,
            cache=run.runner.cache_state(live),
            started_s=started_s,
            duration_s=duration_s,
            observed=bool(parts) or is_eager_instead,
            cold=False,
            capture_s=capture_s,
            parts=parts,
            host_s=host_s,
            decode=decode,
            # A wait that began before the step is counted when it ends, in whole.
            run_delay_s=None if lost_s is None else min(lost_s, duration_s),
        )

    def _meter_for(self, block: TokenBlock) -> StepMeter | None:
        """Return the meter, ready, when this step's parts are to be timed."""
        meter = self._meter
        if meter is None:
            return None
        meter.cancel()  # a step that failed may have left it in the model
        if not self._is_split(block.phase):
            return None
        meter.start(block.phase, len(block.ids), self._options.cache)
        return meter

    def _is_split(self, phase: Phase) -> bool:
        """Tell whether the parts of the next step are to be timed."""
        every, with_prefill = self._options.split_every, self._options.is_prefill_split
        if every is None:
            return False
        if phase is Phase.PREFILL:
            return with_prefill
        first = 1 if with_prefill else every // 2
        return (self._decoded - first) % every == 0

    def _captured(self, phase: Phase) -> float | None:
        """Form the map of the step's attention; return what that took, None for no map."""
        started_s = self._clock.now_s()
        captured = self._backend.attention(is_prompt=phase is Phase.PREFILL)
        self.attention = None if captured is None else self._marked(captured)
        return None if captured is None else self._clock.now_s() - started_s

    def _marked(self, captured: AttentionMap) -> AttentionMap:
        """Return the map with the query named that the first output token was chosen by."""
        rows = self._batch.stored[captured.choice.slot :]
        if not rows:
            return captured
        last = rows[0].prompt_tokens - 1
        is_held = captured.query_start <= last < captured.query_start + captured.query_tokens
        return replace(captured, first_output_query=last) if is_held else captured

    def _recorded(
        self,
        block: TokenBlock,
        logits: Tensor,
        chosen: Tensor | None,
        samplers: Sequence[Sampler],
    ) -> tuple[RowStep, ...]:
        """Store what the step did to each row that was fed and return it."""
        if chosen is None:
            return tuple(row.fed(block.lengths[at]) for at, row in block.fed)
        choices = describe_choices(logits, chosen, samplers, CANDIDATES)
        return tuple(self._selected(row, block.lengths[at], choices[at]) for at, row in block.fed)

    def _selected(self, row: BatchRow, fed: int, choice: Choice) -> RowStep:
        """Store the token that a step selected for a row and return what the step did."""
        step = row.fed(fed)
        row.token_ids.append(choice.token_id)
        row.finish = self._limits.finish(row)
        return replace(
            step,
            token_id=choice.token_id,
            logprob=choice.logprob,
            finish=row.finish,
            candidates=choice.candidates,
            entropy_nats=choice.entropy_nats,
        )
