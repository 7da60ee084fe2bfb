"""What every live panel is given, whichever run it shows: its charts' specs and its help texts."""

from __future__ import annotations

from functools import cache

from visuals.charts import (
    attention,
    kv_cache,
    latency,
    next_token,
    roofline,
    slots,
    tokens,
    utilization,
    weight_reuse,
)

_CHARTS = (
    latency.prefill_step_times,
    latency.decode_step_times,
    kv_cache.cache_growth,
    kv_cache.cache_layers,
    kv_cache.tokens_per_layer,
    utilization.utilization,
    utilization.power,
    roofline.roofline_step,
    roofline.roofline_linear,
    roofline.roofline_attention,
    next_token.entropy_by_step,
    slots.slot_timeline,
)
EXPLANATIONS = {
    "tokens": tokens.EXPLANATION,
    "mask": attention.EXPLANATION,
    "latency": latency.EXPLANATION,
    "kv": kv_cache.EXPLANATION,
    "utilization": utilization.EXPLANATION,
    "roofline": roofline.EXPLANATION,
    "weights": weight_reuse.EXPLANATION,
    "next": next_token.EXPLANATION,
    "batch": slots.EXPLANATION,
}


@cache
def chart_specs() -> dict[str, object]:
    """Return the Vega-Lite spec of every live chart by its name, without rows."""
    return {chart.__name__: chart().to_dict() for chart in _CHARTS}
