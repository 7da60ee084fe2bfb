"""Runs without a page: requests in, a RunTrace out, in this very process."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

from inference.engine.clock import sleep
from inference.engine.loop import PLAIN, GenerationOptions
from inference.models.loading import LoadedModel
from inference.models.tokenization import TextCodec
from inference.process.recaptures import with_attention
from inference.process.runner import Runner, RunPlan
from inference.records.attention import AttentionChoice
from inference.records.costs import Ceilings
from inference.records.run import Request, RunInfo, RunTrace
from inference.records.status import LoadStage, RunState
from inference.records.steps import StepEvent
from inference.records.telemetry import TelemetrySample, Unavailable
from inference.runs.trace_builder import Recording

OnProgress = Callable[[LoadStage], None]


class HeadlessRunner:
    """Runs requests on one loaded model, one batch after another.

    Attributes:
        runner: The engine over the model.
        ceilings: The device's roofs for its dtype, for the runs to carry; None when unknown.
        check_warning: What the model's self-check found to differ, likewise; empty when nothing.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        codec: TextCodec,
        ceilings: Ceilings | None = None,
        check_warning: str = "",
    ) -> None:
        self.runner = Runner(loaded)
        self.ceilings = ceilings
        self.check_warning = check_warning
        self._codec = codec

    def run(
        self,
        requests: Sequence[Request],
        *,
        seed: int,
        options: GenerationOptions = PLAIN,
        on_progress: OnProgress = lambda _stage: None,
        captures: Sequence[AttentionChoice] = (),
    ) -> RunTrace:
        """Run the requests as one batch.

        A run that fails or is interrupted is returned as far as it came, with its state and reason.

        Args:
            requests: One row each.
            seed: The first request's.
            options: How the run goes.
            on_progress: Told how far it is.
            captures: Whose attention to keep with a run that is done, captured after its last step.
        """
        plan = RunPlan(
            run_id=secrets.token_urlsafe(6),
            requests=tuple(requests),
            seed=seed,
            options=options,
            ceilings=self.ceilings,
            check_warning=self.check_warning,
        )
        sink = _RecordingSink(plan.requests, self._codec, on_progress)
        self.runner.run(plan, sink)
        if not captures or sink.trace.state is not RunState.DONE:
            return sink.trace
        on_progress(LoadStage(stage="capturing attention from the run's tokens"))
        return with_attention(sink.trace, self.runner.backend, captures)


class _RecordingSink:
    """Records a run that nobody steers."""

    trace: RunTrace
    _recording: Recording

    def __init__(
        self, requests: tuple[Request, ...], codec: TextCodec, on_progress: OnProgress
    ) -> None:
        self._requests = requests
        self._codec = codec
        self._on_progress = on_progress
        self._most_tokens = max((request.max_new_tokens for request in requests), default=1)

    def preparing(self, stage: LoadStage) -> None:
        self._on_progress(stage)

    def started(self, info: RunInfo) -> None:
        self._recording = Recording(info, self._requests, self._codec)

    def may_step(self) -> bool:
        return True

    def idle(self, seconds: float) -> bool:
        return sleep(seconds)

    def stepped(self, event: StepEvent) -> None:
        self._recording.add(event)
        ratio = min(1.0, (event.index + 1) / self._most_tokens)  # chunks of the prompt count too
        self._on_progress(LoadStage(stage="generating", ratio=ratio))

    def sampled(self, sample: TelemetrySample) -> None:
        self._recording.add_sample(sample)

    def ended(self, state: RunState, message: str, unavailable: tuple[Unavailable, ...]) -> None:
        self.trace = self._recording.snapshot(state, message, unavailable)
