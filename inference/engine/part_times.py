"""How long a step's linear operations and its attention take, each summed over all layers.

While a step is timed so, the model's own modules are hooked: its linear modules, experts and head,
and each layer's attention. Attention is what its modules take without the linear ones inside, so
scores, softmax, weighted sum, positions and the growth of the cache. Layers that run as one call of
a kernel are not hooked, which would take them apart: the kernel reads a clock between their parts.
A layer whose attention is captured runs as the model's own code anyway, and so is hooked; so are
all layers in a step of more rows, or from another cache, than the kernel takes.
Either costs a little time, so such a step is marked ``observed``; in between nothing is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from torch import nn
from torch.utils.hooks import RemovableHandle
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from inference.kernels.install import fused_layers
from inference.kernels.model_layers import attention_module, decoder_layers
from inference.records.options import CacheKind
from inference.records.steps import Part, PartTime, Phase

PACKED_AXES = 3  # a layer's experts as one parameter: [experts, out, in]
Interval = tuple[Any, Any]


class Marks(Protocol):
    """Takes the time at two ends of a part (``inference/engine/clock.py``)."""

    def mark(self) -> Any:  # noqa: ANN401  a time, or a mark in the device's stream
        """Return this moment."""
        ...

    def seconds(self, start: Any, end: Any) -> float:  # noqa: ANN401  two marks
        """Return the time between two marks."""
        ...


class PartMeter:
    """Times both parts of one step after another of one model."""

    def __init__(self, model: PreTrainedModel, marks: Marks) -> None:
        self._marks = marks
        self._linear = linear_modules(model)
        self._attention = attention_modules(model)
        self._fused = fused_layers(model)
        self._is_fused = False
        self._hooked_layers = 0
        self._handles: list[RemovableHandle] = []
        self._linear_spans: list[Interval] = []
        self._inner_spans: list[Interval] = []  # linear operations inside attention
        self._attention_spans: list[Interval] = []
        self._linear_start: Any = None
        self._attention_start: Any = None

    @property
    def is_on(self) -> bool:
        """True while the model is hooked."""
        return bool(self._handles)

    def start(self, phase: Phase, rows: int, cache: CacheKind) -> None:
        """Hook the model; call before the step time begins.

        Args:
            phase: Of the step.
            rows: Fed in it, those included that have ended.
            cache: What they are stored in.
        """
        self.cancel()
        fused = self._fused
        self._is_fused = fused is not None and phase is Phase.DECODE and fused.takes(rows, cache)
        linear, attention = self._linear, self._attention
        if fused is not None and self._is_fused:
            watched = {id(layer) for layer in fused.watched}
            as_one = [layer for layer in fused.modules if id(layer) not in watched]
            inside = {id(part) for layer in as_one for part in layer.modules()}
            linear = tuple(one for one in linear if id(one) not in inside)
            attention = tuple(one for one in attention if id(one) not in inside)
            fused.time_parts(is_wanted=True)
        self._hooked_layers = len(attention)
        self._hook(linear, self._enter_linear, self._leave_linear)
        self._hook(attention, self._enter_attention, self._leave_attention)

    def stop(self) -> tuple[PartTime, ...]:
        """Unhook the model and return the time of each part; call after the step time's end.

        Nothing is returned when a layer ran as one piece, so that its parts were not seen.
        """
        ran = self._times()
        self.cancel()
        return tuple(
            PartTime(part=part, duration_s=seconds) for part, seconds in ran.items() if seconds > 0
        )

    def _times(self) -> dict[Part, float]:
        if len(self._attention_spans) != self._hooked_layers:
            return {}
        linear_s, attention_s = self._sum(self._linear_spans), self._sum(self._attention_spans)
        attention_s -= self._sum(self._inner_spans)
        if self._fused is not None and self._is_fused:
            seconds = self._fused.part_seconds
            if seconds is None:
                return {}
            linear_s, attention_s = linear_s + seconds[0], attention_s + seconds[1]
        return {Part.LINEAR: linear_s, Part.ATTENTION: attention_s}

    def cancel(self) -> None:
        """Unhook the model and forget what was timed."""
        if self._fused is not None:
            self._fused.time_parts(is_wanted=False)
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        for spans in (self._linear_spans, self._inner_spans, self._attention_spans):
            spans.clear()
        self._linear_start = self._attention_start = None

    def _hook(
        self, modules: Iterable[nn.Module], enter: Callable[..., None], leave: Callable[..., None]
    ) -> None:
        for module in modules:
            self._handles += [
                module.register_forward_pre_hook(enter),
                module.register_forward_hook(leave),
            ]

    def _enter_linear(self, *_given: object) -> None:
        self._linear_start = self._marks.mark()

    def _leave_linear(self, *_given: object) -> None:
        span = (self._linear_start, self._marks.mark())
        self._linear_spans.append(span)
        if self._attention_start is not None:
            self._inner_spans.append(span)

    def _enter_attention(self, *_given: object) -> None:
        self._attention_start = self._marks.mark()

    def _leave_attention(self, *_given: object) -> None:
        self._attention_spans.append((self._attention_start, self._marks.mark()))
        self._attention_start = None

    def _sum(self, spans: Iterable[Interval]) -> float:
        return sum(self._marks.seconds(start, end) for start, end in spans)


def linear_modules(model: PreTrainedModel) -> tuple[nn.Module, ...]:
    """Return the modules that multiply with weights, outermost ones only, the head included."""
    chosen: list[nn.Module] = []
    inside: set[int] = set()
    for module in model.modules():  # a module comes before those inside it
        if id(module) not in inside and _multiplies(module):
            chosen.append(module)
            inside.update(id(child) for child in module.modules())
    return tuple(chosen)


def attention_modules(model: PreTrainedModel) -> tuple[nn.Module, ...]:
    """Return each layer's attention; layers without a part of that name are left out."""
    parts = (attention_module(layer) for layer in decoder_layers(model))
    return tuple(part for part in parts if part is not None)


def _multiplies(module: nn.Module) -> bool:
    if isinstance(module, (nn.Linear, Conv1D)):
        return True
    own = module.parameters(recurse=False)
    return any(parameter.ndim == PACKED_AXES for parameter in own)
