"""Prompts of a wanted length."""

from __future__ import annotations

import pytest

from inference.prompts.made_prompts import estimated_tokens, made_prompts

TEXT = "one two three four five six seven"


@pytest.mark.parametrize("tokens", [1, 3, 50])
def test_made_prompts_have_the_length_wanted(tokens: int) -> None:
    texts = made_prompts(TEXT, prompts=3, tokens=tokens, length=lambda text: len(text.split()))

    assert [len(text.split()) for text in texts] == [tokens] * 3
    assert len(set(texts)) == 3


def test_a_word_of_more_tokens_than_wanted_stays_whole() -> None:
    [text] = made_prompts(TEXT, prompts=1, tokens=2, length=len)

    assert text == "one"


def test_where_no_tokenizer_is_at_hand_four_characters_are_a_token() -> None:
    [text] = made_prompts(TEXT, prompts=1, tokens=3, length=estimated_tokens)

    assert text == "one two"
    assert estimated_tokens(text) == 2
    assert estimated_tokens("one two three") > 3
