"""Tiny random models of many families, for counts that must hold whatever the architecture."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

PLAIN = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
GROUPED = {**PLAIN, "num_key_value_heads": 2}
WINDOWED = {**GROUPED, "sliding_window": 6}
MIXTURE = {**GROUPED, "num_experts_per_tok": 2}
GPT = {
    "vocab_size": 96,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LATENT = {
    **PLAIN,
    "num_key_value_heads": 4,
    "q_lora_rank": 12,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
    "head_dim": 8,
}
LATENT_MIXTURE = {
    **LATENT,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
}
RECURRENT = {
    "vocab_size": 96,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "state_size": 4,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}

ATTENTION_FAMILIES: dict[str, dict[str, Any]] = {
    "llama": GROUPED,
    "mistral": {**WINDOWED, "head_dim": 12},
    "qwen2": GROUPED,
    "qwen3": {**GROUPED, "head_dim": 16},
    "gemma": {**GROUPED, "head_dim": 16},
    "gemma2": {**WINDOWED, "head_dim": 16},
    "gemma3_text": {**WINDOWED, "head_dim": 16, "num_hidden_layers": 6},
    "phi": PLAIN,
    "phi3": GROUPED,
    "gpt2": GPT,
    "gptj": {**GPT, "rotary_dim": 4},
    "codegen": {**GPT, "rotary_dim": 4},
    "gpt_bigcode": GPT,
    "gpt_neox": {**PLAIN, "max_position_embeddings": 64},
    "bloom": {"vocab_size": 96, "hidden_size": 32, "n_layer": 2, "n_head": 4},
    "mpt": {"vocab_size": 96, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 64},
    "opt": {**PLAIN, "ffn_dim": 48, "word_embed_proj_dim": 32, "max_position_embeddings": 64},
    "falcon": {**PLAIN, "multi_query": True, "new_decoder_architecture": False},
    "stablelm": GROUPED,
    "starcoder2": WINDOWED,
    "olmo2": GROUPED,
    "cohere2": WINDOWED,
    "granite": GROUPED,
    "smollm3": GROUPED,
    "glm4": {**GROUPED, "head_dim": 8},
    "nemotron": GROUPED,
    "mixtral": {**MIXTURE, "num_local_experts": 4},
    "qwen2_moe": {
        **MIXTURE,
        "num_experts": 4,
        "moe_intermediate_size": 16,
        "shared_expert_intermediate_size": 24,
    },
    "qwen3_moe": {**MIXTURE, "num_experts": 4, "moe_intermediate_size": 16, "head_dim": 8},
    "gpt_oss": {**MIXTURE, "num_local_experts": 4, "head_dim": 8, "sliding_window": 6},
    "olmoe": {**MIXTURE, "num_experts": 4},
    "granitemoe": {**MIXTURE, "num_local_experts": 4},
    "minicpm3": LATENT,
    "deepseek_v2": {**LATENT_MIXTURE, "topk_method": "greedy"},
    "deepseek_v3": LATENT_MIXTURE,
    "lfm2": {**GROUPED, "layer_types": ["conv", "full_attention"]},
}
# Layers that scan a state instead of attending: their scans are products that no matrix stands for.
SCANNING_FAMILIES: dict[str, dict[str, Any]] = {
    "jamba": {
        **MIXTURE,
        "num_hidden_layers": 4,
        "num_experts": 4,
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
        "expert_layer_period": 2,
        "expert_layer_offset": 1,
        "mamba_d_state": 4,
        "use_mamba_kernels": False,
    },
    "mamba": RECURRENT,
    "mamba2": {**RECURRENT, "num_heads": 8, "head_dim": 8, "n_groups": 1},
}
# Layers that differ in head size, and some that attend to another layer's K/V; in a prefill the
# library feeds those the last position only, so their operations are no function of T and L alone.
SHARING_FAMILIES: dict[str, dict[str, Any]] = {
    "gemma4_text": {
        **WINDOWED,
        "head_dim": 8,
        "global_head_dim": 16,
        "num_hidden_layers": 6,
        "layer_types": ["sliding_attention", "full_attention"] * 3,
        "num_kv_shared_layers": 2,
        "hidden_size_per_layer_input": 8,
        "vocab_size_per_layer_input": 96,
    },
}
COMPUTES_ALL_LOGITS = ("mamba", "mamba2")
FAMILIES = {**ATTENTION_FAMILIES, **SCANNING_FAMILIES, **SHARING_FAMILIES}


def family_config(family: str) -> dict[str, Any]:
    """Return the fields of a family's tiny config."""
    return {"model_type": family, **FAMILIES[family]}


def family_model(family: str) -> PreTrainedModel:
    """Return a tiny random float32 model of a family, its attention and experts run eagerly."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(family, **FAMILIES[family])
    return AutoModelForCausalLM.from_config(
        config, attn_implementation="eager", experts_implementation="eager", dtype=torch.float32
    ).eval()
