"""What the GPU report measures with: one model on the device, and how large everything is."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from inference.calibration.ceilings import RoofPlan, usual_plan
from inference.engine.clock import clock_for
from inference.engine.graph_capture import CAPTURES
from inference.engine.loop import GenerationOptions
from inference.models.loading import LoadedModel, OnStage, load_model
from inference.models.tokenization import TextCodec
from inference.process.headless import HeadlessRunner
from inference.records.errors import BackendError
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
        replayed_tokens: Of the runs whose recorded steps are compared with eager ones.
        new_tokens: Of the timed runs.
        batches: Rows of the runs of the sweep.
        batch_tokens: New tokens of each row there.
        repeats: Timed runs of each way to decode, of which the median counts.
        is_timed: False where step times are too few and too short to be judged.
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
    """Return sweeps that end at once, whose figures mean nothing."""
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


def load_bench(model: str, device: str, dtype: str, sizes: Sizes, on_stage: OnStage) -> Bench:
    """Return a bench of a model without kernels of ours; arguments as ``load_model`` takes them."""
    loaded = load_model(model, dtype=dtype, device=device, on_stage=on_stage, is_plain=True)
    return Bench(loaded, sizes)


class Bench:
    """One model on one device, whose rows never end before their maximum of new tokens.

    Attributes:
        loaded: The model.
        sizes: How much is measured.
        headless: Runs it; give it the device's roofs before the runs that are to carry them.
        clock: What times its steps.
        backend: The model as the engine uses it.
        device: Where it is.
    """

    def __init__(self, loaded: LoadedModel, sizes: Sizes) -> None:
        self.loaded = replace(loaded, eos_ids=frozenset())
        self.sizes = sizes
        self._codec = TextCodec.from_files(loaded.tokenizer_files)
        self.headless = HeadlessRunner(self.loaded, self._codec)
        self.clock = self.headless.runner.clock
        self.backend = self.headless.runner.backend
        self.device = loaded.model.device

    def requests(self, rows: int, new_tokens: int, *, is_uneven: bool = False) -> list[Request]:
        """Return requests with different prompts of one length, or each one token shorter."""
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

    def trace(self, requests: Sequence[Request], options: GenerationOptions) -> RunTrace:
        """Return a recorded run, telemetry and all."""
        return self.headless.run(requests, seed=0, options=options)

    def selected(
        self, requests: Sequence[Request], options: GenerationOptions
    ) -> tuple[dict[str, list[int]], str]:
        """Return the ids that each request gets, and why it was not decoded as asked.

        Raises:
            BackendError: The run did not get to its end.
        """
        trace = self.trace(requests, options)
        if trace.message:
            raise BackendError(trace.message)
        ids = {output.request_id: list(output.token_ids) for output in trace.outputs}
        return ids, trace.info.decode_note

    def close(self) -> None:
        """Give the device's memory back: caches, recorded steps and the weights themselves."""
        self.backend.release_prepared()
        del self.loaded, self.headless, self.backend
        gc.collect()
        if self.device.type == "cuda":
            CAPTURES.release_memory()


STATIC = GenerationOptions(cache=CacheKind.STATIC)


def decoding(mode: DecodeMode) -> GenerationOptions:
    """Return the options of a run on a static cache in this mode."""
    return GenerationOptions(cache=CacheKind.STATIC, decode=mode)
