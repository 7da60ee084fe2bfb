"""Flash attention is never given a cache with room that holds nothing yet.

No flash kernel runs on a CPU, so a stand-in takes its place in the library's own tables: it is
given what the library gives those kernels, and fails when it meets a key that was never stored.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import flash_attention_mask

from inference.engine.backend import TorchBackend
from inference.engine.caches import cache_options
from inference.engine.cuda_graphs import StepStore
from inference.records.errors import InputError
from inference.records.options import CacheKind, DecodeMode
from tests.families import fresh_model
from tests.tiny_model import tiny_config

NAME = "flash_stand_in"
PROMPT = ((5, 9, 60, 77),)


def stand_in(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    **given: Any,  # noqa: ANN401  as the library gives them
) -> tuple[Tensor, Tensor | None]:
    """Attend to every key it is given, as a kernel without a mask does."""
    is_empty = (key == 0).all(dim=-1)
    assert not is_empty.any(), "attends to the reserved room"
    given["is_causal"] = query.shape[2] > 1
    return sdpa_attention_forward(module, query, key, value, mask, **given)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> PreTrainedModel:
    monkeypatch.setitem(AttentionInterface._global_mapping, NAME, stand_in)
    monkeypatch.setitem(AttentionMaskInterface._global_mapping, NAME, flash_attention_mask)
    made = fresh_model(tiny_config(), torch.float32)
    made.config._attn_implementation = NAME
    return made


@pytest.mark.golden
def test_a_growing_cache_gives_it_stored_keys_only_and_the_librarys_tokens(
    model: PreTrainedModel,
) -> None:
    backend = TorchBackend(model)
    backend.start()
    ids = [int(backend.forward(PROMPT).argmax())]
    for _ in range(4):
        ids.append(int(backend.forward(((ids[-1],),)).argmax()))

    model.config._attn_implementation = "sdpa"
    expected = model.generate(
        torch.tensor(PROMPT), do_sample=False, max_new_tokens=5, eos_token_id=None
    )
    assert ids == expected[0, len(PROMPT[0]) :].tolist()


def test_a_cache_with_room_is_refused_with_the_reason(model: PreTrainedModel) -> None:
    backend = TorchBackend(model)

    with pytest.raises(InputError, match="would attend to the room that is still empty"):
        backend.start(CacheKind.STATIC, 16)

    [static] = [one for one in cache_options(model) if one.kind is CacheKind.STATIC]
    assert "flash attention" in static.reason
    store = StepStore(model, "cache", obstacle=lambda _mode, _device: "")
    told = store.prepare(DecodeMode.GRAPH, 1, 16)
    assert isinstance(told, str)
    assert "flash attention" in told


def test_the_stand_in_sees_a_room(model: PreTrainedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inference.models.family_limits._attends_without_mask", lambda _m: False)
    backend = TorchBackend(model)
    backend.start(CacheKind.STATIC, 16)

    with pytest.raises(AssertionError, match="attends to the reserved room"):
        backend.forward(PROMPT)
