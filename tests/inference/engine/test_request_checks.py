"""What a user may ask for, and the sentences for what they may not."""

from __future__ import annotations

from math import inf, nan

import pytest

from inference.engine.request_checks import check_prompt_length, check_sampling
from inference.records.errors import InputError, PromptError
from inference.records.options import Sampling


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(),
        Sampling(temperature=0.7, top_k=1, top_p=1.0),
        Sampling(temperature=1e-6, top_k=10**9, top_p=0.001),
    ],
    ids=["greedy", "common", "extreme"],
)
def test_usable_sampling_passes(sampling: Sampling) -> None:
    assert check_sampling(sampling) is None


@pytest.mark.parametrize(
    ("sampling", "sentence"),
    [
        (Sampling(temperature=-0.5), "temperature is -0.5; give 0 for greedy"),
        (Sampling(temperature=nan), "temperature is nan"),
        (Sampling(temperature=inf), "temperature is inf"),
        (Sampling(temperature=1e-9), "temperature is 1e-09; give 0 for greedy, or 1e-06 and more"),
        (Sampling(top_k=0), "top-k is 0; give 1 or more"),
        (Sampling(top_p=0.0), "top-p is 0; give a number above 0 and up to 1"),
        (Sampling(top_p=1.5), "top-p is 1.5"),
        (Sampling(top_p=nan), "top-p is nan"),
    ],
)
def test_unusable_sampling_is_refused_with_the_value_and_the_remedy(
    sampling: Sampling, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        check_sampling(sampling)


@pytest.mark.parametrize("context_limit", [8, None], ids=["as long as the context", "no limit"])
def test_a_prompt_that_fits_passes(context_limit: int | None) -> None:
    assert check_prompt_length(8, 100, context_limit) is None


def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(PromptError, match="the prompt is empty"):
        check_prompt_length(0, 1, 8)


def test_a_prompt_longer_than_the_context_is_refused_with_both_numbers() -> None:
    with pytest.raises(PromptError, match="has 8,193 tokens; the model takes 8,192"):
        check_prompt_length(8193, 1, 8192)


def test_asking_for_no_token_is_refused() -> None:
    with pytest.raises(InputError, match="maximum new tokens is 0; give 1 or more"):
        check_prompt_length(4, 0, 8)
