"""The layers of a decoder as its config's sizes describe them, each with its own. No torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from inference.counting.config_sizes import layer_types_of_pattern, whole_number
from inference.models.listed_sizes import lacking, needed, per_layer, size_of, wrong_length
from inference.records.errors import InputError, UnsupportedModelError
from inference.records.model import LayerType

# What only the classes of Qwen-7B, of the first OLMo and of Molmo say: their size is two widths in
# one. Source: modeling_qwen.py of Qwen-7B; olmo/model.py of allenai/OLMo and modeling_molmo.py of
# Molmo-7B-D-0924, ``SwiGLU``.
HALVED_WIDTHS = frozenset({"qwen", "hf_olmo", "olmo_hf", "molmo"})
LONGEST_NUMBER = 6
LISTS_OF_KINDS = ("layer_types", "layers_block_type", "block_types", "mixer_types")
LINEAR_KINDS = frozenset({"linear_attention", "lightning", "mamba", "recurrent", "conv", "ssm"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSizes:
    """The sizes of one layer; no heads where it has no attention, no width where it has no MLP.

    Attributes:
        shares_kv: It attends to the keys and values of an earlier layer, and has none of its own.
    """

    heads: int
    kv_heads: int
    head_dim: int
    width: int
    kind: LayerType
    window: int | None
    has_experts: bool = False
    shares_kv: bool = False


def layers_of(
    name: str, fields: Mapping[str, object], hidden: int, count: int
) -> tuple[LayerSizes, ...]:
    """Return the sizes of each layer.

    Raises:
        UnsupportedModelError: The file says no number of heads, or no width of the MLP.
        InputError: A list has another length than there are layers, or heads cannot be shared.
    """
    blocks = fields.get("block_configs")
    if isinstance(blocks, list):
        return _block_layers(name, fields, hidden, blocks, count)
    heads = per_layer(name, fields, "num_attention_heads", count)
    if heads is None:
        raise UnsupportedModelError(lacking(name, "num_attention_heads"))
    is_shared = fields.get("multi_query_attention") is not False
    kv_heads = (
        per_layer(name, fields, "num_key_value_heads", count) if is_shared else None
    ) or heads
    if fields.get("multi_query") is True and "num_key_value_heads" not in fields:
        kv_heads = (1,) * count
    dims = per_layer(name, fields, "head_dim", count) or _latent_dims(fields, count)
    widths = _widths(name, fields, hidden, count)
    kinds = _kinds(name, fields, count)
    heads = _heads_of_kinds(fields, heads, kinds)
    experts = _expert_layers(fields, count)
    window = whole_number(fields.get("sliding_window"))
    # Layers of a group use the first one's K/V: modeling_hunyuan.py of Hunyuan-Large.
    share = whole_number(fields.get("cla_share_factor")) if fields.get("use_cla") is True else None
    return tuple(
        _checked(
            hidden,
            LayerSizes(
                heads=heads[layer],
                kv_heads=kv_heads[layer],
                head_dim=dims[layer] if dims else 0,
                width=widths[layer],
                kind=kinds[layer],
                window=window if kinds[layer] is LayerType.SLIDING else None,
                has_experts=experts[layer],
                shares_kv=bool(share and layer % share),
            ),
        )
        for layer in range(count)
    )


def _heads_of_kinds(
    fields: Mapping[str, object], heads: tuple[int, ...], kinds: tuple[LayerType, ...]
) -> tuple[int, ...]:
    """Return each layer's query heads where sliding layers have a number of their own.

    Source:
        transformers 5.24, ``Step3p7TextConfig``, which reads Step-3.5-Flash's setting so.
    """
    setting = fields.get("attention_other_setting")
    other = setting.get("num_attention_heads") if isinstance(setting, Mapping) else None
    sliding = whole_number(other)
    if not sliding:
        return heads
    return tuple(
        sliding if kind is LayerType.SLIDING else usual
        for usual, kind in zip(heads, kinds, strict=True)
    )


def _latent_dims(fields: Mapping[str, object], count: int) -> tuple[int, ...] | None:
    """Return the size of a head where latent attention gives it in two parts."""
    parts = [whole_number(fields.get(name)) for name in ("qk_nope_head_dim", "qk_rope_head_dim")]
    is_latent = bool(whole_number(fields.get("kv_lora_rank"))) and None not in parts
    return (sum(one or 0 for one in parts),) * count if is_latent else None


def _checked(hidden: int, layer: LayerSizes) -> LayerSizes:
    """Return the layer with the head size that its heads leave where none is stated (0)."""
    if not layer.heads:
        return replace(layer, kv_heads=0, head_dim=0, kind=LayerType.NONE, window=None)
    if not layer.head_dim and hidden % layer.heads:
        msg = f"hidden_size {hidden} is not a multiple of the {layer.heads} attention heads, and "
        msg += "the config has no head_dim; add it"
        raise InputError(msg)
    if not layer.kv_heads or layer.heads % layer.kv_heads:
        msg = f"{layer.heads} query heads cannot share {layer.kv_heads} K/V heads evenly; "
        msg += "num_attention_heads must be a multiple of num_key_value_heads"
        raise InputError(msg)
    return replace(layer, head_dim=layer.head_dim or hidden // layer.heads)


def _block_layers(
    name: str, fields: Mapping[str, object], hidden: int, blocks: list[object], count: int
) -> tuple[LayerSizes, ...]:
    """Return the layers of ``block_configs``, where a search left out parts of layers.

    Source:
        configuration_decilm.py and block_config.py of Llama-3_1-Nemotron-51B-Instruct.
    """
    if len(blocks) != count:
        raise InputError(wrong_length(name, "block_configs", len(blocks), count))
    heads = needed(name, fields, "num_attention_heads")
    dim = size_of(fields, "head_dim")
    layers: list[LayerSizes] = []
    for block in blocks:
        attention = _part(block, "attention")
        mlp = _part(block, "ffn")
        has_none = bool(attention.get("no_op") or attention.get("replace_with_linear"))
        group = whole_number(attention.get("n_heads_in_group"))
        kv_heads = whole_number(attention.get("num_key_value_heads")) or (
            heads // group if group else heads
        )
        ratio = mlp.get("ffn_mult")
        width = whole_number(mlp.get("intermediate_size")) or (
            _rounded_up(int(2 * ratio * hidden / 3), 256) if isinstance(ratio, (int, float)) else 0
        )
        layers.append(
            _checked(
                hidden,
                LayerSizes(
                    heads=0 if has_none else heads,
                    kv_heads=kv_heads,
                    head_dim=dim or 0,
                    width=0 if mlp.get("no_op") or mlp.get("replace_with_linear") else width,
                    kind=LayerType.FULL,
                    window=None,
                ),
            )
        )
    return tuple(layers)


def _part(block: object, name: str) -> Mapping[str, object]:
    part = block.get(name) if isinstance(block, Mapping) else None
    return part if isinstance(part, Mapping) else {}


def _widths(name: str, fields: Mapping[str, object], hidden: int, count: int) -> tuple[int, ...]:
    ratios = fields.get("ffn_multipliers")
    divisor = whole_number(fields.get("ffn_dim_divisor")) or 1
    if isinstance(ratios, list) and all(isinstance(one, (int, float)) for one in ratios):
        if len(ratios) != count:
            raise InputError(wrong_length(name, "ffn_multipliers", len(ratios), count))
        return tuple(_divisible(ratio * hidden, divisor) for ratio in ratios)
    widths = per_layer(name, fields, "intermediate_size", count)
    if widths is None and "n_inner" in fields:
        return (4 * hidden,) * count  # null is four times the hidden size, as in GPT-2
    if widths is None and size_of(fields, "expert_size") is None:
        raise UnsupportedModelError(lacking(name, "intermediate_size"))
    widths = widths or (0,) * count
    return tuple(width // 2 for width in widths) if name in HALVED_WIDTHS else widths


def _divisible(value: float, divisor: int) -> int:
    """Return the multiple of the divisor nearest to a width, at most a tenth below it.

    Source:
        ``make_divisible`` in modeling_openelm.py of OpenELM-270M.
    """
    nearest = max(divisor, int(value + divisor / 2) // divisor * divisor)
    return nearest + divisor if nearest < 0.9 * value else nearest


def _rounded_up(value: int, divisor: int) -> int:
    return -(-value // divisor) * divisor


def _kinds(name: str, fields: Mapping[str, object], count: int) -> tuple[LayerType, ...]:
    linear = fields.get("linear_attn_config")
    if isinstance(linear, Mapping) and isinstance(linear.get("kda_layers"), list):
        numbers = linear[
            "kda_layers"
        ]  # from 1 on, as configuration_kimi.py of Kimi-Linear has them
        return tuple(
            LayerType.RECURRENT if layer + 1 in numbers else LayerType.FULL
            for layer in range(count)
        )
    types = next((fields[one] for one in LISTS_OF_KINDS if isinstance(fields.get(one), list)), None)
    types = types or layer_types_of_pattern(fields)
    if not isinstance(types, Sequence) or isinstance(types, str):
        return (LayerType.FULL,) * count
    if len(types) != count:
        raise InputError(wrong_length(name, "layer_types", len(types), count))
    return tuple(_kind(name, str(one)) for one in types)


def _kind(name: str, text: str) -> LayerType:
    if "sliding" in text:
        return LayerType.SLIDING
    if "full" in text or text in ("attention", "indexed_attention"):
        return LayerType.FULL
    if any(word in text for word in LINEAR_KINDS):
        return LayerType.RECURRENT
    msg = f"a layer of {name!r} is of kind {text!r} in layer_types, which is not known here; "
    raise UnsupportedModelError(f"{msg}full_attention, sliding_attention and linear_attention are")


def _numbers(value: object) -> frozenset[int] | None:
    """Return the layers that a file numbers, as a list or as text with commas; None for neither.

    Raises:
        InputError: One of them is no whole number.
    """
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list):
        return None
    texts = [str(one).strip() for one in parts]
    if not all(text.isdecimal() and len(text) <= LONGEST_NUMBER for text in texts if text):
        msg = f"the config's moe_layers_enum is {value!r:.60}; it must hold numbers of layers"
        raise InputError(msg)
    return frozenset(int(text) for text in texts if text)


def _expert_layers(fields: Mapping[str, object], count: int) -> tuple[bool, ...]:
    if not size_of(fields, "num_experts"):
        return (False,) * count
    first = size_of(fields, "dense_layers") or 0
    every = whole_number(fields.get("moe_layer_freq")) or 1
    step = whole_number(fields.get("decoder_sparse_step")) or 1
    frequency = fields.get("moe_layer_freq")
    listed = frequency if isinstance(frequency, list) and len(frequency) == count else None
    dense = fields.get("mlp_only_layers")
    numbered = _numbers(fields.get("moe_layers_enum"))
    if numbered is not None:
        return tuple(layer in numbered for layer in range(count))
    return tuple(
        bool(listed[layer])
        if listed is not None
        else layer >= first
        and layer % every == 0
        and (layer + 1) % step == 0
        and not (isinstance(dense, list) and layer in dense)
        for layer in range(count)
    )
