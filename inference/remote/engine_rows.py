"""A metrics page to a row for each data-parallel engine and one for all of them.

Source:
    As ``gauges``. Labels of an engine: vLLM ``engine``, SGLang ``dp_rank``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from math import inf

from inference.records.serving import Buckets, EngineReading, EngineRow, Latency
from inference.remote.gauges import (
    LLAMA_FED,
    PREEMPTIONS,
    RUNNING,
    WAITING,
    kv_used,
    prefix_tokens,
    total,
)
from inference.remote.metrics_page import Sample, samples_in

ENGINE_LABELS = ("engine", "dp_rank")
PROMPT_TOKENS = (
    "vllm:prompt_tokens_total",
    "sglang:prompt_tokens_total",
    LLAMA_FED,
    "tgi_request_input_length_sum",
)
OUTPUT_TOKENS = (
    "vllm:generation_tokens_total",
    "sglang:generation_tokens_total",
    "llamacpp:tokens_predicted_total",
    "tgi_request_generated_tokens_sum",
)
DRAFTED = (
    "vllm:spec_decode_num_draft_tokens_total",
    "llamacpp:spec_decode_num_draft_tokens_total",
)
ACCEPTED = (
    "vllm:spec_decode_num_accepted_tokens_total",
    "llamacpp:spec_decode_num_accepted_tokens_total",
)
LATENCIES: Mapping[Latency, tuple[str, ...]] = {
    Latency.TTFT: ("vllm:time_to_first_token_seconds", "sglang:time_to_first_token_seconds"),
    Latency.GAP: (
        "vllm:inter_token_latency_seconds",
        "vllm:time_per_output_token_seconds",
        "sglang:inter_token_latency_seconds",
    ),
    Latency.TPOT: (
        "vllm:request_time_per_output_token_seconds",
        "sglang:request_time_per_output_token_seconds",
        "sglang:time_per_output_token_seconds",
        "tgi_request_mean_time_per_token_duration",
    ),
    Latency.E2E: (
        "vllm:e2e_request_latency_seconds",
        "sglang:e2e_request_latency_seconds",
        "tgi_request_duration",
    ),
    Latency.QUEUE: (
        "vllm:request_queue_time_seconds",
        "sglang:queue_time_seconds",
        "tgi_request_queue_duration",
    ),
}
Samples = Mapping[str, Sequence[Sample]]


def reading_in(page: str | None, at: datetime) -> EngineReading:
    """Return what a metrics page says; a page that could not be read says nothing."""
    if page is None:
        return EngineReading(at=at, whole=None)
    samples, unreadable = samples_in(page)
    names = sorted(
        {_engine(one) for several in samples.values() for one in several} - {""},
        key=lambda name: (len(name), name),
    )
    engines = [_row(name, _of_engine(samples, name)) for name in names] if len(names) > 1 else []
    return EngineReading(
        at=at, whole=_row("", samples), engines=tuple(engines), unreadable=unreadable
    )


def _engine(sample: Sample) -> str:
    return next((sample.labels[one] for one in ENGINE_LABELS if sample.labels.get(one)), "")


def _of_engine(samples: Samples, engine: str) -> Samples:
    return {
        name: [one for one in several if _engine(one) == engine]
        for name, several in samples.items()
    }


def _row(engine: str, samples: Samples) -> EngineRow:
    asked, hits = prefix_tokens(samples)
    return EngineRow(
        engine=engine,
        running=total(samples, RUNNING),
        waiting=total(samples, WAITING),
        kv_used_ratio=kv_used(samples),
        prefix_asked_tokens=asked,
        prefix_hit_tokens=hits,
        preemptions=total(samples, PREEMPTIONS),
        prompt_tokens=total(samples, PROMPT_TOKENS),
        output_tokens=total(samples, OUTPUT_TOKENS),
        drafted_tokens=total(samples, DRAFTED),
        accepted_tokens=total(samples, ACCEPTED),
        latencies=tuple(
            buckets
            for latency, names in LATENCIES.items()
            if (buckets := _buckets(latency, samples, names)) is not None
        ),
    )


def _buckets(latency: Latency, samples: Samples, names: Sequence[str]) -> Buckets | None:
    """Return the buckets under the first name that is there, summed over the engines."""
    found = next((several for name in names if (several := samples.get(f"{name}_bucket"))), None)
    if not found:
        return None
    counts: dict[float, int] = {}
    for one in found:
        try:
            bound = float(one.labels.get("le", ""))
        except ValueError:
            return None
        counts[bound] = counts.get(bound, 0) + round(one.value)
    at_most = tuple(sorted(counts.items()))
    rises = all(before[1] <= after[1] for before, after in pairwise(at_most))
    return Buckets(latency=latency, at_most=at_most) if rises and at_most[-1][0] == inf else None
