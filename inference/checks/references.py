"""What the library computes by itself: a second model of its own classes over the same weights.

The twin shares every weight with the model that runs and nothing else: no kernel, no hook, no
replaced forward. So it costs no memory, and whatever was changed in the model shows beside it.
The library has no modules for weights in blocks: those are widened by torch's operations.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, GenerationConfig, PreTrainedModel
from transformers.generation.stopping_criteria import StoppingCriteria, StoppingCriteriaList

from inference.engine.backend import MODEL_ERRORS
from inference.kernels.block_weights import BlockEmbedding, BlockLinear
from inference.records.errors import first_line

ShouldStop = Callable[[], bool]


class NoReferenceError(Exception):
    """The library computes nothing here to compare with; the message says why."""


def library_twin(model: PreTrainedModel, attention: str | None = None) -> PreTrainedModel:
    """Return a model of the library's own code over the same weights.

    Args:
        model: Whose weights.
        attention: The attention implementation; None for the one that the model has.

    Raises:
        NoReferenceError: Some of its tensors are not found in the model, or lie on several devices.
    """
    devices = {weight.device for weight in model.parameters()}
    if len(devices) > 1:
        msg = "the model is spread over several devices"
        raise NoReferenceError(msg)
    config = copy.deepcopy(model.config)
    wanted = attention or getattr(model.config, "_attn_implementation", None) or "eager"
    chosen: dict[str, Any] = {"attn_implementation": wanted}
    experts = getattr(model.config, "_experts_implementation", None)
    if experts is not None:
        chosen["experts_implementation"] = experts
    with _refusals(), torch.device("meta"):
        twin: PreTrainedModel = AutoModelForCausalLM.from_config(
            config, dtype=model.dtype, **chosen
        )
    _share(model, twin)
    twin.generation_config = GenerationConfig()  # no setting of the model's publisher
    return twin.eval().requires_grad_(False)  # noqa: FBT003  torch's own signature


def _share(model: nn.Module, twin: nn.Module) -> None:
    """Put the model's own tensors in the place of the twin's, which hold nothing."""
    originals = dict(model.named_modules())
    for name, module in list(twin.named_modules()):
        kept = originals.get(name)
        if isinstance(kept, BlockLinear | BlockEmbedding):
            twin.set_submodule(name, kept.twin())
            continue
        own = (module.named_parameters(recurse=False), module.named_buffers(recurse=False))
        tensors = {key: tensor for pairs in own for key, tensor in pairs}
        plain = {key: value for key, value in vars(module).items() if isinstance(value, Tensor)}
        for key, tensor in {**tensors, **plain}.items():
            shared = getattr(originals.get(name), key, None)
            if not isinstance(shared, Tensor) or shared.shape != tensor.shape:
                msg = f"{name}.{key} is not found in the model that runs"
                raise NoReferenceError(msg)
            setattr(module, key, shared)


@torch.inference_mode()
def greedy_ids(
    twin: PreTrainedModel, ids: Sequence[int], new_tokens: int, should_stop: ShouldStop
) -> list[int] | None:
    """Return what the library's ``generate`` selects; None when it was stopped on its way."""
    fed = torch.tensor([ids], device=twin.device)
    criterion = _Called(should_stop)
    generate: Any = twin.generate
    with _refusals():
        made: Any = generate(
            fed,
            attention_mask=torch.ones_like(fed),
            generation_config=GenerationConfig(
                do_sample=False, max_new_tokens=new_tokens, eos_token_id=None, pad_token_id=0
            ),
            stopping_criteria=StoppingCriteriaList([criterion]),
        )
    return None if criterion.was_called else made[0, len(ids) :].tolist()


class _Called(StoppingCriteria):
    """Ends a generation between two tokens when somebody wants the engine."""

    def __init__(self, should_stop: ShouldStop) -> None:
        self.was_called = False
        self._should_stop = should_stop

    def __call__(self, input_ids: Tensor, _scores: object, **_more: object) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]  # the library passes both by position
        self.was_called = self.was_called or self._should_stop()
        return torch.full((input_ids.shape[0],), self.was_called, device=input_ids.device)


@torch.inference_mode()
def uncached_logits(twin: PreTrainedModel, ids: Sequence[int], positions: int) -> Tensor:
    """Return [position, vocab] of the last positions, from one pass without a cache."""
    with _refusals():
        output: Any = twin(torch.tensor([ids], device=twin.device), use_cache=False)
    return output.logits[0, -positions:].double()


@torch.inference_mode()
def eager_weights(twin: PreTrainedModel, ids: Sequence[int]) -> list[Tensor]:
    """Return [head, query, kv] of each layer that attends, from one pass without a cache."""
    with _refusals():
        output: Any = twin(
            torch.tensor([ids], device=twin.device), use_cache=False, output_attentions=True
        )
    given: Sequence[Tensor | None] = getattr(output, "attentions", None) or ()
    return [weights[0].double() for weights in given if weights is not None]


@contextmanager
def _refusals() -> Generator[None]:
    """Turn what the library's code raises into the reason why there is no reference."""
    try:
        yield
    except MODEL_ERRORS as error:
        msg = f"the library's own code failed ({first_line(error)})"
        raise NoReferenceError(msg) from error
