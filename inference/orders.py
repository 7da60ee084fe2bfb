"""What a user orders, turned into the requests the engine is fed. No torch."""

from __future__ import annotations

from dataclasses import dataclass

from inference.errors import InputError, PromptError
from inference.messages import LoadModel
from inference.records import Request, Sampling
from inference.requests import check_prompt_length, check_sampling
from inference.text import TextCodec

MAX_ROWS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrder:
    """One run as a user asked for it.

    Attributes:
        prompts: As typed; several run as one batch.
        is_raw: Feed the prompt as it stands instead of through the model's chat template.
        is_paused: Wait for a step or a resume before the first forward pass.
        steps_per_s: Upper bound on the pace; None for as fast as it goes.
    """

    prompts: tuple[str, ...]
    max_new_tokens: int
    sampling: Sampling
    seed: int
    is_raw: bool
    load: LoadModel
    is_paused: bool = False
    steps_per_s: float | None = None


def check_order(order: RunOrder) -> None:
    """Pass when the order can be understood, whatever the model.

    Raises:
        PromptError: A prompt is missing or empty.
        InputError: A number is out of its range.
    """
    if not order.prompts:
        msg = "no prompt was given; type one, or pick an example"
        raise PromptError(msg)
    if len(order.prompts) > MAX_ROWS:
        msg = f"{len(order.prompts)} prompts in one batch; give {MAX_ROWS} or fewer"
        raise InputError(msg)
    for position, prompt in enumerate(order.prompts, start=1):
        if not prompt.strip():
            which = (
                f"prompt {position} is empty" if len(order.prompts) > 1 else "the prompt is empty"
            )
            msg = f"{which}; type some text, or pick an example"
            raise PromptError(msg)
    if order.max_new_tokens < 1:
        msg = f"max new tokens is {order.max_new_tokens}; give 1 or more"
        raise InputError(msg)
    check_sampling(order.sampling)


def build_requests(
    order: RunOrder, codec: TextCodec, context_limit: int | None
) -> tuple[Request, ...]:
    """Return one request a prompt, in order, with the exact ids the model is fed.

    Raises:
        PromptError: A prompt does not fit the model's context, or cannot be encoded.
    """
    check_order(order)
    requests: list[Request] = []
    for position, prompt in enumerate(order.prompts):
        ids = codec.encode(prompt, is_raw=order.is_raw)
        check_prompt_length(len(ids), order.max_new_tokens, context_limit)
        requests.append(
            Request(
                request_id=f"r{position}",
                prompt_text=prompt,
                prompt_ids=ids,
                max_new_tokens=order.max_new_tokens,
                sampling=order.sampling,
            )
        )
    return tuple(requests)
