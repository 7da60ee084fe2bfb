"""What a number format buys and costs: speed and bytes beside how far its answers agree.

Each format is loaded, timed on one greedy run, and fed two texts token by token, through the same
decode steps that a run makes: the answer of the first format, for the divergence of its next-token
distributions, and a shipped text, for its perplexity.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp

import torch
from torch import Tensor
from torch.nn.functional import kl_div

from inference.checks.feeding import step_logits
from inference.counting.what_if import decode_cost
from inference.figures.latency import latency_summary
from inference.models.loading import LoadedModel, OnStage, load_model
from inference.models.tokenization import TextCodec
from inference.process.headless import HeadlessRunner
from inference.records.errors import InputError, TokenByTokenError
from inference.records.fidelity import FormatComparison, FormatResult
from inference.records.options import Sampling
from inference.records.run import Request, RunTrace
from inference.records.status import LoadStage, RunState

WARM_TOKENS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatOrder:
    """What is compared.

    Attributes:
        dtypes: At least one, none twice; the first is what the others are held to.
        text: Behind the perplexity; cut to ``text_tokens``.
    """

    model: str
    dtypes: tuple[str, ...]
    prompt: str
    text: str
    device: str = "auto"
    max_new_tokens: int = 64
    text_tokens: int = 256
    is_raw: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reference:
    """The first format's answer, and its next-token distributions: [position, vocab], in logs."""

    prompt_ids: tuple[int, ...]
    answer: tuple[int, ...]
    log_probs: Tensor


def compare_formats(order: FormatOrder, on_stage: OnStage) -> FormatComparison:
    """Return the formats side by side, each loaded after the one before it was let go.

    Raises:
        InputError: There is nothing to compare, or the model or the device lacks a format.
        TokenByTokenError: A model cannot be loaded, or a run failed.
    """
    if len(set(order.dtypes)) < len(order.dtypes) or not order.dtypes:
        raise InputError("name at least one number format, and each once")
    reference: _Reference | None = None
    results: list[FormatResult] = []
    name = device = ""
    text_ids: tuple[int, ...] = ()
    for dtype in order.dtypes:
        loaded = load_model(order.model, dtype=dtype, device=order.device, on_stage=on_stage)
        name, device = loaded.model_id, loaded.device.name
        codec = TextCodec.from_files(loaded.tokenizer_files)
        text_ids = codec.encode(order.text, is_raw=True)[: order.text_tokens]
        trace = _timed_run(order, loaded, codec)
        if reference is None:
            on_stage(LoadStage(stage=f"feeding the answer in {dtype}"))
            reference = _reference(loaded, trace)
        results.append(_result(loaded, (dtype, trace, text_ids), reference, on_stage))
        del loaded, trace
        gc.collect()  # hooks and kernels make cycles with a model's weights
    prompt_tokens = 0 if reference is None else len(reference.prompt_ids)
    return FormatComparison(
        model_id=name,
        device=device,
        prompt_tokens=prompt_tokens,
        text_tokens=len(text_ids),
        results=tuple(results),
    )


def _timed_run(order: FormatOrder, loaded: LoadedModel, codec: TextCodec) -> RunTrace:
    runner = HeadlessRunner(loaded, codec)
    ids = codec.encode(order.prompt, is_raw=order.is_raw)

    def run(new_tokens: int) -> RunTrace:
        request = Request(
            request_id="r0",
            prompt_text=order.prompt,
            prompt_ids=ids,
            max_new_tokens=new_tokens,
            sampling=Sampling(),
        )
        trace = runner.run([request], seed=0)
        if trace.state is not RunState.DONE:
            raise TokenByTokenError(trace.message or "the run was stopped")
        return trace

    run(min(WARM_TOKENS, order.max_new_tokens))
    return run(order.max_new_tokens)


def _answer(trace: RunTrace) -> tuple[int, ...]:
    return tuple(
        row.token_id for event in trace.events for row in event.rows if row.token_id is not None
    )


def _reference(loaded: LoadedModel, trace: RunTrace) -> _Reference:
    ids, answer = trace.requests[0].prompt_ids, _answer(trace)
    log_probs = torch.stack(list(_log_probs(loaded, ids, answer)))
    return _Reference(prompt_ids=ids, answer=answer, log_probs=log_probs)


def _result(
    loaded: LoadedModel,
    made: tuple[str, RunTrace, Sequence[int]],
    reference: _Reference,
    on_stage: OnStage,
) -> FormatResult:
    dtype, trace, text_ids = made
    if trace.requests[0].prompt_ids != reference.prompt_ids:
        raise InputError(f"{dtype}: another tokenizer; only one model's formats can be compared")
    answer = _answer(trace)
    divergences: list[float] = []
    same_choices = 0
    fed = _log_probs(loaded, reference.prompt_ids, reference.answer)
    for at, (expected, found) in enumerate(zip(reference.log_probs, fed, strict=True)):
        divergences.append(float(kl_div(found, expected, reduction="sum", log_target=True)))
        same_choices += int(expected.argmax() == found.argmax())
        on_stage(
            LoadStage(
                stage=f"feeding the answer in {dtype}", ratio=(at + 1) / len(reference.answer)
            )
        )
    on_stage(LoadStage(stage=f"feeding a text in {dtype}"))
    pairs = zip(answer, reference.answer, strict=False)
    same = next(
        (at for at, (ours, theirs) in enumerate(pairs) if ours != theirs),
        min(len(answer), len(reference.answer)),
    )
    return FormatResult(
        dtype=dtype,
        weight_bytes=decode_cost(loaded.shape, 1, 1).weight_bytes,
        latency=latency_summary(trace, "r0"),
        output_tokens=len(answer),
        same_tokens=same,
        kl_nats=sum(divergences) / len(divergences),
        same_choice_ratio=same_choices / len(divergences),
        perplexity=perplexity(loaded, text_ids),
    )


def perplexity(loaded: LoadedModel, ids: Sequence[int]) -> float:
    """Return exp of the mean negative log-probability of every token but the first.

    Raises:
        InputError: There are fewer than two tokens.
    """
    if len(ids) < 2:  # noqa: PLR2004  the first is given
        raise InputError("a perplexity takes a text of at least two tokens")
    fed = _log_probs(loaded, ids[:1], ids[1:])
    lost = [-float(row[token]) for row, token in zip(fed, ids[1:], strict=True)]
    return exp(sum(lost) / len(lost))


def _log_probs(
    loaded: LoadedModel, prompt: Sequence[int], following: Sequence[int]
) -> Iterator[Tensor]:
    """Yield the log-probabilities at each following token's place, given all before it."""
    blocks = (prompt, *([token] for token in following[:-1]))
    for row in step_logits(loaded.model, blocks):
        yield row.log_softmax(-1)
