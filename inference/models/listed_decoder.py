"""The shape of a decoder written down from its config's sizes, for classes that nothing here has.

The library builds what it knows; this is for the rest: attention with grouped heads or latents, an
MLP with or without a gate, experts, each layer with sizes of its own. What the file does not say is
assumed as most decoders have it, and said. No torch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from inference.counting.config_sizes import whole_number
from inference.models.listed_layers import HALVED_WIDTHS, LayerSizes, layers_of
from inference.models.listed_sizes import name_of, needed, size_of, with_usual_names
from inference.records.errors import InputError, UnsupportedModelError
from inference.records.model import LayerType, MatrixRole, ModelShape, WeightMatrix

TYING = ("tie_word_embeddings", "tie_embeddings", "share_input_output_layers", "weight_tying")
BIASES = ("attention_bias", "add_qkv_bias", "qkv_bias", "attn_bias", "use_qkv_bias")
GATED = re.compile(r"silu|swish|swiglu|gegelu|geglu|reglu|glu")
UNGATED = re.compile(r"gelu|relu")
# Names of an MLP's width that families with a gate do not use. Source: the configs of GPT-2, GPT-J
# and CodeGen in transformers 5.24 and of ChatGLM-6B.
UNGATED_WIDTHS = ("n_inner", "inner_hidden_size")
ACTIVATIONS = (
    "hidden_act",
    "activation_function",
    "hidden_activation",
    "activation_fn_name",
    "activation_type",
)
# What only the classes of these repositories say. Source: modeling_qwen.py of Qwen-7B (two halves
# of intermediate_size, biases on queries, keys and values); modeling_minicpm.py of MiniCPM-2B ties
# by the library's default for configs, which is what an unstated field is taken for below.
UNKNOWN = "is not one that transformers knows"
MOST_PADDING = 1024  # rows that an embedding may have beyond its vocabulary
OTHER_LAYERS = re.compile(r"mamba|(^|_)ssm(_|$)|linear_attn|lightning|rwkv|recurrent|attn_layer")
BIASED_QUERIES = frozenset({"qwen"})


@dataclass(slots=True, kw_only=True)
class _Plan:
    """The sizes of a whole decoder, and the sentences about what was assumed."""

    name: str
    hidden_size: int
    vocab_size: int
    element_bytes: int
    layers: tuple[LayerSizes, ...]
    is_gated: bool
    is_biased: bool
    is_tied: bool
    fields: Mapping[str, object]
    notes: list[str] = field(default_factory=list)


def listed_shape(
    name: str,
    fields: Mapping[str, object],
    element_bytes: int,
    why: str = UNKNOWN,
    *,
    is_tied_by_default: bool = True,
) -> ModelShape:
    """Return the shape of the decoder that these fields describe.

    Args:
        name: What the config calls its architecture.
        fields: As ``checked_fields`` gives them.
        element_bytes: Of a weight, and of an element of K/V.
        why: What keeps the library's own classes from deciding.
        is_tied_by_default: Whether input and output embeddings are one table where the file does
            not say.

    Raises:
        UnsupportedModelError: The file does not say enough; the field that is missing is named.
        InputError: Sizes contradict each other.
    """
    usual_fields = with_usual_names(fields)
    plan = _plan(name, usual_fields, element_bytes, why, is_tied_by_default=is_tied_by_default)
    matrices = _matrices(plan)
    vectors = _vector_elements(plan) * element_bytes
    stored = sum(matrix.bytes for matrix in matrices if not matrix.is_tied)
    latent = _latent(plan.fields)
    rows = tuple(_row_elements(layer, latent) * element_bytes for layer in plan.layers)
    usual = next((layer for layer in plan.layers if layer.heads), plan.layers[0])
    return ModelShape(
        model_type=name,
        vocab_size=plan.vocab_size,
        hidden_size=plan.hidden_size,
        intermediate_size=usual.width or None,
        num_hidden_layers=len(plan.layers),
        num_attention_heads=usual.heads,
        num_key_value_heads=usual.kv_heads,
        head_dim=sum(latent[1:3]) if latent else usual.head_dim,
        value_head_dim=latent[3] if latent else None,
        max_position_embeddings=size_of(fields, "max_position_embeddings"),
        tie_word_embeddings=plan.is_tied,
        layer_types=tuple(layer.kind for layer in plan.layers),
        sliding_window=next((layer.window for layer in plan.layers if layer.window), None),
        weight_bytes=stored + vectors,
        kv_dtype_bytes=element_bytes,
        kv_bytes_per_token=sum(rows) or None,
        matrices=matrices,
        kv_row_bytes_per_layer=rows,
        pair_flops_per_layer=tuple(
            2 * layer.heads * (sum(latent[1:]) if latent else 2 * layer.head_dim)
            for layer in plan.layers
        ),
        windows_per_layer=tuple(layer.window for layer in plan.layers),
        uncounted=tuple(plan.notes),
        parameters=(stored + vectors) // element_bytes,
    )


def _plan(
    name: str,
    fields: Mapping[str, object],
    element_bytes: int,
    why: str,
    *,
    is_tied_by_default: bool,
) -> _Plan:
    hidden = needed(name, fields, "hidden_size")
    count = needed(name, fields, "num_hidden_layers")
    activation = next((str(fields[one]) for one in ACTIVATIONS if fields.get(one)), "")
    gate = True if name in HALVED_WIDTHS else _stated_gate(fields, activation)
    tying = next((fields[one] for one in TYING if isinstance(fields.get(one), bool)), None)
    plan = _Plan(
        name=name,
        hidden_size=hidden,
        vocab_size=_embedded_tokens(name, fields),
        element_bytes=element_bytes,
        layers=layers_of(name, fields, hidden, count),
        is_gated=gate is not False,
        is_biased=name in BIASED_QUERIES or any(fields.get(one) is True for one in BIASES),
        is_tied=is_tied_by_default if tying is None else tying is True,
        fields=fields,
    )
    _note_what_was_assumed(
        plan, why, is_gate_stated=gate is not None, is_tying_stated=tying is not None
    )
    _note_layers(plan)
    return plan


def _stated_gate(fields: Mapping[str, object], activation: str) -> bool | None:
    """Return whether the MLP has a gate; None where the file does not say."""
    stated = fields.get("ffn_with_glu")
    if isinstance(stated, bool):
        return stated
    if activation:
        return not UNGATED.search(activation) or bool(GATED.search(activation))
    return False if any(name in fields for name in UNGATED_WIDTHS) else None


def _note_what_was_assumed(
    plan: _Plan, why: str, *, is_gate_stated: bool, is_tying_stated: bool
) -> None:
    gate = "with a gate" if plan.is_gated else "without a gate"
    sizes = f"the architecture {plan.name!r} {why}; this is a decoder of the file's sizes (an MLP "
    sizes += f"{gate}, causal attention)"
    if is_gate_stated:
        plan.notes.append(
            f"{sizes}, and anything else in it is not counted, so weights and operations are at "
            "least these"
        )
    else:
        gates = sum(
            d_in * d_out * experts
            for layer in plan.layers
            for name, d_in, d_out, _, experts, _ in _mlp(plan, layer)
            if name.endswith(".gate_proj")
        )
        plan.notes.append(
            f"{sizes}, and anything else in it is not counted. The file names no activation: the "
            f"gate is assumed, and without it there are {gates:,} parameters fewer."
        )
    if not is_tying_stated:
        head = plan.vocab_size * plan.hidden_size
        plan.notes.append(
            "The file does not say whether input and output embeddings are one table; "
            + (
                f"one, the library's default, is assumed. With two there are {head:,} parameters "
                "more."
                if plan.is_tied
                else f"two, the default of its class, are assumed. With one there are {head:,} "
                "parameters fewer."
            )
        )


def _embedded_tokens(name: str, fields: Mapping[str, object]) -> int:
    """Return the rows of the embedding, which some files state beside the vocabulary."""
    tokens = needed(name, fields, "vocab_size")
    rows = whole_number(fields.get("embedding_size")) or 0
    return rows if tokens <= rows <= tokens + MOST_PADDING else tokens


def _note_layers(plan: _Plan) -> None:
    kinds = [layer.kind for layer in plan.layers]
    if LayerType.RECURRENT in kinds:
        plan.notes.append(
            f"{kinds.count(LayerType.RECURRENT)} of {len(kinds)} layers attend linearly: they keep "
            "no K/V; their state and their own matrices beyond those of attention are not counted."
        )
    if without := sum(1 for layer in plan.layers if layer.kind is LayerType.NONE):
        plan.notes.append(f"{without} of {len(kinds)} layers have no attention and keep no K/V.")
    if sharing := sum(layer.shares_kv for layer in plan.layers):
        plan.notes.append(
            f"{sharing} of {len(kinds)} layers attend to an earlier layer's K/V and are counted as "
            "reading none: the K/V read are at least these, if each layer reads them anew."
        )
    others = [name for name in plan.fields if OTHER_LAYERS.search(name)]
    if others and LayerType.RECURRENT not in kinds:
        plan.notes.append(
            f"The file has sizes of layers without attention ({', '.join(others[:3])}) and does "
            "not say which layers those are: all are counted as attention, so K/V are at most "
            "these."
        )
    window = whole_number(plan.fields.get("sliding_window"))
    is_used = plan.fields.get("use_sliding_window") is not False
    if window and is_used and not any(layer.window for layer in plan.layers):
        plan.notes.append(
            f"sliding_window is {window:,}, and the file does not say which layers slide: all are "
            "counted as attending to everything, so K/V are at most these."
        )


def _latent(fields: Mapping[str, object]) -> tuple[int, int, int, int]:
    """Return the sizes of latent attention: rank, key without position, rotary key, value."""
    rank = whole_number(fields.get("kv_lora_rank"))
    if not rank:
        return ()  # pyright: ignore[reportReturnType]  # empty stands for none
    names = ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    sizes = [whole_number(fields.get(name)) for name in names]
    for name, size in zip(names, sizes, strict=True):
        if size is None:
            msg = f"the config has kv_lora_rank {rank} but no {name}; add it"
            raise InputError(msg)
    return (rank, *(size or 0 for size in sizes))  # pyright: ignore[reportReturnType]  # four


def _row_elements(layer: LayerSizes, latent: tuple[int, ...]) -> int:
    if layer.kind in (LayerType.RECURRENT, LayerType.NONE) or layer.shares_kv:
        return 0
    return latent[0] + latent[2] if latent else 2 * layer.kv_heads * layer.head_dim


def _matrices(plan: _Plan) -> tuple[WeightMatrix, ...]:
    sizes: dict[tuple[str, int, int, MatrixRole, int, int], list[int]] = {}
    for number, layer in enumerate(plan.layers):
        for matrix in (*_attention(plan, layer), *_mlp(plan, layer)):
            sizes.setdefault(matrix, []).append(number)
    each = plan.element_bytes
    listed = [
        WeightMatrix(
            name=name,
            in_features=d_in,
            out_features=d_out,
            copies=len(layers),
            bytes=len(layers) * experts * d_in * d_out * each,
            role=role,
            experts=experts,
            experts_per_token=chosen,
            is_expansion=name.endswith("kv_b_proj"),
            layers=() if layers == list(range(len(layers))) else tuple(layers),
        )
        for (name, d_in, d_out, role, experts, chosen), layers in sizes.items()
    ]
    table = plan.vocab_size * plan.hidden_size * each
    embedding = WeightMatrix(
        name="embed_tokens",
        in_features=plan.vocab_size,
        out_features=plan.hidden_size,
        copies=1,
        bytes=table,
        role=MatrixRole.EMBEDDING,
    )
    head = WeightMatrix(
        name="lm_head",
        in_features=plan.hidden_size,
        out_features=plan.vocab_size,
        copies=1,
        bytes=table,
        role=MatrixRole.HEAD,
        is_tied=plan.is_tied,
    )
    return (embedding, *listed, head)


_Sizes = tuple[str, int, int, MatrixRole, int, int]


def _linear(name: str, d_in: int, d_out: int) -> _Sizes:
    return (name, d_in, d_out, MatrixRole.LINEAR, 1, 1)


def _attention(plan: _Plan, layer: LayerSizes) -> list[_Sizes]:
    hidden, heads = plan.hidden_size, layer.heads
    if not heads:
        return []
    latent = _latent(plan.fields)
    if latent:
        rank, nope, rope, value = latent
        queries = whole_number(plan.fields.get("q_lora_rank"))
        wide = heads * (nope + rope)
        query = (
            [
                _linear("self_attn.q_a_proj", hidden, queries),
                _linear("self_attn.q_b_proj", queries, wide),
            ]
            if queries
            else [_linear("self_attn.q_proj", hidden, wide)]
        )
        return [
            *query,
            _linear("self_attn.kv_a_proj_with_mqa", hidden, rank + rope),
            _linear("self_attn.kv_b_proj", rank, heads * (nope + value)),
            _linear("self_attn.o_proj", heads * value, hidden),
        ]
    wide, narrow = heads * layer.head_dim, layer.kv_heads * layer.head_dim
    # Step3 makes its queries in two steps. Source: modeling_step3.py of Step3, ``share_q_dim``.
    between = whole_number(plan.fields.get("share_q_dim"))
    query = (
        [
            _linear("self_attn.q_proj", hidden, between),
            _linear("self_attn.wq", between, wide),
        ]
        if between
        else [_linear("self_attn.q_proj", hidden, wide)]
    )
    own = [
        _linear("self_attn.k_proj", hidden, narrow),
        _linear("self_attn.v_proj", hidden, narrow),
    ]
    return [
        *query,
        *(() if layer.shares_kv else own),
        _linear("self_attn.o_proj", wide, hidden),
    ]


def _mlp(plan: _Plan, layer: LayerSizes) -> list[_Sizes]:
    if not layer.has_experts:
        return _one_mlp(plan, "mlp", layer.width)
    fields = plan.fields
    experts = needed(plan.name, fields, "num_experts")
    chosen = size_of(fields, "experts_per_token")
    if not chosen:
        msg = (
            f"the config of {plan.name!r} has {experts} experts ({name_of(fields, 'num_experts')}) "
        )
        raise UnsupportedModelError(f"{msg}but no num_experts_per_tok; add it")
    if chosen > experts:
        msg = f"the config has {chosen} experts for each token of {experts}; it cannot have more"
        raise InputError(msg)
    width = size_of(fields, "expert_size") or layer.width
    shared = size_of(fields, "shared_size") or (size_of(fields, "shared_experts") or 0) * width
    hidden = plan.hidden_size
    inner = size_of(fields, "expert_hidden_size") or hidden  # of experts that work in a latent
    latent = [_linear("mlp.latent_in", hidden, inner), _linear("mlp.latent_out", inner, hidden)]
    return [
        _linear("mlp.gate", hidden, experts),
        *(latent if inner != hidden else ()),
        *(
            (name, d_in, d_out, MatrixRole.EXPERT, experts, chosen)
            for name, d_in, d_out, *_ in _one_mlp(plan, "mlp.experts", width, inner)
        ),
        *(_one_mlp(plan, "mlp.shared_experts", shared) if shared else ()),
    ]


def _one_mlp(plan: _Plan, prefix: str, width: int, hidden: int | None = None) -> list[_Sizes]:
    if not width:
        return []
    hidden = hidden or plan.hidden_size
    gate = [_linear(f"{prefix}.gate_proj", hidden, width)] if plan.is_gated else []
    return [
        *gate,
        _linear(f"{prefix}.up_proj", hidden, width),
        _linear(f"{prefix}.down_proj", width, hidden),
    ]


def _vector_elements(plan: _Plan) -> int:
    """Return the elements of norms and biases: no matrix, but stored and read all the same."""
    norm = 0 if plan.fields.get("layer_norm_with_affine") is False else plan.hidden_size
    total = norm  # the last one
    has_head_norms = plan.fields.get("normalize_qk_projections") or plan.fields.get("use_qk_norm")
    for layer in plan.layers:
        total += norm * (bool(layer.heads) + bool(layer.width or layer.has_experts))
        if plan.is_biased:
            total += (layer.heads + 2 * layer.kv_heads) * layer.head_dim
        if has_head_norms and layer.heads:
            total += 2 * layer.head_dim
    return total
