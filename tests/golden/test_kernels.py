"""The default model with our kernels, against the library's own greedy generation without them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import pytest
import torch
from transformers import PreTrainedModel

from inference.engine.clock import HostClock
from inference.engine.loop import Engine, GenerationLimits
from inference.engine.row_backend import TorchRowBackend
from inference.kernels.install import install, remove
from inference.models.loading import LoadedModel
from inference.models.tokenization import TextCodec
from inference.process.messages import LoadModel
from inference.process.orders import RunOrder, build_requests
from inference.records.options import Sampling
from inference.records.run import Request

pytestmark = pytest.mark.golden

NEW_TOKENS = 32
# Source: STYLE.md (d) 2, the tolerance of float32 by relative norm.
TOLERANCE = 1e-5
PROMPTS = {
    "question": "What is the capital of Norway, and what is it known for?",
    "code": "Write a Python function that returns the n-th Fibonacci number.",
    "CJK": "请用一句话解释什么是键值缓存。",
    "list": "List five things that a small language model can do on a laptop.",
    "long": "Explain this line again in other words. " * 60,
}


def requests(loaded: LoadedModel, prompts: tuple[str, ...]) -> tuple[Request, ...]:
    order = RunOrder(
        prompts=prompts,
        max_new_tokens=NEW_TOKENS,
        sampling=Sampling(),
        seed=0,
        is_raw=False,
        load=LoadModel(model="default"),
    )
    codec = TextCodec.from_files(loaded.tokenizer_files)
    return build_requests(order, codec, loaded.context_limit)


def tokens_with_kernels(loaded: LoadedModel, asked: tuple[Request, ...]) -> list[list[int]]:
    assert install(loaded.model).layers == 30
    limits = GenerationLimits(eos_ids=loaded.eos_ids, context_tokens=loaded.context_limit)
    engine = Engine(TorchRowBackend(loaded.model), HostClock(), limits)
    found: list[list[int]] = [[] for _ in asked]
    for event in engine.generate(asked, seed=0, zero_s=0.0):
        for row in event.rows:
            assert row.token_id is not None
            found[row.slot].append(row.token_id)
    return found


@pytest.fixture(scope="module", autouse=True)
def as_it_was(loaded: LoadedModel) -> Iterator[None]:
    """Put the kernels back for the next file."""
    yield
    install(loaded.model)


@pytest.fixture(scope="module")
def alone(loaded: LoadedModel) -> Callable[[str], list[int]]:
    """Give the tokens that a prompt has by itself, computed once."""

    @cache
    def of(name: str) -> list[int]:
        [found] = tokens_with_kernels(loaded, requests(loaded, (PROMPTS[name],)))
        return found

    return of


@torch.inference_mode()
def are_choices_of(model: PreTrainedModel, prompt: list[int], chosen: list[int]) -> bool:
    """True when each token is the best, or less than rounding below it, without our kernels.

    Each is judged after the tokens that were really chosen before it.
    """
    scores = model(torch.tensor([prompt + chosen[:-1]])).logits[0, len(prompt) - 1 :]
    below = scores.amax(-1) - scores.gather(-1, torch.tensor(chosen)[:, None])[:, 0]
    return bool((below <= TOLERANCE * scores.norm(dim=-1)).all())


@pytest.mark.parametrize("name", PROMPTS)
def test_greedy_tokens_are_those_of_generate_without_kernels(
    loaded: LoadedModel, alone: Callable[[str], list[int]], name: str
) -> None:
    [asked] = requests(loaded, (PROMPTS[name],))
    prompt = list(asked.prompt_ids)
    remove(loaded.model)
    expected = loaded.model.generate(
        torch.tensor([prompt]), do_sample=False, max_new_tokens=NEW_TOKENS
    )[0, len(prompt) :].tolist()

    found = alone(name)

    remove(loaded.model)
    # After a tie that rounding decides the two differ for good, so every token is judged apart.
    assert found == expected or are_choices_of(loaded.model, prompt, found)
    assert len(found) > NEW_TOKENS // 4


def test_rows_of_a_batch_choose_the_tokens_of_the_prompts_alone(
    loaded: LoadedModel, alone: Callable[[str], list[int]]
) -> None:
    asked = requests(loaded, tuple(PROMPTS.values()))

    together = tokens_with_kernels(loaded, asked)

    assert together == [alone(name) for name in PROMPTS]
