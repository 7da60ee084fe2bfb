"""What a user asks for, turned into the requests that the engine is fed. No torch."""

from __future__ import annotations

from dataclasses import dataclass, replace

from inference.engine.request_checks import (
    check_chunk,
    check_new_tokens,
    check_prompt_length,
    check_sampling,
    check_seed,
)
from inference.engine.scheduler import MAX_ROWS, check_arrivals, check_plan
from inference.models.tokenization import TextCodec
from inference.process.messages import Generate, LoadModel
from inference.records.attention import AttentionChoice
from inference.records.errors import InputError, PromptError
from inference.records.model import LayerType, ModelShape
from inference.records.options import ONE_BATCH, BatchPlan, CacheKind, DecodeMode, Sampling
from inference.records.run import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrder:
    """One run as a user asked for it.

    Attributes:
        prompts: As typed; several run as one batch.
        is_raw: Feed the prompt as it stands instead of through the model's chat template.
        is_paused: Wait for a step or a resume before the first forward pass.
        steps_per_s: Upper bound on the pace; None for as fast as it goes.
        turns: Pairs of role and content for each prompt that is a conversation, none for one that
            is not; empty when none is.
        chunk_tokens: Most tokens of a prompt that one step feeds; None for the whole prompt.
        cache: How keys and values are stored.
        split_every: Time linear operations and attention apart in one decode step of this many;
            None for never.
        is_prefill_split: And in the prefill.
        plan: How several prompts share the device.
        decode: How decode steps are launched.
        arrivals_s: When each prompt comes in, on the run's own time; empty when all are there at
            the start.
        is_captured: Capture attention from the first step on.
        capture: Which layer and head; None for the layer nearest the middle.
    """

    prompts: tuple[str, ...]
    max_new_tokens: int
    sampling: Sampling
    seed: int
    is_raw: bool
    load: LoadModel
    is_paused: bool = False
    steps_per_s: float | None = None
    turns: tuple[tuple[tuple[str, str], ...], ...] = ()
    chunk_tokens: int | None = None
    cache: CacheKind = CacheKind.DYNAMIC
    split_every: int | None = None
    is_prefill_split: bool = True
    plan: BatchPlan = ONE_BATCH
    decode: DecodeMode = DecodeMode.EAGER
    arrivals_s: tuple[float, ...] = ()
    is_captured: bool = False
    capture: AttentionChoice | None = None


def check_order(order: RunOrder, *, is_batch: bool = True) -> None:
    """Raise unless the order makes sense, whatever the model.

    Args:
        order: What is asked for.
        is_batch: Its prompts run together, so there may not be more than a batch has rows.

    Raises:
        PromptError: A prompt is missing or empty.
        InputError: A number is out of its range.
    """
    if not order.prompts:
        msg = "no prompt was given; type one, or pick an example"
        raise PromptError(msg)
    if is_batch and len(order.prompts) > MAX_ROWS:
        msg = f"{len(order.prompts)} prompts in one batch; give {MAX_ROWS} or fewer"
        raise InputError(msg)
    for position, prompt in enumerate(order.prompts, start=1):
        if not prompt.strip():
            which = (
                f"prompt {position} is empty" if len(order.prompts) > 1 else "the prompt is empty"
            )
            msg = f"{which}; type some text, or pick an example"
            raise PromptError(msg)
    check_new_tokens(order.max_new_tokens)
    if order.split_every is not None and order.split_every < 1:
        msg = f"split every {order.split_every} steps; give 1 or more, or leave it out"
        raise InputError(msg)
    check_seed(order.seed)
    check_sampling(order.sampling)
    check_chunk(order.chunk_tokens)
    check_plan(order.plan)
    check_arrivals(order.arrivals_s)
    if len(order.arrivals_s) not in (0, len(order.prompts)):
        msg = f"{len(order.arrivals_s)} arrival times for {len(order.prompts)} prompts; give one "
        msg += "for each, or none"
        raise InputError(msg)


def build_requests(
    order: RunOrder, codec: TextCodec, context_limit: int | None, *, is_batch: bool = True
) -> tuple[Request, ...]:
    """Return one request a prompt, in order, with the exact ids the model is fed.

    Raises:
        PromptError: A prompt does not fit the model's context, cannot be encoded, or is shorter
            than the chunks it is to be fed in.
    """
    check_order(order, is_batch=is_batch)
    requests: list[Request] = []
    for position, prompt in enumerate(order.prompts):
        turns = order.turns[position] if position < len(order.turns) else ()
        ids = (
            codec.encode_turns(turns, is_raw=order.is_raw)
            if turns
            else codec.encode(prompt, is_raw=order.is_raw)
        )
        _check_length(order, position, len(ids), context_limit)
        requests.append(
            Request(
                request_id=f"r{position}",
                prompt_text=prompt,
                prompt_ids=ids,
                max_new_tokens=order.max_new_tokens,
                sampling=order.sampling,
                arrival_s=order.arrivals_s[position] if order.arrivals_s else 0.0,
                is_raw=order.is_raw,
                text_note=codec.remarks([text for _, text in turns] or [prompt], ids),
            )
        )
    check_chunk(order.chunk_tokens, max(len(request.prompt_ids) for request in requests))
    return tuple(requests)


def command_of(
    order: RunOrder, run_id: str, requests: tuple[Request, ...], capture: AttentionChoice | None
) -> Generate:
    """Return the engine's command for an order."""
    return Generate(
        run_id=run_id,
        requests=requests,
        seed=order.seed,
        is_paused=order.is_paused,
        steps_per_s=order.steps_per_s,
        chunk_tokens=order.chunk_tokens,
        cache=order.cache,
        capture=capture,
        split_every=order.split_every,
        is_prefill_split=order.is_prefill_split,
        decode=order.decode,
        plan=order.plan,
    )


def _check_length(
    order: RunOrder, position: int, prompt_tokens: int, context_limit: int | None
) -> None:
    """Raise PromptError unless the prompt can be fed; of several, say which one cannot."""
    try:
        check_prompt_length(prompt_tokens, order.max_new_tokens, context_limit)
    except PromptError as error:
        if len(order.prompts) == 1:
            raise
        msg = f"prompt {position + 1} of {len(order.prompts)}: {error}; nothing was run"
        raise PromptError(msg) from error


def capture_of(order: RunOrder, shape: ModelShape) -> AttentionChoice | None:
    """Return what to capture from the first step on; None where the order captures nothing.

    Where this model has no such layer or head, since the choice was made for another model, the
    middle layer is captured.
    """
    if not order.is_captured or shape.num_hidden_layers < 1:
        return None
    capture = order.capture
    if capture is not None and capture.layer < shape.num_hidden_layers:
        is_head_there = capture.head is None or capture.head < shape.num_attention_heads
        if is_head_there:
            return capture if capture.slot < len(order.prompts) else replace(capture, slot=0)
    return AttentionChoice(layer=middle_layer(shape))


def middle_layer(shape: ModelShape) -> int:
    """Return the layer with attention that is nearest the middle, full attention preferred."""
    middle = shape.num_hidden_layers // 2
    without = (LayerType.RECURRENT, LayerType.NONE)
    kinds = list(enumerate(shape.layer_types))
    full = [layer for layer, kind in kinds if kind is LayerType.FULL]
    attending = full or [layer for layer, kind in kinds if kind not in without]
    return min(attending, key=lambda layer: abs(layer - middle), default=middle)
