"""What runs were made with, in the words of the settings; the same on the page and in reports."""

from __future__ import annotations

from collections.abc import Sequence

from inference.records.run import Request, RunTrace
from inference.runs.subject_keys import plan_words, sampling_words
from visuals.charts.units import counted, date_text

TEMPLATE = {True: "not used", False: "used", None: "not recorded"}


def made_with(traces: Sequence[RunTrace]) -> dict[str, str]:
    """Return the name of each setting and its values over these runs, each distinct one once."""
    all_words = [_words(trace) for trace in traces]
    names = dict.fromkeys(name for words in all_words for name in words)
    values = {name: dict.fromkeys(words.get(name, "") for words in all_words) for name in names}
    joined = {name: "; ".join(filter(None, found)) for name, found in values.items()}
    return {name: text for name, text in joined.items() if text}


def _words(trace: RunTrace) -> dict[str, str]:
    info = trace.info
    return {
        "Model": info.model_id,
        "Number format": info.device.dtype,
        "Device": info.device.name,
        "Attention": info.attention,
        "Computed with": info.kernels,
        "K/V cache": info.cache.value,
        "Prefill": f"in chunks of {info.chunk_tokens}" if info.chunk_tokens else "at once",
        **_asked(trace),
        "Decode steps": info.decode.value,
        "Clock": info.clock,
        "Self-check": info.check_warning,
        "Made on": f"{date_text(info.started_at)} (UTC)",
        "Versions": ", ".join(f"{name} {version}" for name, version in info.versions),
    }


def _asked(trace: RunTrace) -> dict[str, str]:
    """Return what was asked of the requests, which are alike but for their prompts."""
    requests = trace.requests
    if not requests:
        return {}
    first = requests[0]
    together = f"{counted(len(requests), 'prompt')} in one batch{plan_words(trace.info.plan)}"
    return {
        "Decoding": _decoding(first, trace.info.seed),
        "Maximum new tokens": f"{first.max_new_tokens:,}",
        "Chat template": TEMPLATE[first.is_raw],
        "Batch": together if len(requests) > 1 else "",
        "Arrivals": _arrivals(requests),
    }


def _decoding(request: Request, seed: int) -> str:
    words = sampling_words(request.sampling)
    return words if request.sampling.is_greedy else f"sampling, {words}, seed {seed}"


def _arrivals(requests: Sequence[Request]) -> str:
    if not any(request.arrival_s for request in requests):
        return ""
    return ", ".join(f"{request.arrival_s:g} s" for request in requests)
