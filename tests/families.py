"""Tiny random models, one a family, built from configs: no file and no network is needed.

Weights are drawn wider than the library's own start, so that attention differs from cell to cell
and greedy generation does not repeat one token for ever.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cache
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from inference.models.loading import LoadedModel
from inference.models.shapes import model_shape
from inference.records.model import TokenizerFiles
from tests.builders import TINY_DEVICE
from tests.tiny_model import tiny_config

VOCAB = 97
WINDOW = 6
CHUNK = 6

# Sizes that most configs name alike.
_COMMON: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": None,
    "initializer_range": 0.3,
}
_EXPERTS: dict[str, Any] = {"num_experts_per_tok": 2, "moe_intermediate_size": 24}


def _common(**changes: object) -> dict[str, Any]:
    return {key: value for key, value in {**_COMMON, **changes}.items() if value != "drop"}


FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", _common()),
    "mistral": ("mistral", _common(sliding_window=WINDOW)),
    "qwen2": ("qwen2", _common()),
    "qwen3": ("qwen3", _common(head_dim=16)),
    "gemma2": (
        "gemma2",
        _common(
            head_dim=8,
            sliding_window=WINDOW,
            query_pre_attn_scalar=8,
            attn_logit_softcapping=2.0,
            final_logit_softcapping=5.0,
        ),
    ),
    "gemma3": (
        "gemma3_text",
        _common(
            head_dim=8,
            sliding_window=WINDOW,
            query_pre_attn_scalar=8,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        ),
    ),
    "gpt2": (
        "gpt2",
        {
            "vocab_size": VOCAB,
            "n_embd": 32,
            "n_layer": 3,
            "n_head": 4,
            "n_positions": 128,
            "bos_token_id": 1,
            "eos_token_id": None,
            "initializer_range": 0.3,
        },
    ),
    "opt": (
        "opt",
        _common(
            ffn_dim=48,
            word_embed_proj_dim=32,
            init_std=0.3,
            intermediate_size="drop",
            num_key_value_heads="drop",
            initializer_range="drop",
        ),
    ),
    "phi3": ("phi3", _common()),
    "falcon": (
        "falcon",
        _common(
            new_decoder_architecture=False,
            multi_query=True,
            alibi=False,
            intermediate_size="drop",
            num_key_value_heads="drop",
        ),
    ),
    "falcon_alibi": (
        "falcon",
        _common(
            new_decoder_architecture=False,
            multi_query=False,
            alibi=True,
            intermediate_size="drop",
            num_key_value_heads="drop",
        ),
    ),
    "bloom": (
        "bloom",
        {
            "vocab_size": VOCAB,
            "hidden_size": 32,
            "n_layer": 3,
            "n_head": 4,
            "bos_token_id": 1,
            "eos_token_id": None,
            "pad_token_id": 0,
            "initializer_range": 0.3,
        },
    ),
    "gpt_neox": ("gpt_neox", _common(num_key_value_heads="drop")),
    "starcoder2": ("starcoder2", _common(sliding_window=None)),
    "cohere": ("cohere", _common(logit_scale=1.0)),
    "olmo2": ("olmo2", _common()),
    "granite": ("granite", _common()),
    "mixtral": ("mixtral", _common(num_local_experts=4, num_experts_per_tok=2)),
    "qwen3_moe": ("qwen3_moe", _common(head_dim=16, num_experts=4, **_EXPERTS)),
    "deepseek_v3": (
        "deepseek_v3",
        _common(
            num_key_value_heads=4,
            q_lora_rank=16,
            kv_lora_rank=16,
            qk_rope_head_dim=8,
            qk_nope_head_dim=8,
            v_head_dim=12,
            n_routed_experts=4,
            n_shared_experts=1,
            n_group=1,
            topk_group=1,
            first_k_dense_replace=1,
            **_EXPERTS,
        ),
    ),
    "gpt_oss": (
        "gpt_oss",
        _common(head_dim=8, sliding_window=WINDOW, num_local_experts=4, num_experts_per_tok=2),
    ),
    "llama4": (
        "llama4_text",
        _common(
            head_dim=8,
            attention_chunk_size=CHUNK,
            num_local_experts=2,
            num_experts_per_tok=1,
            intermediate_size_mlp=48,
            interleave_moe_layer_step=2,
            layer_types=["chunked_attention", "full_attention", "chunked_attention"],
        ),
    ),
    "mamba": (
        "mamba",
        {
            "vocab_size": VOCAB,
            "hidden_size": 32,
            "num_hidden_layers": 3,
            "state_size": 8,
            "bos_token_id": 1,
            "eos_token_id": None,
            "pad_token_id": 0,
            "initializer_range": 0.3,
        },
    ),
    "mamba2": (
        "mamba2",
        {
            "vocab_size": VOCAB,
            "hidden_size": 32,
            "num_hidden_layers": 3,
            "state_size": 8,
            "num_heads": 8,
            "head_dim": 8,
            "n_groups": 1,
            "chunk_size": 8,
            "bos_token_id": 1,
            "eos_token_id": None,
            "pad_token_id": 0,
            "initializer_range": 0.3,
        },
    ),
    "bamba": (
        "bamba",
        _common(
            attn_layer_indices=[1],
            mamba_n_heads=4,
            mamba_d_head=16,
            mamba_n_groups=1,
            mamba_d_state=8,
            mamba_chunk_size=8,
        ),
    ),
    "lfm2": (
        "lfm2",
        _common(
            conv_L_cache=3,
            block_auto_adjust_ff_dim=False,
            layer_types=["conv", "full_attention", "conv"],
        ),
    ),
    "qwen3_next": (
        "qwen3_next",
        _common(
            head_dim=16,
            num_experts=4,
            shared_expert_intermediate_size=24,
            linear_num_key_heads=2,
            linear_num_value_heads=4,
            linear_key_head_dim=8,
            linear_value_head_dim=8,
            linear_conv_kernel_dim=4,
            layer_types=["linear_attention", "full_attention", "linear_attention"],
            **_EXPERTS,
        ),
    ),
    "falcon_h1": (
        "falcon_h1",
        _common(
            head_dim=8,
            mamba_d_ssm=32,
            mamba_n_heads=4,
            mamba_d_head=8,
            mamba_n_groups=1,
            mamba_d_state=8,
            mamba_d_conv=4,
            mamba_chunk_size=8,
        ),
    ),
}


# Not another family: sizes that one test needs.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt_neox_long": (
        "gpt_neox",
        _common(num_key_value_heads="drop", max_position_embeddings=1024, num_hidden_layers=2),
    ),
}

KERNEL_SIZES: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 1024,
    "initializer_range": 0.2,
}


@cache
def tiny_model(family: str, dtype: torch.dtype = torch.float64) -> PreTrainedModel:
    """Return the family's model, the same weights on every call; callers must not change it."""
    model_type, settings = {**FAMILIES, **VARIANTS}[family]
    config = AutoConfig.for_model(model_type, **copy.deepcopy(settings))
    return fresh_model(config, dtype)


def fresh_model(
    config: Any,  # noqa: ANN401  many config types
    dtype: torch.dtype,
    attention: str | None = None,
) -> PreTrainedModel:
    """Return a model with weights of its own from a copy of the config, always the same ones."""
    own = copy.deepcopy(config)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        chosen: dict[str, Any] = {"experts_implementation": "eager"}
        if attention is not None:
            chosen["attn_implementation"] = attention
        model: PreTrainedModel = AutoModelForCausalLM.from_config(own, dtype=dtype, **chosen)
    return model.eval().requires_grad_(False)  # noqa: FBT003  torch's own signature


def kernel_model(kind: str = "llama", attention: str | None = None) -> PreTrainedModel:
    """Return a float32 model of a family in sizes that the decode kernels take."""
    config = tiny_config() if kind == "llama" else copy.deepcopy(tiny_model(kind).config)
    for name, value in KERNEL_SIZES.items():
        setattr(config, name, value)
    config.sliding_window = None
    return fresh_model(config, torch.float32, attention)


def loaded_model(family: str = "llama") -> LoadedModel:
    """Return the family's model as the loader returns one."""
    model = tiny_model(family)
    return LoadedModel(
        model=model,
        model_id=family,
        shape=model_shape(model),
        device=replace(TINY_DEVICE, dtype="float64"),
        attention="sdpa",
        eos_ids=frozenset(),
        context_limit=128,
        tokenizer_files=TokenizerFiles(tokenizer_json=""),
    )
