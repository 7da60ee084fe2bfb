"""Logits to token ids: greedy, or drawn after temperature, top-k and top-p, in that order.

``choose_each`` belongs to the step time and only launches work; ``read_choices`` reads it once the
device has finished. ``describe`` is for people who watch: it runs after the step time, on the
model's own distribution, before temperature and truncation.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite

import torch
from torch import Tensor

from inference.kernels.description import describe_scores, scores_library
from inference.records.errors import BackendError
from inference.records.options import Sampling
from inference.records.steps import Candidate


class Sampler:
    """One row's settings and its place in the random sequence, so each run takes a new one.

    The sequence is that of the logits' device: the same seed draws other tokens on another kind of
    device.

    Attributes:
        drawn_from: [1, vocab], the latest scores after temperature and truncation; None before
            the first draw and in greedy runs.
    """

    def __init__(self, sampling: Sampling, seed: int) -> None:
        self.sampling = sampling
        self.seed = seed
        self.drawn_from: Tensor | None = None
        self._generator: torch.Generator | None = None

    def waits(self, vocab: int, device: torch.device) -> Tensor:
        """Return [1, vocab] waiting times, exponential with mean 1, from the row's own sequence."""
        if self._generator is None:  # begun from the seed on first use
            self._generator = torch.Generator(device=device).manual_seed(self.seed)
        return torch.empty((1, vocab), device=device).exponential_(generator=self._generator)


def choose_each(logits: Tensor, samplers: Sequence[Sampler]) -> Tensor:
    """Choose one token a row, and read nothing back: on a GPU the work is only launched.

    The same seeds and logits give the same tokens, whatever other rows there are.

    Args:
        logits: [row, vocab], any float dtype.
        samplers: Each row's own.

    Returns:
        [2, row], int64, for ``read_choices``: the ids, and the bits of each row's highest score.
    """
    scores = logits.float()  # [row, vocab]; generate() chooses in float32 too
    ids = scores.argmax(dim=-1)
    best = scores.gather(-1, ids[:, None])
    for sampling, rows in _alike(samplers).items():
        if not sampling.is_greedy:
            index = torch.tensor(rows, device=logits.device)
            drawn = _drawn(scores[index], best[index], sampling, [samplers[row] for row in rows])
            ids = ids.scatter(0, index, drawn)
    return torch.stack([ids, best[:, 0].contiguous().view(torch.int32).long()])


def read_choices(chosen: Tensor) -> Tensor:
    """Return what ``choose_each`` chose, [row] on the host; a copy on the host is read at once.

    The highest of scores that hold NaN is NaN, so one value tells for the whole row. Minus infinity
    is no fault by itself: a model may rule a token out.

    Raises:
        BackendError: A row's scores hold NaN or infinity, or allow no token at all.
    """
    ids, bits = chosen.cpu()
    if all(isfinite(score) for score in bits.int().view(torch.float32).tolist()):
        return ids
    msg = (
        "the model's scores are not numbers (NaN or infinity), so no token can be chosen; "
        "try another dtype, such as float32"
    )
    raise BackendError(msg)


def _alike(samplers: Sequence[Sampler]) -> dict[Sampling, list[int]]:
    """Return the rows of each setting, so that rows with equal ones are computed together."""
    rows: dict[Sampling, list[int]] = {}
    for row, sampler in enumerate(samplers):
        rows.setdefault(sampler.sampling, []).append(row)
    return rows


def _drawn(scores: Tensor, best: Tensor, sampling: Sampling, samplers: Sequence[Sampler]) -> Tensor:
    """Draw one token a row as ``torch.multinomial`` does, without the host reads of its checks.

    A token of share p that waits for a time with mean 1/p comes first with probability p. Shares
    that are not numbers give some token here; ``read_choices`` raises.

    Args:
        scores: [row, vocab], float32.
        best: [row, 1], the highest of each row.
        sampling: Of all these rows; not greedy.
        samplers: Each row's own, for its random sequence.
    """
    truncated = truncate(scores, sampling)
    for row, sampler in enumerate(samplers):
        sampler.drawn_from = truncated[row : row + 1]
    shares = torch.where(best.isfinite(), truncated.softmax(dim=-1), 1.0)
    waits = torch.cat([sampler.waits(scores.shape[-1], scores.device) for sampler in samplers])
    return (shares / waits).argmax(dim=-1)


def truncate(scores: Tensor, sampling: Sampling) -> Tensor:
    """Return the scores after temperature, with minus infinity where a token is ruled out.

    A token as likely as the last one kept by top-k is kept too. Top-p keeps the fewest of the
    likeliest tokens whose shares, taken after top-k, reach p; one token at least.

    Args:
        scores: [rows, vocab], float32.
        sampling: Not greedy.

    Returns:
        [rows, vocab].

    Source:
        Top-k: Fan et al. 2018, section 5.4. Top-p: Holtzman et al. 2020, section 3.1.
        The order of the three, and ties, as in transformers' generate.
    """
    scores = scores / sampling.temperature
    if sampling.top_k is not None:
        kept = min(sampling.top_k, scores.shape[-1])
        last_kept = scores.topk(kept, dim=-1).values[:, -1:]  # [rows, 1]
        scores = scores.masked_fill(scores < last_kept, -inf)
    if sampling.top_p is not None and sampling.top_p < 1:
        scores = truncate_to_share(scores, sampling.top_p)
    return scores


def truncate_to_share(scores: Tensor, top_p: float) -> Tensor:
    """Return [rows, vocab] scores with minus infinity outside the top-p set of each row."""
    ascending, order = scores.sort(dim=-1)
    shares_up_to = ascending.softmax(dim=-1).cumsum(dim=-1)
    is_ruled_out = shares_up_to <= 1 - top_p
    is_ruled_out[:, -1] = False  # the likeliest token always stays
    return scores.masked_fill(is_ruled_out.scatter(-1, order, is_ruled_out), -inf)


def describe(
    logits: Tensor, chosen: Tensor, candidates: int = 5
) -> list[tuple[float, tuple[Candidate, ...]]]:
    """Return each row's log-probability of its chosen token, and its likeliest tokens.

    Both are in nats, in the model's own distribution before temperature. Candidates the model
    rules out (probability 0) are left out.

    Args:
        logits: [rows, vocab].
        chosen: [rows], token ids.
        candidates: Most candidates of a row.
    """
    seen = _seen(logits, min(candidates, logits.shape[-1]))
    return _described(logits, chosen, seen)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What the scores of each row come to.

    Attributes:
        totals: The logarithm of the sum of their exponentials.
        entropies: Of the distribution they give, in nats.
        best: The highest scores, best first.
        ids: Where they are.
    """

    totals: list[float]
    entropies: list[float]
    best: list[list[float]]
    ids: list[list[int]]


def _seen(logits: Tensor, count: int) -> _Seen:
    """Look through [rows, vocab] scores, in one pass of a kernel where there is one."""
    if logits.device.type == "cpu" and logits.dtype is torch.float32:
        library = scores_library()
        if library is not None:
            return _seen_by_kernel(logits, count, library)
    scores = logits if logits.dtype == torch.float64 else logits.float()
    totals = scores.logsumexp(dim=-1, keepdim=True)  # [rows, 1]
    logprobs = scores - totals
    # A token that is ruled out has share 0 and counts nothing; 0 times the lowest number is 0.
    finite = logprobs.clamp_min(torch.finfo(logprobs.dtype).min)
    entropies = -(logprobs.exp() * finite).sum(dim=-1)
    best, ids = scores.topk(count, dim=-1)
    return _Seen(
        totals=totals[:, 0].tolist(),
        entropies=entropies.tolist(),
        best=best.tolist(),
        ids=ids.tolist(),
    )


def _seen_by_kernel(logits: Tensor, count: int, library: ctypes.CDLL) -> _Seen:
    totals, best, ids = describe_scores(library, logits, count)
    return _Seen(
        totals=totals[:, 0].tolist(),
        entropies=totals[:, 1].tolist(),
        best=best.tolist(),
        ids=ids.tolist(),
    )


def _described(
    logits: Tensor, chosen: Tensor, seen: _Seen
) -> list[tuple[float, tuple[Candidate, ...]]]:
    chosen_scores = logits.gather(-1, chosen[:, None].to(logits.device))[:, 0].tolist()
    return [
        (
            score - total,
            tuple(
                Candidate(token_id=token_id, logprob=best - total)
                for token_id, best in zip(ids, best_row, strict=True)
                if best > -inf
            ),
        )
        for score, total, ids, best_row in zip(
            chosen_scores, seen.totals, seen.ids, seen.best, strict=True
        )
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A selected token and the distribution it came from, of one row.

    Attributes:
        logprob: Of the token, in the model's own distribution (nats).
        candidates: The likeliest tokens, best first.
        entropy_nats: Of the model's own distribution.
    """

    token_id: int
    logprob: float
    candidates: tuple[Candidate, ...]
    entropy_nats: float


def describe_choices(
    logits: Tensor, chosen: Tensor, samplers: Sequence[Sampler], candidates: int = 5
) -> list[Choice]:
    """Return what was chosen in each row and from what, read to the host; see :func:`describe`.

    Args:
        logits: [rows, vocab].
        chosen: [rows], token ids.
        samplers: The one that chose, row by row.
        candidates: Most candidates of a row.
    """
    seen = _seen(logits, min(candidates, logits.shape[-1]))
    described = _described(logits, chosen, seen)
    return [
        Choice(
            token_id=token_id,
            logprob=logprob,
            candidates=_with_sampled(best, sampler),
            entropy_nats=entropy,
        )
        for token_id, (logprob, best), entropy, sampler in zip(
            chosen.tolist(), described, seen.entropies, samplers, strict=True
        )
    ]


def _with_sampled(candidates: tuple[Candidate, ...], sampler: Sampler) -> tuple[Candidate, ...]:
    """Return the candidates with their log-probability after temperature and truncation."""
    if sampler.drawn_from is None or not candidates:
        return candidates
    scores = sampler.drawn_from[0]
    ids = torch.tensor([candidate.token_id for candidate in candidates], device=scores.device)
    logprobs = (scores[ids] - scores.logsumexp(dim=-1)).tolist()
    return tuple(
        replace(candidate, sampled_logprob=logprob if logprob > -inf else None)
        for candidate, logprob in zip(candidates, logprobs, strict=True)
    )
