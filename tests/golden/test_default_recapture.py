"""The default model in float32: weights captured after a run are those captured during it."""

from __future__ import annotations

import numpy as np
import pytest

from inference.engine.clock import HostClock
from inference.engine.loop import Engine, GenerationLimits
from inference.engine.recapture import recapture
from inference.engine.row_backend import TorchRowBackend
from inference.models.loading import LoadedModel
from inference.models.tokenization import TextCodec
from inference.records.attention import AttentionChoice, AttentionMap, KnownTokens
from inference.records.options import Sampling
from inference.records.run import Request

pytestmark = pytest.mark.golden

NEW_TOKENS = 12
# Source: our own measurement, 2026-11-30, two AVX2 cores: 8e-7 with this program's kernels.
WITHIN = 1e-5


@pytest.mark.parametrize("layer", [0, 15, 29])
def test_another_look_at_a_layer_gives_what_the_run_gave(loaded: LoadedModel, layer: int) -> None:
    codec = TextCodec.from_files(loaded.tokenizer_files)
    prompt = codec.encode("Why is decode slow? Answer in one sentence.", is_raw=False)
    choice = AttentionChoice(layer=layer, is_all_heads=True)
    backend = TorchRowBackend(loaded.model)
    limits = GenerationLimits(eos_ids=loaded.eos_ids, context_tokens=loaded.context_limit)
    engine = Engine(backend, HostClock(), limits)
    engine.capture(choice)
    request = Request(
        request_id="r0",
        prompt_text="",
        prompt_ids=prompt,
        max_new_tokens=NEW_TOKENS,
        sampling=Sampling(),
    )
    during: list[AttentionMap | None] = []
    ids: list[int] = []
    logprobs: list[float | None] = []
    for event in engine.generate([request], seed=0, zero_s=0.0):
        [row] = event.rows
        assert row.token_id is not None
        during.append(engine.attention)
        ids.append(row.token_id)
        logprobs.append(row.logprob)
    known = KnownTokens(
        prompt_blocks=(len(prompt),),
        ids=(*prompt, *ids[:-1]),
        output_ids=tuple(ids),
        logprobs=tuple(logprobs),
    )

    after = list(recapture(backend, known, choice))

    assert len(after) == len(during) > 1
    for one, other in zip(during, after, strict=True):
        assert one is not None
        assert one.weights is not None
        assert other.weights is not None
        assert one.weights.shape == other.weights.shape
        assert np.abs(one.weights - other.weights).max() <= WITHIN
    engine.capture(None)
