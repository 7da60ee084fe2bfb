"""Rows that join and leave give the tokens they give alone, in float64, whatever the positions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest
import torch

from inference.engine.batch import RowPadding
from inference.engine.row_backend import TorchRowBackend
from inference.records.attention import AttentionChoice
from inference.records.errors import BackendError, InputError
from inference.records.options import Padding
from tests.families import WINDOW, tiny_model

# Learned positions, RoPE, ALiBi, a sliding window in every layer, in some, with soft-capping, and
# chunked attention.
FAMILIES = ["gpt2", "llama", "bloom", "falcon_alibi", "mistral", "gemma2", "gemma3", "llama4"]
PROMPTS = ((5, 9, 60, 77, 31, 20, 8, 44, 3), (12, 7), (33, 2, 90, 15, 6), (8, 8, 51))
NEW = 10


@cache
def alone(family: str, prompt: tuple[int, ...]) -> tuple[int, ...]:
    """Return the greedy tokens of full recomputes, without any cache."""
    model = tiny_model(family)
    ids = list(prompt)
    with torch.inference_mode():
        for _ in range(NEW):
            ids.append(int(model(torch.tensor([ids]), use_cache=False).logits[0, -1].argmax()))
    return tuple(ids[len(prompt) :])


class Driver:
    """Feeds a backend and keeps every row's tokens; rows are in the cache's order."""

    def __init__(self, family: str) -> None:
        self.backend = TorchRowBackend(tiny_model(family))
        self.backend.start()
        self.rows: list[list[int]] = []
        self.prompts: list[tuple[int, ...]] = []

    def arrive(self, prompt: tuple[int, ...], chunk: int | None = None) -> None:
        """Feed a prompt apart, in chunks with a decode step of the others between, and join."""
        step = chunk or len(prompt)
        logits = torch.empty(0)
        lane = self.backend.new_lane()
        for start in range(0, len(prompt), step):
            if start and self.rows:
                self.decode()
            logits = self.backend.forward([prompt[start : start + step]], lane=lane)
        self.backend.join(lane)
        self.rows.append([int(logits[0].argmax())])
        self.prompts.append(prompt)

    def decode(self) -> None:
        logits = self.backend.forward([row[-1:] for row in self.rows])
        for row, token in zip(self.rows, logits.argmax(-1).tolist(), strict=True):
            row.append(token)

    def leave(self, gone: Sequence[int]) -> None:
        left = [row for row in range(len(self.rows)) if row not in gone]
        self.backend.keep_rows(left)
        self.rows = [self.rows[row] for row in left]
        self.prompts = [self.prompts[row] for row in left]

    def used_and_allocated(self) -> tuple[int, int]:
        state = self.backend.cache_state(self.stored())
        return state.used_bytes, state.allocated_bytes

    def stored(self) -> list[int]:
        pairs = zip(self.prompts, self.rows, strict=True)
        return [len(prompt) + len(row) - 1 for prompt, row in pairs]

    def check(self, family: str) -> None:
        assert self.rows
        for prompt, row in zip(self.prompts, self.rows, strict=True):
            assert tuple(row) == alone(family, prompt)[: len(row)]


def padded(side: Padding) -> tuple[list[list[int]], RowPadding]:
    width = max(len(prompt) for prompt in PROMPTS)
    fill = [[0] * (width - len(prompt)) for prompt in PROMPTS]
    pairs = zip(PROMPTS, fill, strict=True)
    ids = [[*gap, *one] if side is Padding.LEFT else [*one, *gap] for one, gap in pairs]
    return ids, RowPadding(lengths=tuple(len(prompt) for prompt in PROMPTS), side=side)


@pytest.mark.golden
@pytest.mark.parametrize("side", Padding)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_padded_batch_gives_the_tokens_of_each_prompt_alone(family: str, side: Padding) -> None:
    driver = Driver(family)

    logits = driver.backend.forward(*padded(side))
    driver.rows = [[token] for token in logits.argmax(-1).tolist()]
    driver.prompts = list(PROMPTS)
    for _ in range(NEW - 1):
        driver.decode()

    driver.check(family)


@pytest.mark.golden
@pytest.mark.parametrize("chunk", [None, 2])
@pytest.mark.parametrize("family", FAMILIES)
def test_rows_that_come_and_go_give_the_tokens_they_give_alone(
    family: str, chunk: int | None
) -> None:
    driver = Driver(family)
    chunk = None if family == "llama4" else chunk

    driver.arrive(PROMPTS[1], chunk)
    driver.decode()
    driver.arrive(PROMPTS[0], chunk)  # longer than what is stored
    driver.decode()
    driver.arrive(PROMPTS[3], chunk)  # shorter
    driver.decode()
    driver.check(family)
    driver.leave([1])  # the longest row: its columns go with it
    driver.decode()
    driver.arrive(PROMPTS[2], chunk)
    driver.leave([0])
    driver.decode()
    driver.decode()

    driver.check(family)
    assert all(len(row) >= 3 for row in driver.rows)


@pytest.mark.parametrize("family", ["llama", "mistral"])
def test_used_bytes_count_the_real_tokens_of_the_rows_there_are(family: str) -> None:
    driver = Driver(family)
    config = driver.backend._model.config
    token_bytes = 2 * config.num_key_value_heads * config.head_dim * 8 * config.num_hidden_layers
    most = WINDOW - 1 if family == "mistral" else 1000

    driver.arrive(PROMPTS[1])
    driver.arrive(PROMPTS[0])

    columns = min(9, most)
    assert driver.used_and_allocated() == (token_bytes * (2 + columns), token_bytes * 2 * columns)

    driver.decode()
    driver.leave([1])

    assert driver.used_and_allocated() == (token_bytes * 3, token_bytes * 3)


@pytest.mark.parametrize("slot", range(len(PROMPTS)))
def test_prompts_padded_on_the_right_give_no_weights_then_or_later(slot: int) -> None:
    """Their columns are moved after the step, away from the keys that attention met."""
    backend = TorchRowBackend(tiny_model("llama"))
    backend.capture(AttentionChoice(layer=0, head=1, slot=slot))
    backend.start()

    backend.forward(*padded(Padding.RIGHT))
    seen = backend.attention(is_prompt=True)

    assert seen is not None
    assert seen.weights is None
    assert "pad on the left to capture" in seen.reason
    assert backend.recall() == ()
    backend.forward([[5]] * len(PROMPTS))
    decoded = backend.attention(is_prompt=False)
    assert decoded is not None
    assert decoded.weights is not None
    assert decoded.kv_tokens == len(PROMPTS[slot]) + 1


def test_an_empty_batch_holds_nothing_and_takes_the_next_row() -> None:
    driver = Driver("llama")
    driver.arrive(PROMPTS[1])

    driver.leave([0])
    assert driver.used_and_allocated() == (0, 0)
    driver.arrive(PROMPTS[2])
    driver.decode()

    driver.check("llama")


@pytest.mark.parametrize("family", ["mamba", "bamba", "lfm2"])
def test_recurrent_families_are_refused_with_a_sentence(family: str) -> None:
    backend = TorchRowBackend(tiny_model(family))
    backend.start()

    with pytest.raises(InputError, match=r"recurrent layers .* use the static policy"):
        backend.check_rows()
    with pytest.raises(InputError, match=r"recurrent layers .* pad on the left"):
        backend.forward([[1, 2], [1, 0]], RowPadding(lengths=(2, 1), side=Padding.RIGHT))


def test_the_windows_of_a_cache_are_the_same_after_a_right_padded_prompt_that_failed() -> None:
    """A window left wide would keep more tokens than the model attends to, for the whole run."""
    backend = TorchRowBackend(tiny_model("mistral"))
    backend.start()
    _, padding = padded(Padding.RIGHT)
    windows = [layer.sliding_window for layer in backend.batch.cache.layers]

    with pytest.raises(BackendError, match="failed on this step"):
        backend.forward([[10**6] * 9] * len(PROMPTS), padding)

    assert [layer.sliding_window for layer in backend.batch.cache.layers] == windows


def test_a_lane_without_a_prompt_does_not_join() -> None:
    backend = TorchRowBackend(tiny_model("llama"))
    backend.start()

    with pytest.raises(BackendError, match="no prompt was fed"):
        backend.join(backend.new_lane())


def test_attention_is_that_of_the_row_that_was_fed_while_it_is_apart_and_after_it_joined() -> None:
    """A map of the arriving row's weights stood under the first row of the batch."""
    backend = TorchRowBackend(tiny_model("llama"))
    backend.start()
    backend.forward([PROMPTS[0]])
    lane = backend.new_lane()
    backend.capture(AttentionChoice(layer=0, head=1, slot=1))

    backend.forward([PROMPTS[1]], lane=lane)
    backend.join(lane)
    arrived = backend.attention(is_prompt=True)
    backend.capture(AttentionChoice(layer=0, head=1, slot=0))
    backend.forward([[4], [5]])
    first = backend.attention(is_prompt=False)

    assert arrived is not None
    assert (arrived.query_tokens, arrived.kv_tokens) == (len(PROMPTS[1]), len(PROMPTS[1]))
    assert first is not None
    assert first.kv_tokens == len(PROMPTS[0]) + 1
