"""Every family against the library's own generation, a full recompute and the cache's tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
import torch
from transformers import PreTrainedModel

from inference.counting.what_if import as_stored, scale_bytes
from inference.engine.backend import TorchBackend
from inference.engine.caches import cache_options
from inference.engine.clock import HostClock
from inference.engine.loop import PLAIN, Engine, GenerationLimits, GenerationOptions
from inference.models.family_limits import chunk_obstacle
from inference.models.shapes import model_shape
from inference.records.errors import BackendError, InputError, UnsupportedModelError
from inference.records.model import LayerType, ModelShape
from inference.records.options import CacheKind, Sampling
from inference.records.run import Request
from inference.records.steps import Phase, StepEvent
from tests.families import FAMILIES, VOCAB, fresh_model, tiny_model

PROMPT = tuple(torch.randint(2, VOCAB, (11,), generator=torch.Generator().manual_seed(3)).tolist())
NEW_TOKENS = 9
ROOM = len(PROMPT) + NEW_TOKENS - 1  # the last token is never stored
NO_EOS = GenerationLimits(eos_ids=frozenset(), context_tokens=None)
# These compute parts in float32 whatever the dtype of their weights.
TOLERANCES = {
    "bamba": 1e-5,
    "deepseek_v3": 1e-5,
    "falcon_h1": 1e-5,
    "gemma2": 1e-6,
    "bloom": 1e-6,
    "mamba": 1e-5,
    "mamba2": 1e-5,
    "qwen3_next": 1e-4,
}

every_family = pytest.mark.parametrize("family", FAMILIES)
pytestmark = pytest.mark.golden


def request(
    ids: tuple[int, ...] = PROMPT, *, new_tokens: int = NEW_TOKENS, request_id: str = "r0"
) -> Request:
    return Request(
        request_id=request_id,
        prompt_text="",
        prompt_ids=ids,
        max_new_tokens=new_tokens,
        sampling=Sampling(),
    )


def steps(
    backend: TorchBackend, *requests: Request, options: GenerationOptions = PLAIN
) -> Iterator[StepEvent]:
    """Yield the steps of a run, at least one."""
    engine = Engine(backend, HostClock(), NO_EOS)
    events = 0
    for event in engine.generate(requests, seed=0, zero_s=0.0, options=options):
        events += 1
        yield event
    assert events > 0


def run(
    model: PreTrainedModel, *requests: Request, options: GenerationOptions = PLAIN
) -> list[StepEvent]:
    return list(steps(TorchBackend(model), *requests, options=options))


def tokens(events: list[StepEvent], request_id: str = "r0") -> list[int]:
    rows = [row for event in events for row in event.rows if row.request_id == request_id]
    ids = [row.token_id for row in rows if row.token_id is not None]
    assert ids, f"no token of {request_id}"
    return ids


def logprobs(events: list[StepEvent], request_id: str = "r0") -> list[float]:
    rows = [row for event in events for row in event.rows if row.request_id == request_id]
    return [row.logprob for row in rows if row.logprob is not None]


def generated(model: PreTrainedModel, **settings: object) -> list[int]:
    ids = model.generate(
        torch.tensor([PROMPT]), do_sample=False, max_new_tokens=NEW_TOKENS, **settings
    )
    return ids[0, len(PROMPT) :].tolist()


def tensors_of(layer: object) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return a dynamic cache layer's K/V and its states, found by their names alone."""
    stored = [getattr(layer, name, None) for name in ("keys", "values")]
    states = [
        state
        for name in ("conv_states", "recurrent_states")
        for state in getattr(layer, name, {}).values()
    ]
    return (
        [tensor for tensor in stored if tensor is not None],
        [tensor for tensor in states if tensor is not None],
    )


def expected_tokens(shape: ModelShape, layer: int, context_tokens: int) -> int:
    """Return how many rows a layer keeps: a window's layer needs one less than the window."""
    kind, window = shape.layer_types[layer], shape.windows_per_layer[layer]
    if kind in (LayerType.RECURRENT, LayerType.NONE):
        return 0
    return context_tokens if window is None else min(context_tokens, window - 1)


def byte_sum(rows: Sequence[int], shape: ModelShape) -> int:
    """Return the bytes of so many K/V rows in each layer."""
    sizes = shape.kv_row_bytes_per_layer
    return sum(count * size for count, size in zip(rows, sizes, strict=True))


@every_family
def test_ids_are_those_of_generate(family: str) -> None:
    model = tiny_model(family)

    assert tokens(run(model, request())) == generated(model)


@every_family
def test_bytes_and_tokens_are_those_of_the_tensors_at_every_step(family: str) -> None:
    model = tiny_model(family)
    shape = model_shape(model)
    layers = range(shape.num_hidden_layers)
    backend = TorchBackend(model)

    for event in steps(backend, request()):
        held = [tensors_of(layer) for layer in backend.batch.cache.layers]
        kv_bytes = tuple(sum(tensor.nbytes for tensor in kv) for kv, _ in held)
        states = tuple(sum(tensor.nbytes for tensor in states) for _, states in held)
        rows = tuple(expected_tokens(shape, layer, event.context_tokens) for layer in layers)

        assert event.cache.used_bytes == event.cache.allocated_bytes == sum(kv_bytes)
        assert event.cache.bytes_per_layer == event.cache.stored_bytes_per_layer == kv_bytes
        assert event.cache.state_bytes_per_layer == states
        assert event.cache.state_bytes == sum(states)
        assert event.cache.tokens_per_layer == rows
        assert kv_bytes == tuple(
            count * size for count, size in zip(rows, shape.kv_row_bytes_per_layer, strict=True)
        )


@pytest.mark.parametrize("family", ["mamba", "mamba2", "bamba", "qwen3_next", "falcon_h1", "lfm2"])
def test_states_take_the_same_bytes_at_every_step(family: str) -> None:
    sizes = {event.cache.state_bytes for event in run(tiny_model(family), request())}

    assert len(sizes) == 1
    assert sizes.pop() > 0


@every_family
def test_cached_decode_gives_the_log_probabilities_of_a_full_recompute(family: str) -> None:
    model = tiny_model(family)
    events = run(model, request())
    fed = [*PROMPT, *tokens(events)]

    with torch.inference_mode():
        expected = model(torch.tensor([fed]), use_cache=False).logits[0].log_softmax(-1)

    for event in events:
        row = event.rows[0]
        of_row = expected[row.context_tokens - 1]
        assert row.token_id == of_row.argmax().item()
        assert row.logprob == pytest.approx(
            of_row.max().item(), rel=TOLERANCES.get(family, 1e-12), abs=1e-12
        )


@every_family
def test_rows_of_unequal_length_give_what_they_give_alone(family: str) -> None:
    check_batch(tiny_model(family), TOLERANCES.get(family, 1e-12))


@pytest.mark.parametrize("family", ["llama", "gemma3", "gpt2", "phi3", "granite"])
def test_rows_of_unequal_length_give_what_they_give_alone_in_eager_attention(family: str) -> None:
    """The library's eager attention does its softmax in float32, with a mask made for float64."""
    model = fresh_model(tiny_model(family).config, torch.float64, "eager")

    check_batch(model, 1e-6)


@pytest.mark.parametrize("cache", [CacheKind.DYNAMIC, CacheKind.STATIC])
def test_a_prompt_shorter_than_its_padding_can_be_fed_in_chunks(cache: CacheKind) -> None:
    """The short row's first chunks are padding only: queries without any key."""
    options = GenerationOptions(chunk_tokens=3, cache=cache)

    check_batch(tiny_model("gemma2"), TOLERANCES["gemma2"], options)


def check_batch(
    model: PreTrainedModel, tolerance: float, options: GenerationOptions = PLAIN
) -> None:
    """Compare a batch of three prompts, padded on the left, with each of them alone."""
    prompts = (PROMPT, PROMPT[:4], PROMPT[3:10])
    batch = [
        request(ids, new_tokens=new, request_id=f"r{slot}")
        for slot, (ids, new) in enumerate(zip(prompts, (6, 8, 3), strict=True))
    ]

    events = run(model, *batch, options=options)

    for one in batch:
        alone = run(model, one)
        assert tokens(events, one.request_id) == tokens(alone, one.request_id)
        assert logprobs(events, one.request_id) == pytest.approx(
            logprobs(alone, one.request_id), rel=tolerance, abs=1e-12
        )


@every_family
@pytest.mark.parametrize("chunk_tokens", [4, 50])
def test_a_prompt_in_chunks_gives_the_tokens_of_one_at_once(family: str, chunk_tokens: int) -> None:
    model = tiny_model(family)
    options = GenerationOptions(chunk_tokens=chunk_tokens)
    if chunk_tokens < len(PROMPT) and chunk_obstacle(model):
        with pytest.raises(InputError, match="cannot be fed in chunks"):
            run(model, request(), options=options)
        return

    events = run(model, request(), options=options)

    at_once = run(model, request())
    assert tokens(events) == tokens(at_once)
    assert logprobs(events) == pytest.approx(
        logprobs(at_once), rel=TOLERANCES.get(family, 1e-12), abs=1e-12
    )


def test_each_chunk_is_a_step_and_only_the_last_selects_a_token() -> None:
    options = GenerationOptions(chunk_tokens=4)

    events = run(tiny_model("llama"), request(new_tokens=3), options=options)

    assert [event.index for event in events] == [0, 1, 2, 3, 4]
    assert [event.phase for event in events] == [Phase.PREFILL] * 3 + [Phase.DECODE] * 2
    shapes = [(event.query_tokens, event.context_tokens) for event in events]
    assert shapes == [(4, 4), (4, 8), (3, 11), (1, 12), (1, 13)]
    assert [event.rows[0].token_id is None for event in events] == [True, True, False, False, False]


def test_rows_of_unequal_length_can_be_fed_in_chunks() -> None:
    model = tiny_model("mistral")
    batch = [request(), request(PROMPT[:2], request_id="short")]

    events = run(model, *batch, options=GenerationOptions(chunk_tokens=3))

    fed = [[row.query_tokens for row in event.rows] for event in events[:4]]
    assert fed == [[3], [3], [3], [2, 2]]
    for one in batch:
        assert tokens(events, one.request_id) == tokens(run(model, one), one.request_id)


@pytest.mark.parametrize("chunk_tokens", [0, -3])
def test_a_chunk_without_a_token_is_refused(chunk_tokens: int) -> None:
    with pytest.raises(InputError, match=f"a prefill chunk of {chunk_tokens} tokens feeds nothing"):
        run(tiny_model("llama"), request(), options=GenerationOptions(chunk_tokens=chunk_tokens))


@every_family
def test_a_static_cache_gives_the_same_ids_and_reserves_its_room_at_once(family: str) -> None:
    model = tiny_model(family)
    options = GenerationOptions(cache=CacheKind.STATIC)
    reason = {option.kind: option.reason for option in cache_options(model)}[CacheKind.STATIC]
    if reason:
        with pytest.raises(InputError, match="a static cache is not available"):
            run(model, request(), options=options)
        return
    backend = TorchBackend(model)
    events: list[StepEvent] = []

    for event in steps(backend, request(), options=options):
        held = [tensors_of(layer)[0] for layer in backend.batch.cache.layers]
        assert event.cache.allocated_bytes == sum(kv.nbytes for layer in held for kv in layer)
        events.append(event)

    assert tokens(events) == tokens(run(model, request()))
    shape = model_shape(model)
    room = [
        0 if size == 0 else min(window or ROOM, ROOM)
        for size, window in zip(shape.kv_row_bytes_per_layer, shape.windows_per_layer, strict=True)
    ]
    for event in events:
        rows = tuple(min(event.context_tokens, most) for most in room)
        assert event.cache.tokens_per_layer == rows
        assert event.cache.used_bytes == byte_sum(rows, shape)
        assert event.cache.allocated_bytes == byte_sum(room, shape)
        stored = zip(rows, shape.kv_row_bytes_per_layer, strict=True)
        assert event.cache.stored_bytes_per_layer == tuple(row * size for row, size in stored)


@every_family
def test_a_quantised_cache_gives_the_ids_of_generate_with_one(family: str) -> None:
    model = tiny_model(family)
    options = GenerationOptions(cache=CacheKind.QUANTISED)
    reason = {option.kind: option.reason for option in cache_options(model)}[CacheKind.QUANTISED]
    if reason:
        with pytest.raises(InputError, match="the library quantises only where every layer"):
            run(model, request(), options=options)
        return
    backend = TorchBackend(model)
    events: list[StepEvent] = []

    for event in steps(backend, request(), options=options):
        held = [
            tensor
            for layer in backend.batch.cache.layers
            for pair in (layer._quantized_keys, layer._quantized_values)
            for tensor in pair
        ]
        assert event.cache.used_bytes == sum(tensor.nbytes for tensor in held)
        stored = as_stored(model_shape(model), CacheKind.QUANTISED).kv_row_bytes_per_layer
        assert event.cache.stored_bytes_per_layer == tuple(
            size * event.context_tokens + scale_bytes(CacheKind.QUANTISED) for size in stored
        )
        events.append(event)

    quantised = generated(model, cache_implementation="quantized", cache_config={"backend": "fp8"})
    assert tokens(events) == quantised
    dynamic_bytes = run(model, request())[-1].cache.used_bytes
    assert events[-1].cache.used_bytes < dynamic_bytes / 7  # 1 byte for 8, and a scale a tensor


def test_a_dynamic_cache_is_offered_for_every_family() -> None:
    assert len(FAMILIES) > 20
    for family in FAMILIES:
        reasons = {one.kind: one.reason for one in cache_options(tiny_model(family))}
        assert reasons[CacheKind.DYNAMIC] == ""


def test_a_model_that_reads_both_ways_is_refused() -> None:
    from transformers import BertConfig  # noqa: PLC0415  for this test only

    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    encoder = fresh_model(
        BertConfig(vocab_size=VOCAB, intermediate_size=48, **sizes), torch.float32
    )

    with pytest.raises(UnsupportedModelError, match="attends to later tokens too"):
        TorchBackend(encoder)


def test_a_failure_inside_the_model_is_one_sentence() -> None:
    backend = TorchBackend(tiny_model("gpt2"))
    backend.start()

    with pytest.raises(BackendError, match="GPT2LMHeadModel failed on this step"):
        backend.forward([[VOCAB + 5]])
