"""The default model in 16 bits: ids beside the library's own, and bytes counted at the tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from inference.counting.costs import step_cost
from inference.engine.clock import HostClock
from inference.engine.loop import Engine, GenerationLimits
from inference.engine.row_backend import TorchRowBackend
from inference.kernels.install import library_code
from inference.models.loading import LoadedModel, load_model
from inference.models.tokenization import TextCodec
from inference.records.options import Sampling
from inference.records.run import Request

pytestmark = pytest.mark.golden

NEW_TOKENS = 24
PROMPT = "The capital of Norway is Oslo. The capital of France is"


@pytest.fixture(scope="module", params=["float16", "bfloat16"])
def half(request: pytest.FixtureRequest, default_model_folder: Path) -> LoadedModel:
    folder = str(default_model_folder)
    return load_model(folder, dtype=request.param, device="cpu", on_stage=lambda _stage: None)


def test_greedy_ids_are_those_of_generate_where_it_is_sure(half: LoadedModel) -> None:
    """Rounding differs: the library rounds after every operation, the kernels where they store."""
    prompt = TextCodec.from_files(half.tokenizer_files).encode(PROMPT, is_raw=True)
    own: Any = half.model
    with library_code(half.model), torch.inference_mode():
        theirs = own.generate(
            torch.tensor([prompt]),
            do_sample=False,
            max_new_tokens=NEW_TOKENS,
            output_scores=True,
            return_dict_in_generate=True,
        )
    expected = theirs.sequences[0, len(prompt) :].tolist()

    found = greedy_ids(half, tuple(prompt))

    pairs = list(zip(found, expected, strict=False))
    apart = next((at for at, (ours, other) in enumerate(pairs) if ours != other), None)
    if apart is not None:  # after a tie that rounding decides the two differ for good
        scores = theirs.scores[apart][0].float()
        margin = float(scores[expected[apart]] - scores[found[apart]])
        assert margin <= 4 * torch.finfo(half.model.dtype).eps * float(scores.abs().max())
    assert apart is None or apart > 2
    assert "own kernels" in half.kernels


def test_bytes_of_a_step_are_those_of_the_tensors(half: LoadedModel) -> None:
    cost = step_cost(half.shape, [(1, 100)])

    weights = sum(weight.nbytes for weight in half.model.parameters())
    assert half.shape.weight_bytes == weights == 2 * 134_515_008
    # The embedding is the head's matrix: all of it is read there, and one row of it as the token's.
    assert cost.weight_bytes == weights + 2 * 576
    assert cost.kv_write_bytes == 2 * 30 * 3 * 64 * 2  # keys and values of each layer and head


def greedy_ids(loaded: LoadedModel, prompt: tuple[int, ...]) -> list[int | None]:
    limits = GenerationLimits(eos_ids=loaded.eos_ids, context_tokens=loaded.context_limit)
    engine = Engine(TorchRowBackend(loaded.model), HostClock(), limits)
    asked = Request(
        request_id="a",
        prompt_text=PROMPT,
        prompt_ids=prompt,
        max_new_tokens=NEW_TOKENS,
        sampling=Sampling(),
    )
    return [event.rows[0].token_id for event in engine.generate([asked], seed=0, zero_s=0.0)]
