"""The decode kernels against float64, and against the model's own code wherever they step aside."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import Cache, DynamicCache, PreTrainedModel, StaticCache
from transformers.models.llama import modeling_llama

from inference.engine.caches import cache_state
from inference.engine.clock import HostClock
from inference.engine.loop import Engine, GenerationLimits
from inference.engine.row_backend import TorchRowBackend
from inference.kernels.build import kernel_library
from inference.kernels.description import scores_library
from inference.kernels.fused_layers import FusedLayers
from inference.kernels.install import decoder_layers, install, remove
from inference.kernels.self_check import TOLERANCE
from inference.models.loading import load_model
from inference.records.attention import AttentionChoice
from inference.records.options import Sampling
from inference.records.run import Request
from inference.records.steps import StepEvent
from tests.families import VOCAB, fresh_model, tiny_model
from tests.families import kernel_model as model_of

pytestmark = pytest.mark.usefixtures("library")


class CountingLibrary:
    """The kernels, counting how often layers are run."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self.decodes = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._library, name)

    def decode_layers(self, *addresses: object) -> None:
        self.decodes += 1
        self._library.decode_layers(*addresses)


@pytest.fixture
def model() -> Iterator[PreTrainedModel]:
    made = model_of()
    assert install(made).layers == 3
    yield made
    remove(made)


def relative(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found.double() - expected.double()).norm() / expected.double().norm())


def tokens(rows: int, columns: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(columns)
    return torch.randint(2, VOCAB, (rows, columns), generator=generator)


@torch.inference_mode()
def logits(
    model: PreTrainedModel, cache: Cache, prompt: torch.Tensor, steps: int = 4, padding: int = 0
) -> torch.Tensor:
    """Feed a prompt, then one token a row; return [step, row, vocab]."""
    mask = torch.ones_like(prompt)
    mask[0, :padding] = 0
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    found: list[torch.Tensor] = []
    fed = prompt
    for step in range(steps):
        output = model(
            input_ids=fed,
            attention_mask=mask if padding else None,
            position_ids=positions,
            cache=cache,
            use_cache=True,
        )
        found.append(output.logits[:, -1])
        fed = tokens(len(prompt), 900 + step)[:, :1]
        mask = torch.cat([mask, torch.ones_like(fed)], dim=1)
        positions = mask.sum(-1, keepdim=True) - 1
    return torch.stack(found[1:])


def expected_logits(model: PreTrainedModel, prompt: torch.Tensor, padding: int = 0) -> torch.Tensor:
    """Return what the model's own code gives in float64."""
    remove(model)
    wide = fresh_model(model.config, torch.float64)
    wide.load_state_dict(model.state_dict())
    return logits(wide, DynamicCache(config=wide.config), prompt, padding=padding)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 8, 16])
@pytest.mark.parametrize(("width", "out_width"), [(64, 64), (576, 49), (1536, 7), (16, 4096)])
def test_a_product_is_that_of_float64(
    variant: ctypes.CDLL, rows: int, width: int, out_width: int
) -> None:
    generator = torch.Generator().manual_seed(width)
    weights = torch.randn(out_width, width, generator=generator)
    bias = torch.randn(out_width, generator=generator)
    given = torch.randn(rows, width, generator=generator)
    found = torch.full((rows, out_width), torch.nan)
    addresses = [one.data_ptr() for one in (weights, bias, given, found)]

    variant.linear(*addresses, rows, width, out_width)

    expected = given.double() @ weights.double().T + bias.double()
    assert relative(found, expected) < 1e-6


@pytest.mark.parametrize("kind", ["llama", "mistral", "qwen2"])
@pytest.mark.parametrize(("rows", "columns"), [(1, 3), (1, 254), (1, 515), (3, 255), (16, 30)])
def test_decode_is_that_of_float64(
    variant: ctypes.CDLL, kind: str, rows: int, columns: int
) -> None:
    model = model_of(kind)
    assert install(model, variant).layers == 3
    prompt = tokens(rows, columns)

    found = logits(model, DynamicCache(config=model.config), prompt)

    assert relative(found, expected_logits(model, prompt)) < TOLERANCE


def test_padding_on_the_left_is_not_attended_to(model: PreTrainedModel) -> None:
    prompt = tokens(3, 300)

    found = logits(model, DynamicCache(config=model.config), prompt, padding=280)

    assert relative(found, expected_logits(model, prompt, padding=280)) < TOLERANCE


def test_a_static_cache_is_written_in_place(model: PreTrainedModel) -> None:
    prompt = tokens(2, 40)
    cache = StaticCache(config=model.config, max_cache_len=64)

    found = logits(model, cache, prompt)

    assert relative(found, expected_logits(model, prompt)) < TOLERANCE
    assert [int(layer.cumulative_length) for layer in cache.layers] == [43, 43, 43]


def test_a_cache_grows_in_blocks_and_says_so(model: PreTrainedModel) -> None:
    cache = DynamicCache(config=model.config)

    logits(model, cache, tokens(1, 250), steps=3)
    logits(model, cache, tokens(1, 1), steps=2)
    state = cache_state(cache, [254])

    row_bytes = 3 * 2 * 2 * 16 * 4  # layers, keys and values, heads, head_dim, float32
    assert cache.layers[0].keys.shape[2] == 254
    assert state.used_bytes == 254 * row_bytes
    assert state.allocated_bytes == 256 * row_bytes


def test_a_step_copies_nothing_within_a_block(model: PreTrainedModel) -> None:
    cache = DynamicCache(config=model.config)
    logits(model, cache, tokens(1, 20), steps=2)
    place = cache.layers[1].keys.data_ptr()

    with torch.inference_mode():
        for _ in range(5):
            model(input_ids=tokens(1, 1), cache=cache, use_cache=True)

    assert cache.layers[1].keys.data_ptr() == place
    assert cache.layers[1].keys.shape[2] == 26


def test_a_cropped_cache_does_not_bring_back_what_was_cut(model: PreTrainedModel) -> None:
    prompt = tokens(1, 30)
    cache = DynamicCache(config=model.config)
    logits(model, cache, prompt, steps=6)
    kept = cache.layers[0].keys
    before = kept.clone()

    cache.crop(-5)
    found = logits(model, cache, tokens(1, 700)[:, :1], steps=2)
    remove(model)
    plain = DynamicCache(config=model.config)
    logits(model, plain, prompt, steps=6)
    plain.crop(-5)
    expected = logits(model, plain, tokens(1, 700)[:, :1], steps=2)

    assert relative(found, expected) < TOLERANCE
    assert torch.equal(kept, before)


def test_greedy_tokens_are_those_of_the_library() -> None:
    model = model_of()
    prompt = tokens(1, 12)
    expected = model.generate(prompt, do_sample=False, max_new_tokens=40, eos_token_id=None)
    assert install(model).layers == 3

    events = list(run(model, tuple(prompt[0].tolist())))

    assert [event.rows[0].token_id for event in events] == expected[0, 12:].tolist()


def test_a_layer_that_is_captured_runs_its_own_code() -> None:
    model = model_of()
    prompt = tuple(tokens(1, 12)[0].tolist())
    plain = [event.rows[0].token_id for event in run(model, prompt)]
    install(model)
    backend = TorchRowBackend(model)
    backend.capture(AttentionChoice(layer=1))

    engine = Engine(backend, HostClock(), GenerationLimits(eos_ids=frozenset(), context_tokens=64))
    seen: list[float] = []
    found: list[int | None] = []
    for event in engine.generate([request_of(prompt)], seed=0, zero_s=0.0):
        assert engine.attention is not None
        assert engine.attention.weights is not None
        seen.append(float(engine.attention.weights.sum(-1)[0, -1]))
        found.append(event.rows[0].token_id)

    assert found == plain
    assert seen == pytest.approx([1.0] * len(seen), abs=1e-3)


def test_hidden_states_are_those_of_every_layer(model: PreTrainedModel) -> None:
    cache, plain = DynamicCache(config=model.config), DynamicCache(config=model.config)
    prompt = tokens(1, 20)

    logits(model, cache, prompt, steps=2)
    with torch.inference_mode():
        found = model(tokens(1, 1), cache=cache, output_hidden_states=True).hidden_states
        remove(model)
        logits(model, plain, prompt, steps=2)
        expected = model(tokens(1, 1), cache=plain, output_hidden_states=True).hidden_states

    assert len(found) == len(expected) == 4
    assert max(relative(*pair) for pair in zip(found, expected, strict=True)) < TOLERANCE


def test_another_attention_implementation_is_left_alone() -> None:
    model = model_of(attention="eager")
    prompt = tokens(1, 20)
    expected = logits(model, DynamicCache(config=model.config), prompt)
    assert "its attention is not computed by sdpa" in install(model).reason
    remove(model)

    counting = CountingLibrary(kernel_library())
    fused = FusedLayers(decoder_layers(model), counting)
    found = logits(model, DynamicCache(config=model.config), prompt)
    fused.remove()

    assert counting.decodes == 0
    assert torch.equal(found, expected)


def test_calls_of_the_kernels_are_counted_where_they_run() -> None:
    """So that the test above can fail."""
    model = model_of()
    counting = CountingLibrary(kernel_library())
    fused = FusedLayers(decoder_layers(model), counting)

    logits(model, DynamicCache(config=model.config), tokens(1, 20), steps=4)
    fused.remove()

    assert counting.decodes == 3


def test_a_mask_for_each_head_is_left_to_the_model(model: PreTrainedModel) -> None:
    cache, plain = DynamicCache(config=model.config), DynamicCache(config=model.config)
    prompt = tokens(1, 20)
    mask = torch.ones((1, 6, 1, 22), dtype=torch.bool)
    mask[:, 3, :, :15] = False  # one head sees less

    logits(model, cache, prompt, steps=2)
    with torch.inference_mode():
        found = model(tokens(1, 1), attention_mask=mask, cache=cache).logits
        remove(model)
        logits(model, plain, prompt, steps=2)
        expected = model(tokens(1, 1), attention_mask=mask, cache=plain).logits

    assert relative(found, expected) < TOLERANCE


def test_a_mask_that_is_too_short_is_the_models_error(model: PreTrainedModel) -> None:
    """The kernels used to read what lay behind it in memory."""
    cache = DynamicCache(config=model.config)
    logits(model, cache, tokens(1, 20), steps=2)
    mask = torch.ones((1, 1, 1, 9), dtype=torch.bool)

    with torch.inference_mode(), pytest.raises(RuntimeError, match="size"):
        model(tokens(1, 1), attention_mask=mask, cache=cache)


def test_large_steps_run_the_models_own_code(model: PreTrainedModel) -> None:
    prompt = tokens(2, 40)

    with torch.inference_mode():
        found = model(prompt, logits_to_keep=20).logits
        remove(model)
        expected = model(prompt, logits_to_keep=20).logits

    assert torch.equal(found, expected)


def test_operations_that_are_counted_are_the_models_own(model: PreTrainedModel) -> None:
    def counted() -> int:
        cache = DynamicCache(config=model.config)
        logits(model, cache, tokens(1, 8), steps=2)
        with torch.inference_mode(), FlopCounterMode(display=False) as counter:
            model(tokens(1, 1), cache=cache, use_cache=True)
        return counter.get_total_flops()

    with_kernels = counted()
    remove(model)

    assert with_kernels == counted() > 0


def test_removing_leaves_nothing_behind(model: PreTrainedModel) -> None:
    remove(model)

    assert not any("forward" in part.__dict__ for part in model.modules())


def test_other_families_get_their_linear_layers() -> None:
    model = fresh_model(tiny_model("gpt_neox").config, torch.float32)
    prompt = tokens(2, 6)
    expected = logits(model, DynamicCache(config=model.config), prompt)

    report = install(model)
    found = logits(model, DynamicCache(config=model.config), prompt)

    assert (report.layers, report.linears) == (0, 13)
    assert "GPTNeoXLayer is not of the Llama kind" in report.text
    assert relative(found, expected) < TOLERANCE


def test_another_dtype_says_why_there_is_no_kernel() -> None:
    report = install(tiny_model("llama"))

    assert not report.is_used
    assert report.text == (
        "the library's own: the kernels are for float32, float16, bfloat16, not float64"
    )


def test_layers_that_compute_something_else_are_found_out() -> None:
    class LlamaDecoderLayer(modeling_llama.LlamaDecoderLayer):
        def forward(self, *args: object, **named: object) -> torch.Tensor:
            return super().forward(*args, **named) * 1.001

    model = model_of()
    for layer in model.model.layers:
        layer.__class__ = LlamaDecoderLayer
    prompt = tokens(1, 9)
    expected = logits(model, DynamicCache(config=model.config), prompt)

    report = install(model)
    found = logits(model, DynamicCache(config=model.config), prompt)

    assert "differ from the kernels' by 1" in report.reason
    assert report.layers == 0
    assert relative(found, expected) < TOLERANCE


@pytest.mark.parametrize("is_plain", [False, True], ids=["kernels", "plain"])
def test_a_loaded_model_has_its_description_ready(
    tiny_model_folder: Path, *, is_plain: bool
) -> None:
    """A plain model's first step used to compile for seconds, in the middle of the run."""
    scores_library.cache_clear()

    load_model(
        str(tiny_model_folder), device="cpu", on_stage=lambda _stage: None, is_plain=is_plain
    )

    assert scores_library.cache_info().currsize == 1


def request_of(prompt: tuple[int, ...]) -> Request:
    return Request(
        request_id="a",
        prompt_text="",
        prompt_ids=prompt,
        max_new_tokens=40,
        sampling=Sampling(),
    )


def run(model: PreTrainedModel, prompt: tuple[int, ...]) -> Iterator[StepEvent]:
    limits = GenerationLimits(eos_ids=frozenset(), context_tokens=64)
    engine = Engine(TorchRowBackend(model), HostClock(), limits)
    return engine.generate([request_of(prompt)], seed=0, zero_s=0.0)
