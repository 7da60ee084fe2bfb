"""What the GPU report measures with: one model on the device, and how large everything is."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from inference.calibration.ceilings import RoofPlan, usual_plan
from inference.engine.clock import StepClock, clock_for
from inference.engine.loop import Engine, GenerationLimits, GenerationOptions
from inference.engine.row_backend import TorchRowBackend
from inference.models.loading import LoadedModel, load_model
from inference.models.tokenization import TextCodec
from inference.process.headless import HeadlessRunner
from inference.records.costs import Ceilings
from inference.records.options import CacheKind, DecodeMode, Sampling
from inference.records.run import Request, RunTrace

TEXT = (
    "Decode reads every weight of the model for one token, so its speed is that of the memory. "
    "Prefill feeds all tokens of the prompt at once, so each weight that is read serves many. "
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is measured.

    Attributes:
        prompt_tokens: Of every prompt.
        compared_tokens: First tokens that must be the same on the device and on the CPU.
        replayed_tokens: Of the runs whose recorded steps are held against eager ones.
        new_tokens: Of the timed runs.
        batches: Rows of the runs of the sweep.
        batch_tokens: New tokens of each row there.
        repeats: Timed runs of each way to decode, of which the median counts.
        is_timed: False where timings are too few and short to be judged.
        plan: The sweeps of the roofs; None for the usual ones.
    """

    prompt_tokens: int
    compared_tokens: int
    replayed_tokens: int
    new_tokens: int
    batches: tuple[int, ...]
    batch_tokens: int
    repeats: int
    is_timed: bool
    plan: Callable[[torch.device], RoofPlan]


FULL = Sizes(
    prompt_tokens=128,
    compared_tokens=24,
    replayed_tokens=256,
    new_tokens=768,
    batches=(1, 2, 4, 8, 16, 32, 64),
    batch_tokens=64,
    repeats=2,
    is_timed=True,
    plan=usual_plan,
)


def dry_plan(device: torch.device) -> RoofPlan:
    """Return sweeps that end at once and mean nothing."""
    return RoofPlan(read_bytes=(1 << 20,), orders=(32, 64), clock=clock_for(device))


DRY = Sizes(
    prompt_tokens=12,
    compared_tokens=4,
    replayed_tokens=5,
    new_tokens=6,
    batches=(1, 2),
    batch_tokens=3,
    repeats=1,
    is_timed=False,
    plan=dry_plan,
)


class Bench:
    """One model on one device, whose rows never end before their time.

    Attributes:
        loaded: The model.
        sizes: How much is measured.
        clock: What times timings on the device.
        backend: The model as the engine uses it.
        ceilings: The device's roofs, for recorded runs to carry; set before the first of them.
    """

    def __init__(self, model: str, device: str, dtype: str, sizes: Sizes) -> None:
        loaded = load_model(
            model, dtype=dtype, device=device, on_stage=lambda _stage: None, is_plain=True
        )
        self.loaded: LoadedModel = replace(loaded, eos_ids=frozenset())
        self.sizes = sizes
        self.clock: StepClock = clock_for(loaded.model.device)
        self.backend = TorchRowBackend(loaded.model)
        self.ceilings: Ceilings | None = None
        self._runner: HeadlessRunner | None = None
        self._codec = TextCodec.from_files(loaded.tokenizer_files)
        limits = GenerationLimits(eos_ids=frozenset(), context_tokens=loaded.context_limit)
        self._engine = Engine(self.backend, self.clock, limits)

    @property
    def place(self) -> torch.device:
        """The device."""
        return self.loaded.model.device

    def requests(self, rows: int, new_tokens: int, *, is_uneven: bool = False) -> list[Request]:
        """Return requests with prompts of their own, of one length or each one token shorter."""
        size = self.sizes.prompt_tokens
        ids = self._codec.encode(TEXT * (1 + size // 16), is_raw=True)
        return [
            Request(
                request_id=f"r{row}",
                prompt_text=TEXT,
                prompt_ids=ids[row % 8 : row % 8 + size - (row if is_uneven else 0)],
                max_new_tokens=new_tokens,
                sampling=Sampling(),
            )
            for row in range(rows)
        ]

    def chosen(
        self, requests: Sequence[Request], options: GenerationOptions
    ) -> tuple[dict[str, list[int]], str]:
        """Return the ids that each request gets, and why it was not decoded as asked."""
        ready, note = self._engine.prepare(requests, options)
        ids: dict[str, list[int]] = {request.request_id: [] for request in requests}
        for event in self._engine.generate(requests, seed=0, zero_s=0.0, options=ready):
            for row in event.rows:
                if row.token_id is not None:
                    ids[row.request_id].append(row.token_id)
        return ids, note

    def trace(self, requests: Sequence[Request], options: GenerationOptions) -> RunTrace:
        """Return a recorded run, telemetry and all."""
        if self._runner is None:
            self._runner = HeadlessRunner(self.loaded, self._codec, self.ceilings)
        return self._runner.run(requests, seed=0, on_event=lambda _event: None, options=options)

    def close(self) -> None:
        """Give the device's memory back."""
        self._runner = None
        self.backend.prepare(DecodeMode.EAGER, 1, 1)
        self.backend.start()
        gc.collect()
        if self.place.type == "cuda":
            torch.cuda.empty_cache()


STATIC = GenerationOptions(cache=CacheKind.STATIC)


def decoding(mode: DecodeMode) -> GenerationOptions:
    """Return the options of a run on a static cache in this mode."""
    return GenerationOptions(cache=CacheKind.STATIC, decode=mode)
