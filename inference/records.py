"""Every frozen record and enum that crosses a seam between measuring, computing and drawing.

Records hold ints, floats, strings, enums, datetimes, tuples and other records (``AttentionMap`` an
array): never a tensor, a handle or a frame, so each one can be sent to another process, written to
a file and compared. SI units inside, the unit is the suffix of the name. ``None`` means "not known
here" and is never replaced by a number. No torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from math import isfinite

import numpy as np
from numpy.typing import NDArray

SCHEMA_VERSION = 1


class Phase(StrEnum):
    """The two stages of generation."""

    PREFILL = "prefill"
    DECODE = "decode"


class Finish(StrEnum):
    """Why a row produced its last token."""

    EOS = "eos"
    LENGTH = "length"
    CONTEXT = "context"


class Source(StrEnum):
    """How a figure was come by."""

    MEASURED = "measured"
    COUNTED = "counted"
    DATASHEET = "datasheet"


class RunState(StrEnum):
    """Where a run stands. The last four are final."""

    QUEUED = "queued"
    LOADING = "loading"
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"
    ABANDONED = "abandoned"

    @property
    def is_final(self) -> bool:
        """True when the run will not change any more."""
        return self in FINAL_STATES


FINAL_STATES = frozenset({RunState.DONE, RunState.STOPPED, RunState.FAILED, RunState.ABANDONED})


class LayerType(StrEnum):
    """What a layer's token mixer keeps from one step to the next."""

    FULL = "full_attention"
    SLIDING = "sliding_attention"
    CHUNKED = "chunked_attention"
    RECURRENT = "recurrent"
    NONE = "none"


class CacheKind(StrEnum):
    """How a cache stores keys and values."""

    DYNAMIC = "dynamic"  # grows with every token
    STATIC = "static"  # all its room is reserved at the start
    QUANTISED = "quantised"  # grows, in 8-bit floats


class DecodeMode(StrEnum):
    """How a decode step is handed to the device."""

    EAGER = "eager"  # operation by operation
    GRAPH = "graph"  # recorded once, replayed as one launch
    COMPILED = "compiled"  # by torch.compile, on CUDA recorded as well


class AttentionKind(StrEnum):
    """Which of the library's implementations computes attention."""

    AUTO = "auto"  # the library's choice, with our kernels where they fit
    SDPA = "sdpa"  # torch's fused function
    EAGER = "eager"  # one operation after another, all weights written out
    FLASH = "flash_attention_2"  # the flash-attn package


class Policy(StrEnum):
    """When a slot of a batch takes the next request."""

    STATIC = "static"  # when all rows of the batch are done
    CONTINUOUS = "continuous"  # as soon as its own row is done


class Padding(StrEnum):
    """On which side prompts of one batch are filled up to the longest of them."""

    LEFT = "left"
    RIGHT = "right"


class MatrixRole(StrEnum):
    """How often a weight matrix is used in one step."""

    LINEAR = "linear"  # every token fed passes through it
    EXPERT = "expert"  # only the tokens routed to it
    HEAD = "head"  # only the positions whose logits are computed
    EMBEDDING = "embedding"  # rows are gathered, nothing is multiplied


class Part(StrEnum):
    """Which operations of a step something stands for."""

    STEP = "step"
    LINEAR = "linear"
    ATTENTION = "attention"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """The device a model runs on, and the dtype it computes in."""

    kind: str
    name: str
    dtype: str
    memory_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """How several requests share the device.

    Attributes:
        slots: Rows that may run together; None for one a request.
        padding: Where a static batch is filled up in its prefill; afterwards every row ends in the
            last column.
    """

    policy: Policy = Policy.STATIC
    slots: int | None = None
    padding: Padding = Padding.LEFT


ONE_BATCH = BatchPlan()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """What a run was made with, kept beside its figures wherever they go.

    Attributes:
        attention: The attention implementation the model resolved to.
        clock: How laps were timed: ``host`` or ``cuda_events``.
        started_at: UTC.
        versions: Pairs of package name and version.
        cache: How keys and values were stored.
        chunk_tokens: Tokens of the prompt fed in one step at most; None when all were at once.
        plan: How several requests shared the device.
        ceilings: The device's two roofs for this dtype, measured there; None when they were not.
        decode: How decode steps were handed over; those that were looked into were eager.
        decode_note: Why another way was used than the one asked for; empty when none was.
        device_note: What was chosen to run on and why, in a sentence; empty when not known.
        kernels: What small steps were computed with, and why not with kernels of our own where they
            were not; empty when not known.
    """

    run_id: str
    model_id: str
    shape: ModelShape
    device: Device
    attention: str
    clock: str
    seed: int
    started_at: datetime
    versions: tuple[tuple[str, str], ...]
    cache: CacheKind = CacheKind.DYNAMIC
    chunk_tokens: int | None = None
    plan: BatchPlan = ONE_BATCH
    ceilings: Ceilings | None = None
    decode: DecodeMode = DecodeMode.EAGER
    decode_note: str = ""
    device_note: str = ""
    kernels: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How the next token is chosen. Temperature 0 is greedy and ignores the other two."""

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None

    @property
    def is_greedy(self) -> bool:
        """True when the highest logit is always taken."""
        return self.temperature == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What one user asked for: ``prompt_ids`` are exactly what the model is fed.

    Attributes:
        arrival_s: When it came in, on the run's own time: laps and idle waits from its beginning.
    """

    request_id: str
    prompt_text: str
    prompt_ids: tuple[int, ...]
    max_new_tokens: int
    sampling: Sampling
    arrival_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One of the likeliest next tokens, with its log-probability (nats) before temperature.

    Attributes:
        sampled_logprob: The same after temperature, top-k and top-p; None where they rule it out,
            and in greedy runs.
    """

    token_id: int
    logprob: float
    sampled_logprob: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowStep:
    """What one step did for one row of the batch.

    Attributes:
        query_tokens: Tokens of this row fed in this step (T).
        context_tokens: Tokens of this row in the cache after it, those fed included (L).
        token_id: The token selected, not stored yet; None when a prefill chunk selects nothing.
        logprob: Its log-probability (nats) in the model's own distribution, before temperature.
        finish: Set on the row's last token.
        candidates: The likeliest tokens at this position, best first.
        entropy_nats: Of the model's own distribution at this position, before temperature.
    """

    request_id: str
    slot: int
    query_tokens: int
    context_tokens: int
    token_id: int | None
    logprob: float | None
    finish: Finish | None
    candidates: tuple[Candidate, ...] = ()
    entropy_nats: float | None = None

    def __post_init__(self) -> None:
        """Raise ValueError where a chart would lie."""
        if not 0 < self.query_tokens <= self.context_tokens:
            msg = f"a step feeds 1 to {self.context_tokens} tokens, not {self.query_tokens}"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheState:
    """What the cache holds after a step, read off its own tensors.

    Attributes:
        tokens_per_layer: K/V rows each layer holds for the longest row; 0 where it keeps none.
        used_bytes: Bytes of the K/V of real tokens, all rows.
        allocated_bytes: Bytes of all K/V tensors, padding and reserve included.
        bytes_per_layer: Allocated K/V bytes of each layer.
        state_bytes: Bytes of recurrent and convolution states, which no token adds to; in none of
            the figures above.
        state_bytes_per_layer: The same, layer by layer.
    """

    tokens_per_layer: tuple[int, ...]
    used_bytes: int
    allocated_bytes: int
    bytes_per_layer: tuple[int, ...] = ()
    state_bytes: int = 0
    state_bytes_per_layer: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError where a chart would lie."""
        if not 0 <= self.used_bytes <= self.allocated_bytes:
            msg = f"{self.used_bytes} bytes used of {self.allocated_bytes} allocated"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheOption:
    """A kind of cache, and why the model held cannot use it; an empty reason means it can."""

    kind: CacheKind
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeOption:
    """A way to hand decode steps over, and why the model held cannot; empty when it can."""

    mode: DecodeMode
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionOption:
    """An implementation of attention, and why the model held cannot have it; empty when it can."""

    kind: AttentionKind
    reason: str = ""


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
class AttentionChoice:
    """What to look at in every step.

    Attributes:
        layer: 0 for the first.
        head: A query head; None for the mean over all of them, or with ``is_all_heads`` for each.
        is_all_heads: Each head by itself.
        slot: The row of the batch.
    """

    layer: int
    head: int | None = None
    is_all_heads: bool = False
    slot: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AttentionMap:
    """The weights that one layer gave to stored tokens in one step; each query's sum to 1.

    A cell stands for ``query_bin`` x ``kv_bin`` weights and holds the largest of them; with bins of
    1 every weight is exact. Positions count the row's own tokens from 0, padding left out. Arrays
    are read-only; a weight that is not a number stays NaN.

    Attributes:
        heads: The query head of each plane; empty when the one plane is the mean over all heads.
        query_start: Position of the first query.
        query_tokens: Queries covered.
        kv_start: Position of the first key; above 0 where a window has dropped those before.
        kv_tokens: Keys covered.
        weights: [plane, query cell, kv cell]; None where they could not be seen.
        first_token: [plane, query cell], the largest weight on the sequence's first token; None
            when no key of the map is that token.
        rest_of_first_cell: [plane, query cell], the largest weight of the first kv cell without the
            first token; None likewise.
        first_output_query: Position of the query whose output chose the first output token: the
            prompt's last; None when it is not in this map.
        reason: Why there are no weights, or what is wrong with them; empty when all is well.
    """

    choice: AttentionChoice
    step_index: int = 0
    heads: tuple[int, ...] = ()
    query_start: int = 0
    query_tokens: int = 0
    kv_start: int = 0
    kv_tokens: int = 0
    query_bin: int = 1
    kv_bin: int = 1
    weights: NDArray[np.float16 | np.float32] | None = None
    first_token: NDArray[np.float16 | np.float32] | None = None
    rest_of_first_cell: NDArray[np.float16 | np.float32] | None = None
    first_output_query: int | None = None
    reason: str = ""

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        arrays = (self.weights, self.first_token, self.rest_of_first_cell)
        return sum(array.nbytes for array in arrays if array is not None)

    def without_first_token(self) -> NDArray[np.float16 | np.float32] | None:
        """Return the weights with that of the sequence's first token left out."""
        if self.weights is None or self.rest_of_first_cell is None:
            return self.weights
        weights = self.weights.copy()
        weights[:, :, 0] = self.rest_of_first_cell
        weights.flags.writeable = False
        return weights


@dataclass(frozen=True, slots=True, kw_only=True)
class PartTime:
    """How long the operations of one part of a step took, measured inside its lap."""

    part: Part
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEvent:
    """One forward pass and the sampling after it.

    Attributes:
        index: 0 for the first step of the run.
        started_s: Host monotonic time, on the run's zero.
        duration_s: One lap over forward and sampling, ended when the device was done.
        observed: True when something was captured that made the step slower.
        cold: True when first-call costs may be inside: the first run after a model was loaded.
        look_s: Host time spent on a picture of the step's attention, after its lap and in none;
            None when nothing was looked at.
        parts: Time in linear operations and in attention, in the steps where they were timed.
        waited_s: Idle wait before the step, while no request was there to be served.
        host_s: Host time from the start of the lap until all its work was handed to the device;
            None where an operation has finished when its call returns, as on a CPU.
        decode: How this decode step was handed over; None in prefill, and where it is not known.
    """

    index: int
    phase: Phase
    rows: tuple[RowStep, ...]
    cache: CacheState
    started_s: float
    duration_s: float
    observed: bool
    cold: bool
    look_s: float | None = None
    parts: tuple[PartTime, ...] = ()
    waited_s: float = 0.0
    host_s: float | None = None
    decode: DecodeMode | None = None

    def __post_init__(self) -> None:
        """Raise ValueError where a chart would lie."""
        if not (isfinite(self.duration_s) and self.duration_s >= 0):
            msg = f"a lap of {self.duration_s} s"
            raise ValueError(msg)

    @property
    def query_tokens(self) -> int:
        """Tokens fed in this step, over all rows (T)."""
        return sum(row.query_tokens for row in self.rows)

    @property
    def context_tokens(self) -> int:
        """Longest context of the step's rows (L)."""
        return max(row.context_tokens for row in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySample:
    """How busy the machine was at one moment; each reading is None where it is not available.

    Attributes:
        at_s: Host monotonic time, on the run's zero.
        gpu_busy_ratio: NVML: share of the last 1/6 to 1 s in which any kernel ran.
        memory_used_bytes: Device memory in use, all programs; on a CPU run, and on a GPU without
            memory of its own, the machine's (its container's, where that has a limit).
        cpu_busy_ratio: Share of all cores' time, whole machine, since the sample before.
        process_cpu_ratio: The engine's share of all cores' time since the sample before.
        process_memory_bytes: Resident memory of the engine process.
        memory_controller_busy_ratio: NVML: share of the same time in which device memory was read
            or written at all; no measure of bandwidth.
        energy_j: NVML: counter of the GPU's energy; only differences over 0.1 s and more mean much.
        temperature_c: Of the GPU, in degrees Celsius.
        throttle_reasons: What holds the GPU's clocks down, in words; empty when nothing does.
        pcie_tx_bytes_per_s: Sent by the GPU, over 20 ms; read once in a while, None in between.
        pcie_rx_bytes_per_s: Received by the GPU, likewise.
        other_programs: Programs beside this one that compute on the GPU; read likewise.
    """

    at_s: float
    gpu_busy_ratio: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    power_w: float | None = None
    cpu_busy_ratio: float | None = None
    process_cpu_ratio: float | None = None
    process_memory_bytes: int | None = None
    memory_controller_busy_ratio: float | None = None
    energy_j: float | None = None
    sm_clock_hz: float | None = None
    memory_clock_hz: float | None = None
    temperature_c: float | None = None
    throttle_reasons: tuple[str, ...] | None = None
    pcie_tx_bytes_per_s: float | None = None
    pcie_rx_bytes_per_s: float | None = None
    other_programs: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unavailable:
    """A reading this machine does not give, and why; ``reading`` is a TelemetrySample field."""

    reading: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPiece:
    """The bytes one token id stands for; ``is_special`` for control tokens such as end-of-text."""

    token_id: int
    raw: bytes
    is_special: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a request produced."""

    request_id: str
    token_ids: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTrace:
    """A run: everything a page, a metric or an export may ask of it.

    Attributes:
        outputs: One per request, in the requests' order.
        pieces: The bytes of every token id that occurs in requests, rows and candidates.
        unavailable: Telemetry readings that this machine did not give.
        state: Where the run stood when this was taken.
        message: Why it failed or was stopped, in a sentence; empty otherwise.
    """

    info: RunInfo
    requests: tuple[Request, ...]
    events: tuple[StepEvent, ...]
    telemetry: tuple[TelemetrySample, ...]
    outputs: tuple[Output, ...]
    pieces: tuple[TokenPiece, ...] = ()
    unavailable: tuple[Unavailable, ...] = ()
    state: RunState = RunState.DONE
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCost:
    """The least one step must compute and move, counted from the model's shape.

    Attributes:
        linear_flops: 2·T·d_in·d_out over all weight matrices used.
        attention_flops: Both products of attention: queries with keys, weights with values.
        weight_bytes: Read once for the whole batch; gathered embedding rows, experts expected.
        expansion_flops: What transformers spends on top with latent attention, where every step
            turns the whole cache into keys and values again; not in ``linear_flops``.
    """

    linear_flops: int
    attention_flops: int
    weight_bytes: int
    kv_read_bytes: int
    kv_write_bytes: int
    expansion_flops: int = 0

    @property
    def flops(self) -> int:
        """Linear and attention operations together."""
        return self.linear_flops + self.attention_flops

    @property
    def bytes_moved(self) -> int:
        """Weights and K/V together."""
        return self.weight_bytes + self.kv_read_bytes + self.kv_write_bytes

    @property
    def flops_per_byte(self) -> float:
        """Arithmetic intensity of the whole step."""
        return self.flops / self.bytes_moved


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixCost:
    """What one weight matrix does in one step, all its copies together.

    Attributes:
        tokens: Rows of X that pass through one copy (T); for a mixture the tokens routed, all
            experts together; for the head the positions whose logits are computed.
        flops: 2 x tokens x d_in x d_out x copies.
        weight_bytes: Bytes read of it; of a mixture the experts expected to be used.
        activation_bytes: X read and the product written, all copies.
        reuse: Rows that use each weight for one read of it; None where nothing is multiplied.
    """

    matrix: WeightMatrix
    tokens: int
    flops: int
    weight_bytes: int
    activation_bytes: int
    reuse: float | None

    @property
    def flops_per_byte(self) -> float | None:
        """Arithmetic intensity of the product with its activations; None when nothing moves."""
        moved = self.weight_bytes + self.activation_bytes
        return self.flops / moved if moved else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """How fast a device can go: its two roofs, and how they were come by."""

    flops_per_s: float
    bytes_per_s: float
    source: Source
    method: str

    @property
    def ridge_flops_per_byte(self) -> float:
        """Intensity at which the two roofs meet."""
        return self.flops_per_s / self.bytes_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencySummary:
    """The latency figures of one request; None where too little was measured.

    Attributes:
        itl_s: For each token after the first, the laps since the one before it in this sequence.
        sequence_tokens_per_s: 1 / TPOT: decode steps only.
        e2e_tokens_per_s: Output tokens / E2E.
        is_cold: True when a lap in it may hold first-call costs.
        excluded_steps: Steps left out of the ITL figures because they were observed.
        wait_s: Part of TTFT before its first step: the wait for a slot; None before that step.
        interrupted: Which of ``itl_s`` (0 for the first) hold another row's prefill.
    """

    request_id: str
    output_tokens: int
    ttft_s: float | None
    itl_s: tuple[float, ...]
    itl_p50_s: float | None
    itl_p95_s: float | None
    tpot_s: float | None
    e2e_s: float | None
    sequence_tokens_per_s: float | None
    e2e_tokens_per_s: float | None
    is_cold: bool
    excluded_steps: int
    wait_s: float | None = None
    interrupted: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodput:
    """How many requests kept the limits a user set.

    Attributes:
        good: Their ids.
        finished: Requests that have their last token.
        requests_per_s: Good ones per second of the run's own time; None before the first step.
    """

    good: tuple[str, ...]
    finished: int
    requests_per_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """Where a run stands for those who watch it.

    Attributes:
        message: One sentence: what is happening, or why it ended.
        stage: What is being loaded; empty when nothing is.
        stage_ratio: How far that is, 0 to 1; None when it cannot be said.
        queue_position: 1 for the next run to start; None when it does not wait.
    """

    state: RunState
    message: str = ""
    stage: str = ""
    stage_ratio: float | None = None
    queue_position: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadStage:
    """What is happening while a model is fetched or loaded.

    Attributes:
        stage: A short phrase for the user, such as ``reading weights``.
        ratio: How far the stage is, 0 to 1; None when it cannot be said.
    """

    stage: str
    ratio: float | None = None


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
