"""Which implementations of attention a model supports, and the reason for each that it does not.

The library falls back from one to another by itself only where no particular one was requested; one
that is requested is used, or refused with the reason.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, PreTrainedConfig, PreTrainedModel
from transformers.utils.import_utils import is_flash_attn_2_available

from inference.records.errors import InputError
from inference.records.options import AttentionKind, AttentionOption

HALF = (torch.float16, torch.bfloat16)


def attention_options(model: PreTrainedModel) -> tuple[AttentionOption, ...]:
    """Return every implementation, each with the reason where this model does not support it."""
    device = (model.device, model.dtype)
    return tuple(
        AttentionOption(kind=kind, reason=attention_obstacle(type(model), kind, device))
        for kind in AttentionKind
    )


def check_attention(
    config: PreTrainedConfig,
    model_id: str,
    kind: AttentionKind,
    device: tuple[torch.device, torch.dtype],
) -> None:
    """Raise InputError unless a model of this config supports it on a device in a dtype."""
    obstacle = attention_obstacle(MODEL_FOR_CAUSAL_LM_MAPPING[type(config)], kind, device)
    if obstacle:
        msg = f"{model_id} cannot be run with {kind} attention: {obstacle}; choose "
        msg += f"{AttentionKind.AUTO} or {AttentionKind.EAGER}"
        raise InputError(msg)


def attention_obstacle(
    model_class: Any,  # noqa: ANN401  the library's flags are not in its types
    kind: AttentionKind,
    torch_device: tuple[torch.device, torch.dtype],
) -> str:
    """Return why a class of models does not support it; an empty string when it does.

    Source:
        transformers 5.24, ``PreTrainedModel.get_correct_attn_implementation`` reads these flags.
    """
    if kind is AttentionKind.SDPA and not model_class._supports_sdpa:  # noqa: SLF001  its only name
        return "the library has none for this architecture"
    if kind is not AttentionKind.FLASH:
        return ""
    device, dtype = torch_device
    if not model_class._supports_flash_attn:  # noqa: SLF001  its only name
        return "the library has none for this architecture"
    if device.type != "cuda" or dtype not in HALF:
        return "it needs an NVIDIA GPU and a dtype of 16 bits"
    return "" if is_flash_attn_2_available() else "the package flash-attn is not installed"
