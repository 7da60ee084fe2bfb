"""What the GPU report measures with: one model on one device."""

from __future__ import annotations

import gc
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch

from inference.bench.gpu_sizes import Sizes
from inference.bench.subjects import generate_tokens
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

    @property
    def room_tokens(self) -> int | None:
        """Most new tokens that the model's context has room for after a prompt; None for any."""
        limit = self.loaded.context_limit
        return None if limit is None else max(1, limit - self.sizes.prompt_tokens)

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

    @contextmanager
    def eager_steps(self) -> Generator[None, None, None]:
        """Compute every step eagerly, on the cache that was prepared for recorded ones."""
        before = self.backend.is_watched
        self.backend.is_watched = lambda: True
        try:
            yield
        finally:
            self.backend.is_watched = before

    def generate_s(self, new_tokens: int) -> float:
        """Return what the library's own ``generate`` takes for one row of this many new tokens."""
        request = self.requests(1, new_tokens)[0]
        ids = torch.tensor([request.prompt_ids], device=self.device)
        self.clock.start_timing()
        generate_tokens(self.loaded.model, ids, new_tokens).cpu()
        return self.clock.end_timing()

    def close(self) -> None:
        """Give the device's memory back: caches, recorded steps and the weights themselves."""
        self.backend.release_prepared()
        del self.loaded, self.headless, self.backend
        gc.collect()
        if self.device.type == "cuda":
            CAPTURES.release_memory()


def decoding(mode: DecodeMode) -> GenerationOptions:
    """Return the options of a run on a static cache in this mode."""
    return GenerationOptions(cache=CacheKind.STATIC, decode=mode)
