"""Prompts of a wanted length, cut from a text: each begins at another of its words."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

CHARACTERS_PER_TOKEN = 4  # of English text, roughly
STRIDE = 37  # words from one beginning to the next; prime, so that beginnings differ for long


def estimated_tokens(text: str) -> int:
    """Return about how many tokens a text has, where no tokenizer is at hand."""
    return ceil(len(text) / CHARACTERS_PER_TOKEN)


def made_prompts(
    text: str, *, prompts: int, tokens: int, length: Callable[[str], int]
) -> tuple[str, ...]:
    """Return prompts of as many whole words as have at most the tokens wanted, one word at least.

    Args:
        text: Has words; where it is too short it begins again.
        prompts: How many.
        tokens: How long each is to be.
        length: How many tokens a text has; grows with it.
    """
    words = text.split()
    return tuple(
        _cut(words, number * STRIDE % len(words), tokens, length) for number in range(prompts)
    )


def _cut(words: list[str], begin: int, tokens: int, length: Callable[[str], int]) -> str:
    low, high = 1, max(1, tokens)  # a word has a token at least
    while low < high:
        middle = (low + high + 1) // 2
        if length(_words(words, begin, middle)) <= tokens:
            low = middle
        else:
            high = middle - 1
    return _words(words, begin, low)


def _words(words: list[str], begin: int, count: int) -> str:
    return " ".join(words[(begin + index) % len(words)] for index in range(count))
