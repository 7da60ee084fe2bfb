"""The probe: what a chosen layer really attended to, without touching what the model computes.

While the chosen layer runs, its calls into torch are watched. A kernel that keeps its weights to
itself (scaled_dot_product_attention) has its arguments remembered, by reference; a softmax that
forms the weights has its result remembered. Nothing is replaced, so the model's own implementation,
mask, soft-capping and sinks are those of a run without capture. The weights that a map needs are
formed after the step time, for the heads asked for, by attention_cells.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.hooks import RemovableHandle
from transformers import PreTrainedModel

from inference.engine.attention_calls import KernelCall, Seen, SeenWeights
from inference.engine.attention_cells import Span, attention_map, maps_in_parts
from inference.engine.finite_masks import SOFTMAXES
from inference.kernels.model_layers import attention_module, decoder_layers
from inference.records.attention import AttentionChoice, AttentionMap
from inference.records.errors import InputError

KERNEL = nn.functional.scaled_dot_product_attention
KERNEL_ARGUMENTS = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale")
PRODUCTS: frozenset[Callable[..., Any]] = frozenset(
    {torch.matmul, torch.bmm, Tensor.matmul, Tensor.bmm, Tensor.__matmul__}
)
# Source: our own choice; the queries and keys of one layer at 8,192 tokens of 32 heads of 128, in
# 2 bytes, are 128 MiB.
KEPT_BYTES = 256 * 2**20


class Listener(TorchFunctionMode):
    """Remembers the attention that is computed while it is entered.

    Attributes:
        seen: What the latest attention was given or gave.
    """

    def __init__(self) -> None:
        super().__init__()
        self.seen: Seen | None = None

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401  whatever torch returns
        """Run a call into torch and remember it when it is attention."""
        named = kwargs or {}
        result = func(*args, **named)
        if func is KERNEL:
            given = {**dict(zip(KERNEL_ARGUMENTS, args, strict=False)), **named}
            self.seen = KernelCall(
                query=given["query"],
                key=given["key"],
                mask=given.get("attn_mask"),
                is_causal=bool(given.get("is_causal", False)),
                scale=given.get("scale"),
            )
        elif func in SOFTMAXES and result.dim() == 4:  # noqa: PLR2004  [row, head, query, kv]
            self.seen = SeenWeights(all_weights=result)
        elif func in PRODUCTS and isinstance(self.seen, SeenWeights):
            self.seen = self.seen.times(args[1] if len(args) > 1 else None)
        return result


@dataclass(frozen=True, slots=True)
class _Capture:
    """What one forward pass showed, and where the tokens of each row are; None for a row unfed."""

    seen: Seen
    spans: tuple[Span | None, ...]

    def span(self, choice: AttentionChoice) -> Span | None:
        """Return where the tokens of the row chosen are."""
        return self.spans[choice.slot] if choice.slot < len(self.spans) else None


class Probe:
    """Captures the attention of one layer of a model, which is hooked only while one is chosen."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._config: Any = model.config.get_text_config(decoder=True)
        self._watched = watched_modules(model)
        self._listener = Listener()
        self._handles: list[RemovableHandle] = []
        self._prompt: list[_Capture] = []
        self._is_entered = False
        self.choice: AttentionChoice | None = None

    def capture(self, choice: AttentionChoice | None) -> None:
        """Capture this from the next forward pass on; None to stop.

        Raises:
            InputError: There is no such layer or head.
        """
        if choice is not None:
            self._check(choice)
        before, self.choice = self.choice, choice
        if choice is not None and before is not None and choice.layer == before.layer:
            return  # another head of the same layer: what was kept of the prompt still holds
        self.forget()
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        if choice is not None:
            watched = self._watched[choice.layer]
            self._handles = [
                watched.register_forward_pre_hook(self._enter),
                watched.register_forward_hook(self._leave, always_call=True),
            ]

    def forget(self) -> None:
        """Drop what was kept of the run before."""
        self._listener.seen = None
        self._prompt.clear()

    def take(self, spans: Sequence[Span | None], *, is_prompt: bool) -> AttentionMap | None:
        """Return what the latest forward pass attended to; None when off.

        Args:
            spans: Where the tokens of each row are; None for a row that was fed none.
            is_prompt: Keep what is needed to answer for this pass again, of any row.
        """
        seen, self._listener.seen = self._listener.seen, None
        if self.choice is None:
            return None
        capture = _Capture(seen, tuple(spans)) if seen is not None else None
        if capture is not None and is_prompt and self._has_room_for(capture.seen):
            self._prompt.append(capture)
        span = spans[self.choice.slot] if self.choice.slot < len(spans) else None
        if span is None:
            return None
        if seen is None:
            reason = self._why_unseen(self.choice)
            return AttentionMap(choice=self.choice, step_index=span.step_index, reason=reason)
        return attention_map(self.choice, seen, span)

    def take_parts(
        self, spans: Sequence[Span | None], parts: Sequence[int]
    ) -> Iterator[AttentionMap]:
        """Yield the maps of the latest forward pass as if its queries had been fed in these parts.

        The pass is kept for ``recall``. Nothing is yielded where the row was fed no token.

        Args:
            spans: Where the tokens of each row are; None for a row that was fed none.
            parts: Queries of each map, in order.
        """
        seen, self._listener.seen = self._listener.seen, None
        choice = self.choice
        span = None if choice is None or choice.slot >= len(spans) else spans[choice.slot]
        if choice is None or span is None:
            return
        if seen is None:
            yield AttentionMap(choice=choice, reason=self._why_unseen(choice))
            return
        if self._has_room_for(seen):
            self._prompt.append(_Capture(seen, tuple(spans)))
        yield from maps_in_parts(choice, seen, span, parts)

    def recall(self, query: int | None = None) -> tuple[AttentionMap, ...]:
        """Return the maps of the prompt's passes for the choice as it is.

        Args:
            query: Position of the one query to give exactly; None for all, binned where large.
        """
        choice = self.choice
        if choice is None:
            return ()
        spans = ((capture.seen, capture.span(choice)) for capture in self._prompt)
        fed = [(seen, span) for seen, span in spans if span is not None]
        if query is None:
            return tuple(attention_map(choice, seen, span) for seen, span in fed)
        return tuple(
            attention_map(choice, seen, span.only(query)) for seen, span in fed if span.holds(query)
        )

    def _check(self, choice: AttentionChoice) -> None:
        layers = len(self._watched)
        if not 0 <= choice.layer < layers:
            msg = f"there is no layer {choice.layer}; this model has layers 0 to {layers - 1}"
            raise InputError(msg)
        if choice.head is None:
            return
        heads = head_count(self._config, choice.layer)
        if heads is None:
            msg = "this model has no attention heads to choose from; leave the head out"
            raise InputError(msg)
        if not 0 <= choice.head < heads:
            msg = f"there is no head {choice.head}; layer {choice.layer} has heads 0 to {heads - 1}"
            raise InputError(msg)

    def _enter(self, _module: nn.Module, _given: tuple[Any, ...]) -> None:
        self._listener.__enter__()
        self._is_entered = True

    def _leave(self, _module: nn.Module, _given: tuple[Any, ...], _result: object) -> None:
        if self._is_entered:
            self._is_entered = False
            self._listener.__exit__(None, None, None)

    def _has_room_for(self, seen: Seen) -> bool:
        held = sum(capture.seen.nbytes for capture in self._prompt)
        return held + seen.nbytes <= KEPT_BYTES

    def _why_unseen(self, choice: AttentionChoice) -> str:
        kinds = getattr(self._config, "layer_types", None)
        kind = kinds[choice.layer] if kinds else ""
        if head_count(self._config, choice.layer) is None or kind in ("linear_attention", "conv"):
            return f"layer {choice.layer} keeps a state of fixed size and attends to no token"
        if kind in ("moe", "mlp"):
            return f"layer {choice.layer} has no attention"
        implementation = self._config._attn_implementation  # noqa: SLF001  its only name
        return f"this model's attention ({implementation}) keeps its weights to itself"


def watched_modules(model: PreTrainedModel) -> list[nn.Module]:
    """Return the part of each layer to watch: its attention, else all of it.

    Where the layers are in no list it is the whole decoder for each.
    """
    layers = decoder_layers(model)
    if not layers:
        count = int(model.config.get_text_config(decoder=True).num_hidden_layers)
        return [model.get_decoder()] * count
    return [attention_module(layer) or layer for layer in layers]


def head_count(config: Any, layer: int) -> int | None:  # noqa: ANN401  many config types
    """Return how many query heads a layer has; None where the model has none."""
    own = getattr(config, "per_layer_config", None)
    count = getattr(own[layer] if own else config, "num_attention_heads", None)
    return count if isinstance(count, int) and count > 0 else None
