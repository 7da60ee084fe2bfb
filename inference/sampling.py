"""Logits to token ids: greedy, or drawn after temperature, top-k and top-p, in that order.

``Sampler.choose`` belongs to the lap. ``describe`` is for people who watch: it runs after the lap,
on the model's own distribution, before temperature and truncation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import torch
from torch import Tensor

from inference.errors import BackendError
from inference.records import Candidate, Sampling


class Sampler:
    """Chooses the next token of each row; the same seed and logits give the same tokens.

    A sampler keeps its place in the random sequence, so each run takes a new one. The sequence is
    that of the logits' device: the same seed draws other tokens on another kind of device.

    Attributes:
        drawn_from: [rows, vocab], the latest scores after temperature and truncation; None before
            the first draw and in greedy runs.
    """

    def __init__(self, sampling: Sampling, seed: int) -> None:
        self.sampling = sampling
        self.seed = seed
        self.drawn_from: Tensor | None = None
        self._generator: torch.Generator | None = None

    def choose(self, logits: Tensor) -> Tensor:
        """Return the token id chosen for each row.

        Args:
            logits: [rows, vocab], any float dtype.

        Returns:
            [rows], int64.

        Raises:
            BackendError: A row's logits hold NaN or infinity, or allow no token at all.
        """
        scores = logits.float()  # [rows, vocab]; generate() chooses in float32 too
        best = scores.argmax(dim=-1)
        check_best(scores.gather(-1, best[:, None]))
        if self.sampling.is_greedy:
            return best
        self.drawn_from = truncate(scores, self.sampling)
        shares = self.drawn_from.softmax(dim=-1)
        drawn = torch.multinomial(shares, num_samples=1, generator=self._random(logits.device))
        return drawn[:, 0]

    def _random(self, device: torch.device) -> torch.Generator:
        """Return the generator, begun from the seed on first use."""
        if self._generator is None:
            self._generator = torch.Generator(device=device).manual_seed(self.seed)
        return self._generator


def check_best(best_scores: Tensor) -> None:
    """Pass when every row's highest score is a number.

    The highest of scores that hold NaN is NaN, so one value tells for the whole row. Minus infinity
    is no fault by itself: a model may rule a token out.

    Raises:
        BackendError: A highest score is NaN or infinite.
    """
    if bool(best_scores.isfinite().all()):
        return
    msg = (
        "the model's scores are not numbers (NaN or infinity), so no token can be chosen; "
        "try another dtype, such as float32"
    )
    raise BackendError(msg)


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
    scores = logits if logits.dtype == torch.float64 else logits.float()
    total = scores.logsumexp(dim=-1, keepdim=True)  # [rows, 1]
    best, ids = scores.topk(min(candidates, scores.shape[-1]), dim=-1)
    chosen_logprobs = (scores.gather(-1, chosen[:, None].to(scores.device)) - total)[:, 0].tolist()
    best_rows, id_rows = (best - total).tolist(), ids.tolist()
    return [
        (
            logprob,
            tuple(
                Candidate(token_id=token_id, logprob=candidate_logprob)
                for token_id, candidate_logprob in zip(id_row, best_row, strict=True)
                if candidate_logprob > -inf
            ),
        )
        for logprob, id_row, best_row in zip(chosen_logprobs, id_rows, best_rows, strict=True)
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
    scores = logits if logits.dtype == torch.float64 else logits.float()
    logprobs = scores.log_softmax(dim=-1)
    # A token that is ruled out has share 0 and counts nothing; 0 times the lowest number is 0.
    finite = logprobs.clamp_min(torch.finfo(logprobs.dtype).min)
    entropies = (-(logprobs.exp() * finite).sum(dim=-1)).tolist()
    described = describe(logits, chosen, candidates)
    return [
        Choice(
            token_id=token_id,
            logprob=logprob,
            candidates=_with_sampled(best, sampler),
            entropy_nats=entropy,
        )
        for token_id, (logprob, best), entropy, sampler in zip(
            chosen.tolist(), described, entropies, samplers, strict=True
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
