"""What this program computes of the tokens of a self-check, in pieces of one forward pass each.

Every function is a generator that yields between two pieces and returns its result. Between them
the model is as it was: no hook, and the kernels in place.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedModel

from inference.engine.backend import TorchBackend
from inference.engine.batch import RowPadding
from inference.engine.cache_rows import CacheLane
from inference.engine.caches import STATE_TENSORS
from inference.engine.clock import StepClock, clock_for, wall_clock_for
from inference.engine.loop import Engine, GenerationLimits
from inference.engine.row_backend import TorchRowBackend
from inference.kernels.install import library_code
from inference.records.attention import AttentionChoice, AttentionMap
from inference.records.options import Sampling
from inference.records.run import Request

NO_END = GenerationLimits(eos_ids=frozenset(), context_tokens=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRun:
    """A short greedy run of the engine.

    Attributes:
        ids: Selected.
        steps_s: Sum of the step times.
        forwards_s: Wall time of the forward passes in them alone.
        wall_s: Wall time of the same steps from outside, with what the engine notes after each.
        context_tokens: Stored at the end.
        stored_bytes: Of the cache's own tensors at the end, states left out.
        reported_bytes: K/V bytes in use at the end as the run's record has them.
    """

    ids: tuple[int, ...]
    steps_s: float
    forwards_s: float
    wall_s: float
    context_tokens: int
    stored_bytes: int
    reported_bytes: int


class _TimedBackend(TorchRowBackend):
    """A backend that times its forward passes by the wall clock.

    Attributes:
        forwards_s: Sum of them.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__(model)
        self.forwards_s = 0.0
        self._wall = wall_clock_for(model.device)

    def forward(
        self,
        ids: Sequence[Sequence[int]],
        padding: RowPadding | None = None,
        lane: CacheLane | None = None,
    ) -> Tensor:
        """Feed one block, as the backend does."""
        self._wall.start_timing()
        logits = super().forward(ids, padding, lane)
        self.forwards_s += self._wall.end_timing()
        return logits


def engine_run(
    model: PreTrainedModel,
    prompt: Sequence[int],
    new_tokens: int,
    clock: StepClock | None = None,
) -> Generator[None, None, EngineRun]:
    """Let the engine generate, one step a piece, and return what came of it.

    Args:
        model: As it runs, kernels included.
        prompt: Ids.
        new_tokens: At least 1; no token ends the run before.
        clock: What times the steps; None for the one of the model's device.
    """
    backend = _TimedBackend(model)
    engine = Engine(backend, clock or clock_for(model.device), NO_END)
    request = Request(
        request_id="check",
        prompt_text="",
        prompt_ids=tuple(prompt),
        max_new_tokens=new_tokens,
        sampling=Sampling(),
    )
    wall = wall_clock_for(model.device)
    steps = engine.generate([request], seed=0, zero_s=0.0)
    ids: list[int] = []
    steps_s = wall_s = 0.0
    context_tokens = reported_bytes = 0
    while True:
        wall.start_timing()
        event = next(steps, None)
        elapsed_s = wall.end_timing()
        if event is None:
            break
        wall_s += elapsed_s
        steps_s += event.duration_s
        context_tokens, reported_bytes = event.context_tokens, event.cache.used_bytes
        ids.extend(row.token_id for row in event.rows if row.token_id is not None)
        yield
    return EngineRun(
        ids=tuple(ids),
        steps_s=steps_s,
        forwards_s=backend.forwards_s,
        wall_s=wall_s,
        context_tokens=context_tokens,
        stored_bytes=sum(_stored_bytes(layer) for layer in backend.batch.cache.layers),
        reported_bytes=reported_bytes,
    )


def cached_logits(
    model: PreTrainedModel, prompt: Sequence[int], fed: Sequence[int], *, is_plain: bool
) -> Generator[None, None, Tensor]:
    """Feed a prompt and then given tokens one by one; return [step, vocab] in float64.

    Args:
        model: Any.
        prompt: Ids of the prefill.
        fed: Ids of the decode steps.
        is_plain: Keep the kernels out.
    """
    rows: list[Tensor] = []
    for row in step_logits(model, (prompt, *([token] for token in fed)), is_plain=is_plain):
        rows.append(row)
        yield
    return torch.stack(rows)


def step_logits(
    model: PreTrainedModel, blocks: Iterable[Sequence[int]], *, is_plain: bool = False
) -> Iterator[Tensor]:
    """Feed blocks of one row to an empty cache; yield the last position's logits, [vocab], float64.

    Args:
        model: Any.
        blocks: Ids of one step each.
        is_plain: Keep the kernels out.
    """
    backend = TorchBackend(model)
    backend.start()
    for block in blocks:
        with library_code(model) if is_plain else nullcontext():
            logits = backend.forward([block])[0].double()
        yield logits


def captured_rows(
    model: PreTrainedModel, prompt: Sequence[int], token: int, layer: int
) -> Generator[None, None, tuple[AttentionMap | None, AttentionMap | None]]:
    """Capture all heads of a layer in a prefill and in the decode step after it."""
    backend = TorchBackend(model)
    backend.start()
    choice = AttentionChoice(layer=layer, is_all_heads=True)
    maps: list[AttentionMap | None] = []
    for block in (prompt, [token]):
        backend.capture(choice)
        try:
            backend.forward([block])
            maps.append(backend.attention(is_prompt=len(block) > 1))
        finally:
            backend.capture(None)  # a hooked layer runs without kernels
        yield
    return maps[0], maps[1]


def _stored_bytes(layer: object) -> int:
    """Return the bytes of every floating-point tensor that a cache layer holds, states left out.

    Found by going through all that the layer has, so not by the names that a run's bytes rest on.
    """
    held = {name: value for name, value in vars(layer).items() if name not in STATE_TENSORS}
    found: dict[tuple[int, int], int] = {}
    waiting: list[object] = list(held.values())
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)
        elif isinstance(value, Tensor) and value.is_floating_point():
            found[value.data_ptr(), value.nbytes] = value.nbytes
    return sum(found.values())
