"""The sizes of a decoder under the names that published configs give them. No torch."""

from __future__ import annotations

from collections.abc import Mapping

from inference.counting.config_sizes import whole_number
from inference.records.errors import InputError, UnsupportedModelError

# Each size under the names that published configs give it, the most telling first.
NAMES: Mapping[str, tuple[str, ...]] = {
    "hidden_size": ("hidden_size", "n_embd", "n_embed", "d_model", "model_dim", "dim"),
    "num_hidden_layers": (
        "num_hidden_layers",
        "n_layer",
        "n_layers",
        "num_layers",
        "num_transformer_layers",
    ),
    "num_attention_heads": (
        "num_attention_heads_per_layer",
        "num_attention_heads",
        "n_head",
        "n_heads",
        "num_heads",
        "num_query_heads",
    ),
    "num_key_value_heads": (
        "num_key_value_heads_per_layer",
        "num_key_value_heads",
        "num_kv_heads",
        "n_kv_heads",
        "n_head_kv",
        "n_kv_head",
        "num_query_groups",
        "num_attention_groups",
        "n_query_groups",
        "kv_n_heads",
        "num_kv",
        "multi_query_group_num",
    ),
    "head_dim": ("head_dim", "kv_channels", "attention_head_dim", "d_head", "head_size"),
    "intermediate_size": (
        "intermediate_size",
        "ffn_hidden_size",
        "ffn_dim",
        "n_inner",
        "d_ff",
        "inner_hidden_dim",
        "inner_hidden_size",
        "hidden_dim",
        "feed_forward_size",
        "mlp_hidden_size",
        "ff_intermediate_size",
        "block_ff_dim",
    ),
    "vocab_size": ("padded_vocab_size", "vocab_size", "n_vocab", "model_vocab_size"),
    "max_position_embeddings": (
        "max_position_embeddings",
        "seq_length",
        "n_positions",
        "max_seq_len",
        "max_sequence_length",
        "max_context_length",
        "n_ctx",
    ),
    "num_experts": (
        "num_experts",
        "n_routed_experts",
        "num_local_experts",
        "moe_num_experts",
        "num_routed_experts",
    ),
    "experts_per_token": (
        "num_experts_per_tok",
        "num_experts_per_token",
        "moe_topk",
        "moe_top_k",
        "moe_k",
        "top_k_experts",
        "num_selected_experts",
    ),
    "expert_size": ("moe_intermediate_size", "expert_ffn_hidden_size", "moe_ffn_hidden_size"),
    "expert_hidden_size": ("routed_expert_hidden_size", "moe_latent_size"),
    "shared_experts": ("n_shared_experts", "num_shared_experts", "num_shared_expert"),
    "shared_size": (
        "shared_expert_intermediate_size",
        "shared_intermediate_size",
        "share_expert_dim",
    ),
    "dense_layers": ("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index"),
}


def with_usual_names(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields with sizes under usual names that MPT's files state in another way.

    Raises:
        InputError: Heads are grouped, and the file does not say in how many groups.

    Source:
        llm-foundry, ``MPTConfig``: ``attn_type`` says how K/V heads are shared, ``expansion_ratio``
        how much wider the MLP is, ``ffn_type`` whether it has a gate.
    """
    result = dict(fields)
    attention, mlp = fields.get("attn_config"), fields.get("ffn_config")
    if not isinstance(attention, Mapping) or "attn_type" not in attention:
        return result
    if attention["attn_type"] == "multiquery_attention":
        result["num_key_value_heads"] = 1
    elif attention["attn_type"] == "grouped_query_attention":
        groups = whole_number(attention.get("kv_n_heads"))
        if not groups:
            msg = "the config's attn_type is 'grouped_query_attention', but attn_config has no "
            raise InputError(f"{msg}kv_n_heads above zero; add it")
        result["num_key_value_heads"] = groups
    width, ratio = size_of(fields, "hidden_size"), whole_number(fields.get("expansion_ratio"))
    if width and ratio:
        result["intermediate_size"] = ratio * width
    result["ffn_with_glu"] = isinstance(mlp, Mapping) and mlp.get("ffn_type") == "mptglu"
    return result


def shares_heads(fields: Mapping[str, object]) -> bool:
    """Return whether a file of MPT's kind says that query heads share K/V heads."""
    attention = fields.get("attn_config")
    kinds = ("multiquery_attention", "grouped_query_attention")
    return isinstance(attention, Mapping) and attention.get("attn_type") in kinds


def name_of(fields: Mapping[str, object], size: str) -> str:
    """Return the name under which the file has a size; the size's own where it has none."""
    return next((name for name in NAMES[size] if fields.get(name) is not None), size)


def size_of(fields: Mapping[str, object], size: str) -> int | None:
    """Return a size of the whole model under any of its names; the first of a list."""
    value = fields.get(name_of(fields, size))
    return whole_number(value[0] if isinstance(value, list) and value else value)


def needed(name: str, fields: Mapping[str, object], size: str) -> int:
    """Return a size of the whole model, or raise UnsupportedModelError naming it."""
    value = size_of(fields, size)
    if not value:
        raise UnsupportedModelError(lacking(name, size))
    return value


def per_layer(
    name: str, fields: Mapping[str, object], size: str, count: int
) -> tuple[int, ...] | None:
    """Return a size for each layer, whether the file has one number or a list; None without it."""
    key = name_of(fields, size)
    value = fields.get(key)
    if not isinstance(value, list):
        whole = whole_number(value)
        return None if whole is None else (whole,) * count
    if len(value) != count:
        raise InputError(wrong_length(name, key, len(value), count))
    sizes = [whole_number(one) for one in value]
    if any(one is None for one in sizes):
        msg = f"the config's {key} holds {value!r:.60}; it must hold a whole number for each layer"
        raise InputError(msg)
    return tuple(one or 0 for one in sizes)


def lacking(name: str, size: str) -> str:
    """Return the sentence about a size that a file does not have under any name."""
    others = ", ".join(one for one in NAMES[size] if one != size)
    return (
        f"the architecture {name!r} is not one that transformers knows, and its config has no "
        f"{size} (nor {others}), so it cannot be counted; add it or choose another model"
    )


def wrong_length(name: str, key: str, found: int, count: int) -> str:
    """Return the sentence about a list whose length is not the number of layers."""
    return (
        f"the config of {name!r} has {found} values in {key} and {count} layers; "
        "there must be one for each"
    )
