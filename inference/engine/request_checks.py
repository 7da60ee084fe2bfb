"""Checks of what a user asked for, each failing with one sentence that says what to do.

Called before anything is loaded or queued, by the page and the command line alike. No torch.
"""

from __future__ import annotations

from math import isfinite

from inference.records.errors import InputError, PromptError
from inference.records.options import Sampling

# Below this, dividing float32 logits may overflow and the draw is greedy anyway.
# Source: float32 ends at 3.4e38; a logit of 1e4 divided by 1e-6 is 1e10.
MIN_TEMPERATURE = 1e-6
MAX_SEED = 2**31 - 1  # what the page offers; torch would take more


def check_seed(seed: int) -> None:
    """Raise unless a random generator can start from it.

    Raises:
        InputError: It is negative or too large.
    """
    if not 0 <= seed <= MAX_SEED:
        msg = f"seed is {seed}; give a whole number from 0 to {MAX_SEED:,}"
        raise InputError(msg)


def check_sampling(sampling: Sampling) -> None:
    """Raise unless tokens can be drawn this way.

    Raises:
        InputError: A value is outside its range.
    """
    temperature, top_k, top_p = sampling.temperature, sampling.top_k, sampling.top_p
    if not isfinite(temperature) or temperature < 0:
        msg = f"temperature is {temperature:g}; give 0 for greedy, or a number above 0"
        raise InputError(msg)
    if 0 < temperature < MIN_TEMPERATURE:
        msg = f"temperature is {temperature:g}; give 0 for greedy, or {MIN_TEMPERATURE:g} and more"
        raise InputError(msg)
    if top_k is not None and top_k < 1:
        msg = f"top-k is {top_k}; give 1 or more, or leave it out to keep every token"
        raise InputError(msg)
    if top_p is not None and not 0 < top_p <= 1:
        msg = f"top-p is {top_p:g}; give a number above 0 and up to 1"
        raise InputError(msg)


def check_chunk(chunk_tokens: int | None, prompt_tokens: int | None = None) -> None:
    """Raise unless a prompt can be fed in chunks of this size.

    Args:
        chunk_tokens: None for the prompt at once.
        prompt_tokens: Of the longest prompt; None while that is unknown.

    Raises:
        InputError: A chunk holds no token.
        PromptError: It holds more than any prompt has.
    """
    if chunk_tokens is None:
        return
    if chunk_tokens < 1:
        msg = f"a prefill chunk of {chunk_tokens} tokens feeds nothing; give 1 or more, or leave it"
        msg += " out to feed the prompt at once"
        raise InputError(msg)
    if prompt_tokens is not None and chunk_tokens > prompt_tokens:
        msg = f"a prefill chunk of {chunk_tokens:,} tokens is longer than the prompt, which has "
        msg += f"{prompt_tokens:,}; give fewer, or feed the prompt at once"
        raise PromptError(msg)


def check_new_tokens(max_new_tokens: int) -> None:
    """Raise unless at least one token may be selected.

    Raises:
        InputError: No token is asked for.
    """
    if max_new_tokens < 1:
        msg = f"maximum new tokens is {max_new_tokens}; give 1 or more"
        raise InputError(msg)


def check_prompt_length(prompt_tokens: int, max_new_tokens: int, context_limit: int | None) -> None:
    """Raise unless the prompt can be fed. A generation that outgrows the context ends there.

    Args:
        prompt_tokens: Tokens the model would be fed, those of the chat template included.
        max_new_tokens: Most tokens to select.
        context_limit: Tokens the model takes; None when it names no limit.

    Raises:
        PromptError: The prompt is empty, or longer than the model takes.
        InputError: No token is asked for.
    """
    check_new_tokens(max_new_tokens)
    if prompt_tokens < 1:
        msg = "the prompt is empty; type some text"
        raise PromptError(msg)
    if context_limit is not None and prompt_tokens > context_limit:
        msg = f"prompt has {prompt_tokens:,} tokens; the model takes {context_limit:,}: shorten it"
        raise PromptError(msg)
