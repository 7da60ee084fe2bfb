"""What the probe shows, against the model's eager attention, its masks and its untouched logits."""

from __future__ import annotations

import pickle
from functools import cache

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from inference.counting import masks
from inference.engine.attention_cells import MAX_BYTES
from inference.engine.backend import TorchBackend
from inference.engine.clock import HostClock
from inference.engine.loop import PLAIN, Engine, GenerationLimits, GenerationOptions
from inference.models.shapes import model_shape
from inference.records.attention import AttentionChoice, AttentionMap
from inference.records.errors import BackendError, InputError
from inference.records.model import LayerType
from inference.records.options import CacheKind, Sampling
from inference.records.run import Request
from inference.records.steps import Phase, RowStep
from tests.doubles import ScriptedBackend, ScriptedClock
from tests.families import FAMILIES, VOCAB, fresh_model, tiny_model

TOKENS = torch.randint(2, VOCAB, (15,), generator=torch.Generator().manual_seed(3)).tolist()
PROMPT = tuple(TOKENS[:11])
NO_EOS = GenerationLimits(eos_ids=frozenset(), context_tokens=None)
WITHOUT_ATTENTION = ("mamba", "mamba2")
# Its eager attention adds the position biases twice, so the library contradicts itself there.
EAGER_DIFFERS = ("falcon_alibi",)
ATTENDING = [family for family in FAMILIES if family not in WITHOUT_ATTENTION]
golden = pytest.mark.golden


def forwards(
    model: PreTrainedModel, choice: AttentionChoice | None
) -> list[tuple[torch.Tensor, AttentionMap | None]]:
    """Return the logits and the map of a prefill of 11 tokens and of 4 steps after it."""
    backend = TorchBackend(model)
    backend.capture(choice)
    backend.start()
    blocks = [TOKENS[:11], *([token] for token in TOKENS[11:])]
    return [
        (backend.forward([block]), backend.attention(is_prompt=len(block) > 1)) for block in blocks
    ]


def seen_by(model: PreTrainedModel, layer: int) -> list[AttentionMap]:
    """Return the layer's maps, one for each forward pass: a pass without one fails the test."""
    passes = forwards(model, AttentionChoice(layer=layer, is_all_heads=True))
    maps = [captured for _, captured in passes if captured is not None]
    assert len(maps) == len(passes) == 5
    return maps


def weights_of(seen: AttentionMap) -> NDArray[np.float16 | np.float32]:
    assert seen.weights is not None, seen.reason
    return seen.weights


def attending_layers(model: PreTrainedModel) -> list[int]:
    kinds = model_shape(model).layer_types
    layers = [layer for layer, kind in enumerate(kinds) if kind is not LayerType.RECURRENT]
    assert layers, "a model without attention proves nothing about it"
    return layers


@cache
def eager_weights(family: str) -> dict[int, NDArray[np.float64]]:
    """Return [head, query, kv] of each layer that attends, of one pass over all the tokens."""
    model = tiny_model(family)
    eager = fresh_model(model.config, model.dtype, "eager")
    with torch.inference_mode():
        output = eager(torch.tensor([TOKENS]), output_attentions=True, use_cache=False)
    given = [one for one in output.attentions if one is not None]
    return {
        layer: one[0].numpy() for layer, one in zip(attending_layers(model), given, strict=True)
    }


def allowed(model: PreTrainedModel, seen: AttentionMap, *, wider: int = 0) -> masks.Mask:
    """Return [query, kv], the cells that the layer's kind lets a map have."""
    shape = model_shape(model)
    kind = shape.layer_types[seen.choice.layer]
    window = shape.windows_per_layer[seen.choice.layer]
    queries, context = seen.query_tokens, seen.query_start + seen.query_tokens
    if kind is LayerType.SLIDING:
        assert window is not None
        mask = masks.sliding_window(queries, context, window + wider)
    elif kind is LayerType.CHUNKED:
        assert window is not None
        mask = masks.chunked(queries, context, window + wider)
    else:
        mask = masks.causal(queries, context)
    assert wider or not mask[:, : seen.kv_start].any()
    return mask[:, seen.kv_start : seen.kv_start + seen.kv_tokens]


def run(
    model: PreTrainedModel,
    *prompts: tuple[int, ...],
    choice: AttentionChoice,
    options: GenerationOptions = PLAIN,
) -> list[AttentionMap]:
    engine = Engine(TorchBackend(model), HostClock(), NO_EOS)
    engine.capture(choice)
    requests = [request(ids, request_id=f"r{slot}") for slot, ids in enumerate(prompts)]
    maps = [engine.attention for _ in engine.generate(requests, seed=0, zero_s=0, options=options)]
    return [one for one in maps if one is not None]


def request(ids: tuple[int, ...], *, request_id: str = "r0", new_tokens: int = 4) -> Request:
    return Request(
        request_id=request_id,
        prompt_text="",
        prompt_ids=ids,
        max_new_tokens=new_tokens,
        sampling=Sampling(),
    )


@golden
@pytest.mark.parametrize("family", FAMILIES)
def test_capturing_changes_no_logit(family: str) -> None:
    model = tiny_model(family)
    untouched = [logits for logits, _ in forwards(model, None)]

    for layer in range(model.config.num_hidden_layers):
        captured_choice = forwards(model, AttentionChoice(layer=layer))
        for (logits, _), expected in zip(captured_choice, untouched, strict=True):
            assert torch.equal(logits, expected)


@golden
@pytest.mark.parametrize("family", [one for one in ATTENDING if one not in EAGER_DIFFERS])
def test_weights_are_those_of_eager_attention_in_prefill_and_decode(family: str) -> None:
    model = tiny_model(family)

    for layer, expected in eager_weights(family).items():
        for seen in seen_by(model, layer):
            queries = slice(seen.query_start, seen.query_start + seen.query_tokens)
            keys = slice(seen.kv_start, seen.kv_start + seen.kv_tokens)
            assert seen.heads == tuple(range(len(expected)))
            np.testing.assert_allclose(weights_of(seen), expected[:, queries, keys], atol=1e-5)


@golden
def test_weights_are_what_the_kernel_itself_gives_for_values_of_one_and_zero(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The one family without an eager reference: the kernel multiplies its weights with values."""
    model = tiny_model("falcon_alibi")
    kernel = torch.nn.functional.scaled_dot_product_attention
    given: list[torch.Tensor] = []

    def recording(query: torch.Tensor, key: torch.Tensor, *rest: object, **named: object) -> object:
        identity = torch.eye(key.shape[-2], dtype=key.dtype).expand(*key.shape[:-1], -1)
        given.append(kernel(query, key, identity, **{**named, "dropout_p": 0.0}))
        return kernel(query, key, *rest, **named)

    maps = seen_by(model, 1)
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", recording)
    forwards(model, None)

    for seen, expected in zip(maps, given[1::3], strict=True):  # of three layers the second
        np.testing.assert_allclose(weights_of(seen), expected[0].numpy(), atol=1e-6)


@golden
@pytest.mark.parametrize("family", ATTENDING)
def test_the_allowed_cells_are_exactly_those_with_a_weight(family: str) -> None:
    model = tiny_model(family)

    for layer in attending_layers(model):
        for seen in seen_by(model, layer):
            mask = allowed(model, seen)
            for weights in weights_of(seen):
                np.testing.assert_array_equal(weights > 0, mask)


@golden
@pytest.mark.parametrize("wider", [-1, 1])
@pytest.mark.parametrize("family", ["mistral", "gemma2", "gemma3", "gpt_oss"])
def test_a_window_wrong_by_one_does_not_fit_the_weights(family: str, wider: int) -> None:
    model = tiny_model(family)

    prefill = seen_by(model, 0)[0]

    mask = allowed(model, prefill, wider=wider)
    assert not np.array_equal(weights_of(prefill)[0] > 0, mask)


@golden
@pytest.mark.parametrize("family", ATTENDING)
def test_the_weights_of_a_query_sum_to_one_without_a_sink_and_to_less_with_one(family: str) -> None:
    model = tiny_model(family)

    for seen in seen_by(model, attending_layers(model)[0]):
        sums = weights_of(seen).sum(axis=-1)
        if family == "gpt_oss":
            assert (sums < 1 + 1e-5).all()
            assert sums.min() < 1 - 1e-3
        else:
            np.testing.assert_allclose(sums, 1, atol=1e-5)


@pytest.mark.parametrize("family", ["mamba", "mamba2", "lfm2", "qwen3_next"])
def test_a_recurrent_layer_says_that_it_attends_to_nothing(family: str) -> None:
    for seen in seen_by(tiny_model(family), 0):
        assert seen.weights is None
        assert "attends to no token" in seen.reason


def test_a_chosen_head_and_the_mean_are_planes_of_all_heads() -> None:
    model = tiny_model("llama")
    every = weights_of(seen_by(model, 1)[0])

    one = run(model, PROMPT, choice=AttentionChoice(layer=1, head=2))[0]
    mean = run(model, PROMPT, choice=AttentionChoice(layer=1))[0]

    assert (one.heads, mean.heads) == ((2,), ())
    np.testing.assert_array_equal(weights_of(one)[0], every[2])
    np.testing.assert_allclose(weights_of(mean)[0], every.mean(axis=0), rtol=1e-6)


@pytest.mark.parametrize(
    ("choice", "sentence"),
    [
        (AttentionChoice(layer=3), "there is no layer 3; this model has layers 0 to 2"),
        (AttentionChoice(layer=-1), "there is no layer -1"),
        (AttentionChoice(layer=0, head=4), "there is no head 4; layer 0 has heads 0 to 3"),
    ],
    ids=["layer too high", "layer negative", "head too high"],
)
def test_a_layer_or_head_out_of_range_is_refused(choice: AttentionChoice, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        TorchBackend(tiny_model("llama")).capture(choice)


def test_a_head_of_a_model_without_heads_is_refused() -> None:
    with pytest.raises(InputError, match="no attention heads to choose from"):
        TorchBackend(tiny_model("mamba")).capture(AttentionChoice(layer=0, head=0))


@golden
@pytest.mark.parametrize("family", ["llama", "mistral", "gemma3", "gpt2", "gpt_oss"])
def test_a_padded_row_shows_what_it_shows_alone(family: str) -> None:
    model = tiny_model(family)
    choice = AttentionChoice(layer=0, is_all_heads=True)
    alone = run(model, PROMPT[:4], choice=choice)

    in_batch = run(
        model, PROMPT, PROMPT[:4], choice=AttentionChoice(layer=0, is_all_heads=True, slot=1)
    )

    for one, other in zip(in_batch, alone, strict=True):
        # Padding takes a place in a window's cache, so fewer of the row's own keys may be there.
        assert one.query_start == other.query_start
        dropped = one.kv_start - other.kv_start
        assert one.kv_start + one.kv_tokens == other.kv_start + other.kv_tokens
        np.testing.assert_allclose(weights_of(one), weights_of(other)[..., dropped:], atol=1e-6)


@golden
@pytest.mark.parametrize("family", ["llama", "mistral", "gemma2", "gpt_oss", "llama4"])
def test_the_chunks_of_a_prompt_are_the_rows_of_its_triangle(family: str) -> None:
    model = tiny_model(family)
    choice = AttentionChoice(layer=0, is_all_heads=True)
    whole = weights_of(run(model, PROMPT, choice=choice)[0])

    chunks = run(model, PROMPT, choice=choice, options=GenerationOptions(chunk_tokens=4))[:3]

    assert [(one.query_start, one.query_tokens) for one in chunks] == [(0, 4), (4, 4), (8, 3)]
    assert [one.first_output_query for one in chunks] == [None, None, 10]
    for one in chunks:
        queries = slice(one.query_start, one.query_start + one.query_tokens)
        keys = slice(one.kv_start, one.kv_start + one.kv_tokens)
        np.testing.assert_allclose(weights_of(one), whole[:, queries, keys], atol=1e-6)


@golden
@pytest.mark.parametrize("family", ["llama", "mistral", "gemma2", "gpt_oss"])
def test_a_static_cache_shows_the_weights_of_a_growing_one(family: str) -> None:
    model = tiny_model(family)
    choice = AttentionChoice(layer=0, is_all_heads=True)
    static = GenerationOptions(cache=CacheKind.STATIC)

    for one, other in zip(
        run(model, PROMPT, choice=choice, options=static),
        run(model, PROMPT, choice=choice),
        strict=True,
    ):
        shared = min(one.kv_tokens, other.kv_tokens)
        ours, theirs = weights_of(one), weights_of(other)
        np.testing.assert_allclose(ours[..., -shared:], theirs[..., -shared:], atol=1e-6)


def test_the_last_row_of_prefill_is_named_as_the_one_of_the_first_output_token() -> None:
    maps = run(tiny_model("llama"), PROMPT, choice=AttentionChoice(layer=0))

    assert [one.first_output_query for one in maps] == [10, None, None, None]
    assert [one.step_index for one in maps] == [0, 1, 2, 3]
    assert [(one.query_start, one.kv_tokens) for one in maps] == [
        (0, 11),
        (11, 12),
        (12, 13),
        (13, 14),
    ]


def test_the_picture_is_formed_after_the_step_time_and_what_it_took_is_kept() -> None:
    clock = ScriptedClock([0.25, 0.5])

    class SlowToCapture(ScriptedBackend):
        def attention(self, *, is_prompt: bool) -> AttentionMap | None:
            clock.advance(2.0 if is_prompt else 1.0)
            return AttentionMap(choice=AttentionChoice(layer=0))

    engine = Engine(SlowToCapture(vocabulary=8), clock, NO_EOS)

    events = list(engine.generate([request((1, 2), new_tokens=2)], seed=0, zero_s=0.0))

    assert [event.duration_s for event in events] == [0.25, 0.5]
    assert [event.capture_s for event in events] == [2.0, 1.0]
    assert not any(event.observed for event in events)


def test_a_step_that_nobody_looks_at_took_no_time_to_capture_at() -> None:
    engine = Engine(TorchBackend(tiny_model("llama")), HostClock(), NO_EOS)

    events = list(engine.generate([request(PROMPT)], seed=0, zero_s=0.0))

    assert [event.capture_s for event in events] == [None] * 4
    assert engine.attention is None


def test_capturing_can_begin_and_end_between_two_steps() -> None:
    engine = Engine(TorchBackend(tiny_model("llama")), HostClock(), NO_EOS)
    captured: list[bool] = []

    for event in engine.generate([request(PROMPT, new_tokens=5)], seed=0, zero_s=0.0):
        captured.append(engine.attention is not None)
        choice = AttentionChoice(layer=event.index) if event.index in (0, 1) else None
        engine.capture(choice)

    assert captured == [False, True, True, False, False]


def test_another_head_of_the_layer_can_be_shown_after_the_prompt_was_fed() -> None:
    model = tiny_model("llama")
    engine = Engine(TorchBackend(model), HostClock(), NO_EOS)
    engine.capture(AttentionChoice(layer=1, head=0))
    list(engine.generate([request(PROMPT)], seed=0, zero_s=0.0))

    engine.capture(AttentionChoice(layer=1, head=3))
    [again] = engine.recall()
    [row] = engine.recall(query=7)

    every = weights_of(seen_by(model, 1)[0])
    np.testing.assert_array_equal(weights_of(again)[0], every[3])
    np.testing.assert_array_equal(weights_of(row)[0], every[3, 7:8])
    assert (row.query_start, row.query_tokens, again.first_output_query) == (7, 1, 10)


@golden
@pytest.mark.parametrize("family", ["llama", "mistral", "gemma2"])
def test_another_row_of_the_batch_can_be_shown_after_the_prompts_were_fed(family: str) -> None:
    model = tiny_model(family)
    engine = Engine(TorchBackend(model), HostClock(), NO_EOS)
    engine.capture(AttentionChoice(layer=0, head=1))
    batch = [request(PROMPT), request(PROMPT[2:6], request_id="r1")]
    list(engine.generate(batch, seed=0, zero_s=0.0))

    engine.capture(AttentionChoice(layer=0, head=1, slot=1))
    [again] = engine.recall()
    [row] = engine.recall(query=2)

    alone = run(model, PROMPT[2:6], choice=AttentionChoice(layer=0, head=1))[0]
    np.testing.assert_allclose(weights_of(again), weights_of(alone), atol=1e-6)
    np.testing.assert_allclose(weights_of(row)[0], weights_of(alone)[0, 2:3], atol=1e-6)
    assert again.first_output_query == 3


def test_of_a_layer_nobody_captured_nothing_is_recalled() -> None:
    engine = Engine(TorchBackend(tiny_model("llama")), HostClock(), NO_EOS)
    engine.capture(AttentionChoice(layer=1))
    list(engine.generate([request(PROMPT)], seed=0, zero_s=0.0))

    engine.capture(AttentionChoice(layer=2))

    assert engine.recall() == ()


def test_a_row_that_has_finished_is_not_shown() -> None:
    engine = Engine(TorchBackend(tiny_model("llama")), HostClock(), NO_EOS)
    engine.capture(AttentionChoice(layer=0, slot=1))
    batch = [request(PROMPT, new_tokens=4), request(PROMPT, request_id="short", new_tokens=2)]

    shown = [engine.attention is not None for _ in engine.generate(batch, seed=0, zero_s=0.0)]

    assert shown == [True, True, False, False]


def test_a_row_outside_the_batch_is_not_shown() -> None:
    assert run(tiny_model("llama"), PROMPT, choice=AttentionChoice(layer=0, slot=1)) == []


@golden
def test_attention_that_is_not_a_number_is_reported_and_generation_goes_on() -> None:
    """A token whose embedding is NaN spoils the chunks whose windows reach it, layer by layer."""
    model = fresh_model(tiny_model("mistral").config, torch.float32)
    embedding = model.get_input_embeddings()
    assert isinstance(embedding, torch.nn.Embedding)
    embedding.weight[VOCAB - 1] = float("nan")
    prompt = (VOCAB - 1, *TOKENS, *TOKENS)
    options = GenerationOptions(chunk_tokens=8)
    engine = Engine(TorchBackend(model), HostClock(), NO_EOS)
    engine.capture(AttentionChoice(layer=0, head=0))
    rows: list[RowStep] = []
    reasons: list[str] = []

    for event in engine.generate([request(prompt)], seed=0, zero_s=0.0, options=options):
        rows += event.rows
        assert engine.attention is not None
        reasons.append(engine.attention.reason)

    assert reasons[0].endswith("cells hold weights that are not numbers (NaN)")
    assert reasons[1:] == [""] * 6
    assert [row.token_id is None for row in rows] == [True] * 3 + [False] * 4


def test_a_map_survives_a_trip_to_another_process() -> None:
    seen = run(tiny_model("llama"), PROMPT, choice=AttentionChoice(layer=0, head=1))[0]

    back = pickle.loads(pickle.dumps(seen))

    assert back.choice == seen.choice
    np.testing.assert_array_equal(back.weights, seen.weights)
    assert not weights_of(seen).flags.writeable


def test_the_first_token_can_be_left_out() -> None:
    seen = run(tiny_model("llama"), PROMPT, choice=AttentionChoice(layer=0, head=1))[0]

    assert seen.first_token is not None
    assert seen.rest_of_first_cell is not None
    np.testing.assert_array_equal(seen.first_token, weights_of(seen)[:, :, 0])
    assert (seen.rest_of_first_cell == 0).all()


@golden
def test_a_long_prompt_is_binned_by_maximum_and_one_query_is_exact() -> None:
    model = tiny_model("gpt_neox_long")
    ids = torch.randint(2, VOCAB, (700,), generator=torch.Generator().manual_seed(5)).tolist()
    engine = Engine(TorchBackend(model), HostClock(), NO_EOS)
    engine.capture(AttentionChoice(layer=1, head=2))
    first = next(engine.generate([request(tuple(ids))], seed=0, zero_s=0.0))
    eager = fresh_model(model.config, model.dtype, "eager")
    with torch.inference_mode():
        exact = eager(torch.tensor([ids]), output_attentions=True).attentions[1][0, 2].numpy()

    seen = engine.attention
    [row] = engine.recall(query=431)

    assert first.phase is Phase.PREFILL
    assert seen is not None
    assert (seen.query_bin, seen.kv_bin) == (3, 3)
    assert seen.nbytes <= MAX_BYTES
    padded = np.full((702, 702), -1.0)
    padded[:700, :700] = exact
    cells = padded.reshape(234, 3, 234, 3).max(axis=(1, 3))
    np.testing.assert_allclose(weights_of(seen)[0], cells, atol=1e-5)
    assert seen.first_token is not None
    first_token = padded[:, 0].reshape(234, 3).max(axis=1)
    np.testing.assert_allclose(seen.first_token[0], first_token, atol=1e-5)
    assert seen.rest_of_first_cell is not None
    rest = padded[:, 1:3].reshape(234, 6).max(axis=1)
    np.testing.assert_allclose(seen.rest_of_first_cell[0], rest, atol=1e-5)
    assert (row.kv_bin, row.kv_tokens) == (1, 700)
    np.testing.assert_allclose(weights_of(row)[0, 0], exact[431], atol=1e-5)


def test_a_layer_that_fails_leaves_nothing_listening(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = TorchBackend(tiny_model("llama"))
    backend.capture(AttentionChoice(layer=1, head=0))
    backend.start()
    kernel = torch.nn.functional.scaled_dot_product_attention

    def failing(*_given: object, **_named: object) -> object:
        msg = "no kernel for this"
        raise RuntimeError(msg)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", failing)
    with pytest.raises(BackendError, match="no kernel for this"):
        backend.forward([list(PROMPT)])
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", kernel)
    torch.softmax(torch.ones(1, 1, 2, 2), dim=-1)

    assert backend._probe._listener.seen is None
    backend.start()
    backend.forward([list(PROMPT)])
    assert backend.attention(is_prompt=True) is not None
