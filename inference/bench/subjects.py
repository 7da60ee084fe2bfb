"""What takes turns in ``bench``: the library's generate, a bare loop, and our own engine.

All decode from a cache that was filled in advance with copies of one token: what it holds costs no
time, where it lies does. The first steps of a round are warm-up and are left out. The library's
``generate`` is called here only, for the GPU report too.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import Cache, PreTrainedModel
from transformers.generation.streamers import BaseStreamer

from inference.bench.rounds import Round, step_s
from inference.engine.backend import CACHE_ARGUMENTS
from inference.engine.batch import RowPadding
from inference.engine.cache_rows import CacheLane
from inference.engine.clock import StepClock
from inference.engine.loop import Engine, GenerationLimits
from inference.engine.row_backend import TorchRowBackend
from inference.kernels.install import install, remove
from inference.process.telemetry import Telemetry
from inference.records.attention import AttentionChoice
from inference.records.options import CacheKind, Sampling
from inference.records.run import Request
from inference.records.steps import StepEvent

WARM_STEPS = 2
TOKEN = 77
SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What every subject of a comparison decodes.

    Attributes:
        steps: Decode steps of a round that count.
    """

    model: PreTrainedModel
    clock: StepClock
    context: int
    rows: int = 1
    steps: int = 8


class FilledBackend(TorchRowBackend):
    """Starts with a filled cache, so that a prompt as long takes no time."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting.model)
        self._setting = setting

    def start(self, kind: CacheKind = CacheKind.DYNAMIC, max_tokens: int | None = None) -> None:
        """Forget everything and fill the cache again."""
        del kind, max_tokens  # only a growing cache can be filled
        self.fill(self._setting.rows, self._setting.context)

    def forward(
        self,
        ids: Sequence[Sequence[int]],
        padding: RowPadding | None = None,
        lane: CacheLane | None = None,
    ) -> torch.Tensor:
        """Feed new tokens; for the prompt, which is stored already, return scores without any."""
        if len(ids[0]) == 1:
            return super().forward(ids, padding, lane)
        vocabulary = int(self._model.config.get_text_config().vocab_size)
        return torch.zeros((len(ids), vocabulary), device=self._model.device)

    def filled_cache(self) -> Cache:
        """Return a cache that was just filled."""
        self.start()
        return self.batch.cache


class _Stamps(BaseStreamer):
    """Notes the moment of each token of the library's generate."""

    def __init__(self, clock: StepClock) -> None:
        self._clock = clock
        self.moments: list[float] = []

    def put(self, value: object) -> None:  # noqa: ARG002  the library's signature
        """Note the moment."""
        self.moments.append(self._clock.now_s())

    def end(self) -> None:
        """Do nothing: the last token has come."""


def generate_tokens(
    model: PreTrainedModel,
    ids: torch.Tensor,
    new_tokens: int,
    **more: Any,  # noqa: ANN401  the library's own arguments
) -> torch.Tensor:
    """Return the prompt's ids and exactly that many new ones, by the library's greedy ``generate``.

    Args:
        model: On the library's own code.
        ids: [row, query].
        new_tokens: Selected for each row, whatever ends a sequence.
        more: Arguments of ``generate`` beside those.
    """
    own: Any = model
    with torch.inference_mode():
        return own.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            min_new_tokens=new_tokens,
            max_new_tokens=new_tokens,
            pad_token_id=0,
            **more,
        )


def library_generate(setting: Setting) -> Round:
    """Return rounds of ``generate`` on the library's own code, one row only."""
    backend = FilledBackend(setting)
    model = setting.model
    ids = torch.full((1, setting.context + 1), TOKEN, device=model.device)

    def measured() -> float:
        remove(model)
        cache = backend.filled_cache()
        stamps = _Stamps(setting.clock)
        cached = {cache_argument(model): cache}
        generate_tokens(model, ids, setting.steps + WARM_STEPS + 1, streamer=stamps, **cached)
        return step_s(stamps.moments[1:], WARM_STEPS)  # the first are the prompt's own

    return measured


def bare_loop(setting: Setting, *, has_kernels: bool) -> Round:
    """Return rounds of forward and argmax and nothing else."""
    backend = FilledBackend(setting)
    model: Any = setting.model
    name = cache_argument(model)

    @torch.inference_mode()
    def measured() -> float:
        _switch(setting.model, has_kernels=has_kernels)
        cache = backend.filled_cache()
        fed = torch.full((setting.rows, 1), TOKEN, device=model.device)  # [row, query]
        moments = [setting.clock.now_s()]
        for _ in range(setting.steps + WARM_STEPS):
            scores = model(input_ids=fed, use_cache=True, **{name: cache}).logits[:, -1]
            fed = scores.argmax(-1, keepdim=True)
            fed.tolist()  # a user reads it, which waits for the device
            moments.append(setting.clock.now_s())
        return step_s(moments, WARM_STEPS)

    return measured


def own_engine(setting: Setting, *, has_kernels: bool, is_capturing: bool = False) -> Round:
    """Return rounds of the engine with its records, candidates and telemetry, as a run has them.

    Args:
        setting: What is decoded.
        has_kernels: Whether the model runs on kernels of ours.
        is_capturing: Whether the attention of the middle layer, the mean of its heads, is captured
            in every step, as the Live page does.
    """
    engine = _engine(setting)
    layers = int(setting.model.config.get_text_config().num_hidden_layers)

    def measured() -> float:
        _switch(setting.model, has_kernels=has_kernels)
        engine.capture(AttentionChoice(layer=layers // 2) if is_capturing else None)
        return step_s([moment for moment, _ in _run(engine, setting)], WARM_STEPS)

    return measured


def own_events(setting: Setting) -> list[StepEvent]:
    """Return the events of one run with kernels and telemetry, the warm-up steps left out."""
    _switch(setting.model, has_kernels=True)
    return [event for _, event in _run(_engine(setting), setting)][1 + WARM_STEPS :]


def _run(engine: Engine, setting: Setting) -> list[tuple[float, StepEvent]]:
    """Return each step of a run with telemetry, and the moment at which it came."""
    kept: list[object] = []
    telemetry = Telemetry(setting.clock, kept.append)
    zero_s = setting.clock.now_s()
    telemetry.start(zero_s)
    try:
        return [
            (setting.clock.now_s(), event)
            for event in engine.generate(requests(setting), seed=SEED, zero_s=zero_s)
        ]
    finally:
        telemetry.stop()


def recorded_events(setting: Setting) -> list[StepEvent]:
    """Return the events of one run of the engine."""
    engine = _engine(setting)
    return list(engine.generate(requests(setting), seed=SEED, zero_s=0.0))


def requests(setting: Setting) -> tuple[Request, ...]:
    """Return requests whose prompts are as long as the filled cache."""
    return tuple(
        Request(
            request_id=str(row),
            prompt_text="",
            prompt_ids=(TOKEN,) * setting.context,
            max_new_tokens=setting.steps + WARM_STEPS + 1,
            sampling=Sampling(),
        )
        for row in range(setting.rows)
    )


def cache_argument(model: PreTrainedModel) -> str:
    """Return the name that the model's forward gives its cache."""
    accepted = inspect.signature(model.forward).parameters
    return next(name for name in CACHE_ARGUMENTS if name in accepted)


def _engine(setting: Setting) -> Engine:
    """Return an engine whose rows end by their maximum of new tokens only."""
    limits = GenerationLimits(eos_ids=frozenset(), context_tokens=None)
    return Engine(FilledBackend(setting), setting.clock, limits)


def _switch(model: PreTrainedModel, *, has_kernels: bool) -> None:
    if has_kernels:
        install(model)
    else:
        remove(model)
