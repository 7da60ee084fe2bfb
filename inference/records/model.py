"""What a model and its device are: sizes as in its config, weight matrices, tokenizer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LayerType(StrEnum):
    """What a layer's token mixer keeps from one step to the next."""

    FULL = "full_attention"
    SLIDING = "sliding_attention"
    CHUNKED = "chunked_attention"
    RECURRENT = "recurrent"
    NONE = "none"


class MatrixRole(StrEnum):
    """How often a weight matrix is used in one step."""

    LINEAR = "linear"  # every token fed passes through it
    EXPERT = "expert"  # only the tokens routed to it
    HEAD = "head"  # only the positions whose logits are computed
    EMBEDDING = "embedding"  # rows are gathered, nothing is multiplied


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightMatrix:
    """One kind of weight matrix of the model and how many layers have one.

    Attributes:
        name: The module's name without the layer's number, such as ``self_attn.q_proj``.
        in_features: d_in of X[T, d_in] x W[d_in, d_out].
        out_features: d_out.
        copies: Layers that have one of these; 1 for the head and the embedding.
        experts: Experts kept of this matrix in one layer; 1 outside a mixture.
        experts_per_token: Experts that one token passes through; 1 outside a mixture.
        bytes: Stored bytes of all copies and experts, biases left out.
        role: How often a step uses it.
        is_tied: True when it shares its storage with the embedding, so it is stored once.
        is_expansion: True when it turns cached latents into keys and values (latent attention);
            counted for the tokens fed, while transformers runs it over the whole context.
        published_bytes: Stored bytes as the model is published, where its config names a format.
        layers: Numbers of the layers that have one, where they are not the first ones.
    """

    name: str
    in_features: int
    out_features: int
    copies: int
    bytes: int
    role: MatrixRole
    experts: int = 1
    experts_per_token: int = 1
    is_tied: bool = False
    is_expansion: bool = False
    published_bytes: int | None = None
    layers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """The sizes of a model, named as in its own config, enough to count every step's work.

    Attributes:
        layer_types: One per layer.
        sliding_window: Tokens a sliding or chunked layer may attend to, itself included.
        weight_bytes: Bytes of all parameters, tied ones once.
        kv_dtype_bytes: Bytes of one stored key or value element.
        value_head_dim: Size of a value head where it is not ``head_dim`` (latent attention).
        kv_bytes_per_token: K/V bytes one token takes over all layers that keep K/V; None when the
            model keeps none or its layout is not known.
        matrices: Weight matrices, in order of use.
        kv_row_bytes_per_layer: K/V bytes one token takes in each layer, 0 where it keeps none;
            empty when not known layer by layer.
        pair_flops_per_layer: Operations of one query on one key and value in each layer, all heads;
            empty when not known layer by layer.
        windows_per_layer: Tokens each layer may attend to, None where it is all; empty likewise.
        idle_weight_bytes: Bytes of parameters that no text step reads, such as a vision tower.
        uncounted: What the counts leave out for this model, one sentence each.
        published_weight_bytes: Bytes of all parameters as the model is published, where its config
            names a format.
        published_format: What that format is called.
        parameters: Numbers that make up the model, tied ones once; None where a file does not say.
        activation_dtype_bytes: Bytes of a number that goes into and out of a matrix, where weights
            are kept in blocks; None where it is kept as the weights are.
    """

    model_type: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int | None
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    max_position_embeddings: int | None
    tie_word_embeddings: bool
    layer_types: tuple[LayerType, ...]
    sliding_window: int | None
    weight_bytes: int
    kv_dtype_bytes: int
    kv_bytes_per_token: int | None
    value_head_dim: int | None = None
    matrices: tuple[WeightMatrix, ...] = ()
    kv_row_bytes_per_layer: tuple[int, ...] = ()
    pair_flops_per_layer: tuple[int, ...] = ()
    windows_per_layer: tuple[int | None, ...] = ()
    idle_weight_bytes: int = 0
    uncounted: tuple[str, ...] = ()
    published_weight_bytes: int | None = None
    published_format: str = ""
    parameters: int | None = None
    activation_dtype_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """The device a model runs on, and the dtype it computes in."""

    kind: str
    name: str
    dtype: str
    memory_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceOption:
    """A device that a model can be loaded on.

    Attributes:
        name: As ``LoadModel.device`` takes it.
        label: What people call it.
    """

    name: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPiece:
    """The bytes one token id stands for; ``is_special`` for control tokens such as end-of-text."""

    token_id: int
    raw: bytes
    is_special: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerFiles:
    """All that is needed to turn text into a model's ids and back, without the model.

    Attributes:
        tokenizer_json: The tokenizer as the ``tokenizers`` library writes it.
        chat_template: The model's Jinja template; None when it has none.
        special_tokens: Pairs of a name that the template may use (``bos_token``) and its text.
        special_ids: Ids of control tokens, which are no part of the text.
    """

    tokenizer_json: str
    chat_template: str | None = None
    special_tokens: tuple[tuple[str, str], ...] = ()
    special_ids: tuple[int, ...] = ()
