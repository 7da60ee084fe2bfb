"""Runs without a page: orders in, RunTraces out, in this very process."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

from inference.backend import TorchBackend
from inference.engine import Engine, GenerationLimits
from inference.errors import BackendError, OutOfMemoryError
from inference.loading import LoadedModel
from inference.messages import Generate
from inference.recording import Recording
from inference.records import Request, RunState, RunTrace, StepEvent
from inference.telemetry import Telemetry
from inference.text import TextCodec
from inference.timing import clock_for
from inference.worker import run_info


class HeadlessRunner:
    """Runs requests on one loaded model, one batch after another."""

    def __init__(self, loaded: LoadedModel, codec: TextCodec) -> None:
        self._loaded = loaded
        self._codec = codec
        self._clock = clock_for(loaded.model.device)
        limits = GenerationLimits(eos_ids=loaded.eos_ids, context_tokens=loaded.context_limit)
        self._engine = Engine(TorchBackend(loaded.model), self._clock, limits)

    def run(
        self,
        requests: Sequence[Request],
        *,
        seed: int,
        on_event: Callable[[StepEvent], None],
    ) -> RunTrace:
        """Run the requests as one batch.

        A run that fails or is interrupted is returned as far as it came, with its state and reason.
        """
        batch = tuple(requests)
        command = Generate(run_id=secrets.token_urlsafe(6), requests=batch, seed=seed)
        zero_s = self._clock.now_s()
        recording = Recording(run_info(self._loaded, self._clock, command), batch, self._codec)
        telemetry = Telemetry(self._clock, recording.add_sample)
        state, message = RunState.DONE, ""
        telemetry.start(zero_s)
        try:
            for event in self._engine.generate(batch, seed=seed, zero_s=zero_s):
                recording.add(event)
                on_event(event)
        except KeyboardInterrupt:
            state, message = RunState.STOPPED, "interrupted"
        except (BackendError, OutOfMemoryError) as error:
            state, message = RunState.FAILED, str(error)
        finally:
            telemetry.stop()
        return recording.snapshot(state, message, telemetry.unavailable())
