"""The default model, end to end: our tokens against the library's own greedy generation."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer

from inference.engine.backend import TorchBackend
from inference.engine.clock import HostClock
from inference.engine.loop import Engine, GenerationLimits
from inference.kernels.install import install, remove
from inference.models.loading import LoadedModel
from inference.models.tokenization import TextCodec
from inference.process.messages import LoadModel
from inference.process.orders import RunOrder, build_requests
from inference.records.options import Sampling
from inference.records.steps import StepEvent
from visuals.pages.examples import example_prompts

pytestmark = pytest.mark.golden

NEW_TOKENS = 16
KV_BYTES_PER_TOKEN = 46_080  # 2 x 30 layers x 3 KV heads x 64 x 4 bytes
PROMPTS = {example.name.split(":")[0]: example.prompt for example in example_prompts()} | {
    "CJK": "请用一句话解释什么是键值缓存。",
}


def run(loaded: LoadedModel, prompt: str) -> tuple[tuple[int, ...], list[StepEvent]]:
    order = RunOrder(
        prompts=(prompt,),
        max_new_tokens=NEW_TOKENS,
        sampling=Sampling(),
        seed=0,
        is_raw=False,
        load=LoadModel(model="default"),
    )
    codec = TextCodec.from_files(loaded.tokenizer_files)
    [request] = build_requests(order, codec, loaded.context_limit)
    limits = GenerationLimits(eos_ids=loaded.eos_ids, context_tokens=loaded.context_limit)
    engine = Engine(TorchBackend(loaded.model), HostClock(), limits)
    return request.prompt_ids, list(engine.generate([request], seed=0, zero_s=0.0))


@pytest.mark.parametrize("name", PROMPTS)
def test_greedy_tokens_are_those_of_generate_to_the_last(
    loaded: LoadedModel, default_model_folder: Path, name: str
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(default_model_folder)
    templated = tokenizer.apply_chat_template(
        [{"role": "user", "content": PROMPTS[name]}],
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )
    remove(loaded.model)  # the library's own code, whatever kernels the run below uses
    expected = loaded.model.generate(**templated, do_sample=False, max_new_tokens=NEW_TOKENS)
    install(loaded.model)
    prompt_tokens = templated["input_ids"].shape[1]

    prompt_ids, events = run(loaded, PROMPTS[name])

    assert prompt_ids == tuple(templated["input_ids"][0].tolist())
    assert [event.rows[0].token_id for event in events] == expected[0, prompt_tokens:].tolist()
    assert [event.cache.used_bytes for event in events] == [
        KV_BYTES_PER_TOKEN * (prompt_tokens + step) for step in range(len(events))
    ]


def test_the_long_example_is_long(loaded: LoadedModel) -> None:
    codec = TextCodec.from_files(loaded.tokenizer_files)

    assert len(codec.encode(PROMPTS["Long"], is_raw=False)) >= 1000


def test_the_weights_are_those_of_the_published_shape(loaded: LoadedModel) -> None:
    assert sum(parameter.numel() for parameter in loaded.model.parameters()) == 134_515_008
    assert loaded.shape.kv_bytes_per_token == KV_BYTES_PER_TOKEN
    assert loaded.model.dtype is torch.float32
