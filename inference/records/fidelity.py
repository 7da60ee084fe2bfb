"""What number formats of one model's weights buy and cost, on one prompt. No torch."""

from __future__ import annotations

from dataclasses import dataclass

from inference.records.latency import LatencySummary


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatResult:
    """One format beside the first one.

    Attributes:
        dtype: As ``--dtype`` names it.
        weight_bytes: That a decode step of one row reads, scales included, counted.
        latency: Of its own greedy run, after a warm-up.
        output_tokens: Of that run.
        same_tokens: How many of its first tokens are those of the first format's run.
        kl_nats: Mean Kullback-Leibler divergence of its next-token distribution from the first
            format's, over the positions of the first format's answer, which both are fed.
        same_choice_ratio: Share of those positions at which both find the same token likeliest.
        perplexity: Of the text that is the same for all formats.
    """

    dtype: str
    weight_bytes: int
    latency: LatencySummary
    output_tokens: int
    same_tokens: int
    kl_nats: float
    same_choice_ratio: float
    perplexity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatComparison:
    """Formats in the order in which they were asked for; the first is what all are held to.

    Attributes:
        text_tokens: Of the text behind the perplexities, the first included.
    """

    model_id: str
    device: str
    prompt_tokens: int
    text_tokens: int
    results: tuple[FormatResult, ...]
