"""A card whose steps take as long as a test says, on a clock that nothing else moves."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import repeat
from types import SimpleNamespace
from typing import cast

import torch

from inference.bench.gpu_setup import Bench
from inference.bench.gpu_sizes import FULL, Sizes
from inference.calibration.ceilings import RoofPlan
from inference.engine.loop import GenerationOptions
from inference.models.loading import OnStage
from inference.records.model import Device, MatrixRole, WeightMatrix
from inference.records.options import DecodeMode, Sampling
from inference.records.run import Request, RunTrace
from inference.records.steps import StepEvent
from inference.records.telemetry import TelemetrySample
from tests.builders import TINY_SHAPE, run_info, step
from tests.doubles import ScriptedClock, ScriptedDelays

NO_GRAPH = "a CUDA graph needs an NVIDIA GPU, and this run is on mps"
CONTEXT = 8192
MATRIX = WeightMatrix(
    name="w", in_features=16, out_features=16, copies=1, bytes=1024, role=MatrixRole.LINEAR
)
SHAPE = replace(TINY_SHAPE, matrices=(MATRIX,), weight_bytes=1024)


@dataclass(frozen=True, slots=True, kw_only=True)
class CardTimes:
    """What a card and its host take, in seconds.

    Attributes:
        step_s: An eager decode step.
        graph_s: A recorded one; None where there are none.
        load_s: To load the model, in any dtype, on the card or on the CPU.
        between_s: From the end of a step to the start of the next.
        host_step_s: A decode step of the CPU in float32.
    """

    step_s: float
    graph_s: float | None
    load_s: float
    prefill_s: float = 0.05
    between_s: float = 0.0015
    capture_s: float = 1.5
    roofs_s: float = 8.0
    host_prefill_s: float = 1.0
    host_step_s: float = 0.1


class ScriptedCard:
    """Stands for a Bench, and loads itself.

    Attributes:
        clock: Moved by what the card does.
        traces: Runs so far, in order.
        loads: Device and dtype of each model loaded.
        refused_rows: Batches of this many rows and more are refused for lack of room.
    """

    def __init__(self, times: CardTimes, sizes: Sizes = FULL) -> None:
        self.clock = ScriptedClock(repeat(0.0))
        self.sizes = replace(sizes, plan=self._plan)
        self.traces: list[RunTrace] = []
        self.loads: list[tuple[str, str]] = []
        self.refused_rows = 1000
        self.device = torch.device("cpu")
        self.backend = self
        self.headless = SimpleNamespace(ceilings=None)
        self.loaded = SimpleNamespace()
        self.room_tokens = CONTEXT - sizes.prompt_tokens
        self._times = times
        self._on_card = times
        self._recorded: set[tuple[int, int]] = set()
        self._is_eager = False

    def load(self, model: str, device: str, dtype: str, sizes: Sizes, on_stage: OnStage) -> Bench:
        """Load it on the card, or on the CPU."""
        del sizes, on_stage
        self.clock.advance(self._on_card.load_s)
        other = type(self)(self._on_card, self.sizes)
        other.sizes, other.clock, other.traces = self.sizes, self.clock, self.traces
        other.refused_rows = self.refused_rows
        other.loaded = SimpleNamespace(
            device=Device(
                kind="cuda",
                name="a card",
                dtype="bfloat16" if dtype == "auto" else dtype,
                memory_bytes=None,
            ),
            device_note="Runs on a scripted card.",
            model_id=model,
        )
        self.loads.append((device, dtype))
        # In tests the card's own device is the CPU, so the CPU's turn is the second one.
        if self.loads.count(("cpu", "float32")) > 1:
            times = self._on_card
            other._times = replace(
                times, step_s=times.host_step_s, prefill_s=times.host_prefill_s, graph_s=None
            )
        return cast("Bench", other)

    def _plan(self, _device: torch.device) -> RoofPlan:
        self.clock.advance(self._on_card.roofs_s)
        clock = ScriptedClock(repeat(0.01))
        return RoofPlan(read_bytes=(1 << 20,), orders=(8,), clock=clock, delays=ScriptedDelays)

    def prepare(self, *_shape: object) -> str:
        """Prepare nothing."""
        return ""

    def start(self, *_kind: object) -> None:
        """Forget nothing."""

    def forward(self, _ids: object) -> torch.Tensor:
        """Let an eager step pass."""
        self.clock.advance(self._times.step_s)
        return torch.zeros(1, 2)

    def requests(self, rows: int, new_tokens: int, *, is_uneven: bool = False) -> list[Request]:
        """Return requests."""
        del is_uneven
        return [
            Request(
                request_id=f"r{row}",
                prompt_text="",
                prompt_ids=(1, 2, 3),
                max_new_tokens=new_tokens,
                sampling=Sampling(),
            )
            for row in range(rows)
        ]

    def trace(self, requests: Sequence[Request], options: GenerationOptions) -> RunTrace:
        """Let a run pass and return it with its telemetry, or the refusal of one."""
        rows, tokens = len(requests), requests[0].max_new_tokens
        mode = options.decode
        info = replace(run_info(), shape=SHAPE, decode=mode)
        trace = RunTrace(info=info, requests=(), events=(), telemetry=(), outputs=())
        if rows >= self.refused_rows:
            return replace(trace, message=f"{rows} rows do not fit; {self.refused_rows - 1} do.")
        if mode is DecodeMode.GRAPH and self._times.graph_s is None:
            trace = replace(trace, info=replace(info, decode_note=NO_GRAPH))
        events = self._events(rows, tokens, self._step_s(rows, tokens, mode))
        end_s = events[-1].started_s + events[-1].duration_s
        samples = [
            TelemetrySample(at_s=at / 10, energy_j=10.0 * at, gpu_busy_ratio=0.8)
            for at in range(int(end_s * 10) + 1)
        ]
        self.clock.advance(end_s)
        trace = replace(trace, events=events, telemetry=tuple(samples))
        self.traces.append(trace)
        return trace

    def _step_s(self, rows: int, tokens: int, mode: DecodeMode) -> float:
        """Return what a step takes; a recorded one is recorded first, unless it was."""
        graph_s = self._times.graph_s
        if mode is not DecodeMode.GRAPH or graph_s is None:
            return self._times.step_s
        bucket = (rows, -(-(tokens + self.sizes.prompt_tokens) // 256))
        if bucket not in self._recorded:
            self.clock.advance(self._times.capture_s)
        self._recorded.add(bucket)
        return self._times.step_s if self._is_eager else graph_s

    def _events(self, rows: int, tokens: int, step_s: float) -> tuple[StepEvent, ...]:
        prefill = replace(step(0, 8, 1), started_s=0.0, duration_s=self._times.prefill_s)
        every_s = step_s + self._times.between_s
        decodes = [
            replace(
                event,
                started_s=self._times.prefill_s + (event.index - 1) * every_s,
                duration_s=step_s,
                host_s=step_s / 2,
                rows=event.rows * rows,
            )
            for event in (step(index, 8, 1) for index in range(1, tokens))
        ]
        return (prefill, *decodes)

    def selected(
        self, requests: Sequence[Request], options: GenerationOptions
    ) -> tuple[dict[str, list[int]], str]:
        """Return the same ids for every way to decode."""
        trace = self.trace(requests, options)
        ids = {one.request_id: list(range(one.max_new_tokens)) for one in requests}
        return ids, trace.info.decode_note

    @contextmanager
    def eager_steps(self) -> Generator[None, None, None]:
        """Let recorded steps be eager."""
        self._is_eager = True
        yield
        self._is_eager = False

    def generate_s(self, new_tokens: int) -> float:
        """Let the library's generate pass."""
        seconds = self._times.prefill_s + new_tokens * (self._times.step_s + 0.002)
        self.clock.advance(seconds)
        return seconds

    def close(self) -> None:
        """Give nothing back."""
