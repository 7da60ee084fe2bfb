"""Runs without a page: orders in, RunTraces out, in this very process."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

from inference.engine.clock import clock_for
from inference.engine.free_memory import check_memory
from inference.engine.loop import PLAIN, Engine, GenerationLimits, GenerationOptions
from inference.engine.row_backend import TorchRowBackend
from inference.models.devices import gpu_id
from inference.models.loading import LoadedModel
from inference.models.tokenization import TextCodec
from inference.process.messages import Generate
from inference.process.run_info import run_info
from inference.process.telemetry import Telemetry
from inference.records.costs import Ceilings
from inference.records.errors import BackendError, OutOfMemoryError
from inference.records.run import Request, RunTrace
from inference.records.status import RunState
from inference.records.steps import StepEvent
from inference.runs.trace_builder import Recording


class HeadlessRunner:
    """Runs requests on one loaded model, one batch after another."""

    def __init__(
        self, loaded: LoadedModel, codec: TextCodec, ceilings: Ceilings | None = None
    ) -> None:
        """Hold a model.

        Args:
            loaded: The model.
            codec: Its tokenizer.
            ceilings: The device's roofs for its dtype, for the runs to carry; None when unknown.
        """
        self._roofs = ceilings
        self._loaded = loaded
        self._codec = codec
        self._clock = clock_for(loaded.model.device)
        limits = GenerationLimits(eos_ids=loaded.eos_ids, context_tokens=loaded.context_limit)
        self._engine = Engine(TorchRowBackend(loaded.model), self._clock, limits)

    def run(
        self,
        requests: Sequence[Request],
        *,
        seed: int,
        on_event: Callable[[StepEvent], None],
        options: GenerationOptions = PLAIN,
    ) -> RunTrace:
        """Run the requests as one batch.

        A run that fails or is interrupted is returned as far as it came, with its state and reason.
        """
        batch = tuple(requests)
        command = Generate(
            run_id=secrets.token_urlsafe(6),
            requests=batch,
            seed=seed,
            chunk_tokens=options.chunk_tokens,
            cache=options.cache,
            plan=options.plan,
        )
        prepared = self._engine.prepare(batch, options)
        info = run_info(self._loaded, self._clock, command, prepared, self._roofs)
        zero_s = self._clock.now_s()
        recording = Recording(info, batch, self._codec)
        telemetry = Telemetry(
            self._clock, recording.add_sample, gpu=gpu_id(self._loaded.model.device)
        )
        state, message = RunState.DONE, ""
        telemetry.start(zero_s)
        try:
            check_memory(self._loaded, batch, options.plan)
            steps = self._engine.generate(batch, seed=seed, zero_s=zero_s, options=prepared[0])
            for event in steps:
                recording.add(event)
                on_event(event)
        except KeyboardInterrupt:
            state, message = RunState.STOPPED, "interrupted"
        except (BackendError, OutOfMemoryError) as error:
            state, message = RunState.FAILED, str(error)
        finally:
            telemetry.stop()
        return recording.snapshot(state, message, telemetry.unavailable())
