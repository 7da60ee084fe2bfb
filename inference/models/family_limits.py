"""What the library does not do correctly for some families: observed, and refused with the reason.

Every function returns the reason, or an empty string. Where the library would compute something
else without a warning, the program refuses. tests/inference/engine/test_backend.py tries each.
"""

from __future__ import annotations

from typing import Any

from transformers import PreTrainedModel
from transformers.cache_utils import get_layer_types_and_kwargs

STATES_ONLY = frozenset({"linear_attention", "conv"})
STATEFUL = frozenset({"linear_attention", "hybrid", "hybrid_sliding"})
# Families whose recurrent layers continue from a stored state when several tokens are fed at once.
# Mamba, Falcon-Mamba, Jamba and RecurrentGemma start again from an empty state, without a warning.
# Source: transformers 5.24, chunks of 4 against the whole prompt, tiny random models in float64.
CHUNKABLE = frozenset({"bamba", "falcon_h1", "mamba2", "qwen3_next"})


def causal_obstacle(model: PreTrainedModel) -> str:
    """Return why the model does not generate one token after another."""
    if getattr(model.config, "is_encoder_decoder", False):
        return "is an encoder-decoder model"
    parts = model.get_decoder().modules()
    if any(getattr(part, "is_causal", True) is False for part in parts):
        return "attends to later tokens too"
    return ""


def chunk_obstacle(model: PreTrainedModel) -> str:
    """Return why a prompt cannot be fed in chunks."""
    config: Any = model.config.get_text_config(decoder=True)
    kinds = layer_kinds(model)
    if "indexed_attention" in kinds:
        return "its sparse attention chooses other tokens when the prompt comes in chunks"
    if kinds & STATEFUL and config.model_type not in CHUNKABLE:
        return "its recurrent layers start again with each chunk in this version of transformers"
    return ""


def padding_obstacle(model: PreTrainedModel) -> str:
    """Return why rows of unequal length cannot share a batch."""
    if "indexed_attention" in layer_kinds(model):
        return "its sparse attention counts padding among the tokens it chooses from"
    return ""


def static_obstacle(model: PreTrainedModel) -> str:
    """Return why the model does not support a cache that is allocated whole at the start."""
    config: Any = model.config.get_text_config(decoder=True)
    if layer_kinds(model) <= STATES_ONLY:
        return "it keeps no keys and values"
    if _attends_without_mask(model):
        return "flash attention is given no mask and would attend to the room that is still empty"
    if not getattr(model, "_can_compile_fullgraph", False):
        return "the library does not support it for this architecture"
    if config.model_type == "falcon" and config.alibi:
        return "its position biases fit a growing cache only"
    if "indexed_attention" in layer_kinds(model):
        return "its sparse attention chooses other tokens in one"
    return ""


def eager_obstacle(model: PreTrainedModel) -> str:
    """Return why the library's eager attention is no reference for its others."""
    config: Any = model.config.get_text_config(decoder=True)
    if config.model_type == "falcon" and config.alibi:
        return "the library's eager attention adds this model's position biases twice"
    return ""


def _attends_without_mask(model: PreTrainedModel) -> bool:
    """Tell whether attention is by a kernel that takes its lengths from the cache's tensors.

    Source: transformers 5.24, generation/utils.py and modeling_flash_attention_utils.py: under a
    static cache these kernels need a mask to leave out rows that hold nothing yet.
    """
    implementation = getattr(model.config, "_attn_implementation", None) or ""
    return "flash" in implementation


def layer_kinds(model: PreTrainedModel) -> frozenset[str]:
    """Return the kinds of cache layer the model has, as the library names them."""
    kinds, _ = get_layer_types_and_kwargs(model.config.get_text_config(decoder=True))
    return frozenset(kinds)
