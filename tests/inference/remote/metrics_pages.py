"""Metrics pages as engines write them, of several versions."""

from __future__ import annotations

from collections.abc import Sequence

VLLM = """# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 2.0
vllm:num_requests_running{engine="1",model_name="m"} 3.0
# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 1.0
# HELP vllm:num_requests_waiting_by_reason By reason.
# TYPE vllm:num_requests_waiting_by_reason gauge
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 9.0
# HELP vllm:kv_cache_usage_perc KV-cache usage. 1 means 100 percent usage.
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
# HELP vllm:prefix_cache_queries_total Tokens looked up.
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0"} 100.0
vllm:prefix_cache_queries_created{engine="0"} 1.7e+09
# HELP vllm:prefix_cache_hits_total Tokens found.
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0"} 40.0
# HELP vllm:num_preemptions_total Preemptions.
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{engine="0"} 7.0
"""
SGLANG = """# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="m",tp_rank="0"} 4.0
sglang:num_running_reqs{model_name="m",tp_rank="1"} 4.0
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{model_name="m",tp_rank="0"} 0.0
# TYPE sglang:token_usage gauge
sglang:token_usage{model_name="m",tp_rank="0"} 0.5
# TYPE sglang:prompt_tokens_total counter
sglang:prompt_tokens_total{model_name="m"} 60.0
# TYPE sglang:cached_tokens_total counter
sglang:cached_tokens_total{cache_source="device"} 20.0
sglang:cached_tokens_total{cache_source="host"} 10.0
"""
LLAMA_CPP = """# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed.
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 30
# HELP llamacpp:prompt_tokens_cached_total Number of prompt tokens reused.
# TYPE llamacpp:prompt_tokens_cached_total counter
llamacpp:prompt_tokens_cached_total 10
# HELP llamacpp:requests_processing Number of requests processing.
# TYPE llamacpp:requests_processing gauge
llamacpp:requests_processing 1
# HELP llamacpp:requests_deferred Number of requests deferred.
# TYPE llamacpp:requests_deferred gauge
llamacpp:requests_deferred 0
"""
OLDER_VLLM = """# TYPE vllm:num_requests_running gauge
vllm:num_requests_running 1.0
# TYPE vllm:gpu_cache_usage_perc gauge
vllm:gpu_cache_usage_perc 0.5
"""


def vllm_page(
    *, running: int = 1, prompt: int = 0, output: int = 0, ttfts: Sequence[int] = (0, 0, 0)
) -> str:
    """Return a page of one engine of vLLM.

    Args:
        running: Requests under way.
        prompt: Tokens of prompts since its start.
        output: Tokens generated, likewise.
        ttfts: Requests whose TTFT was up to 40 ms, up to 60 ms, and any.
    """
    first, second, whole = ttfts
    name = "vllm:time_to_first_token_seconds"
    return f"""# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="0"}} {running}
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{{engine="0"}} 0
# TYPE vllm:prompt_tokens counter
vllm:prompt_tokens_total{{engine="0"}} {prompt}
# TYPE vllm:generation_tokens counter
vllm:generation_tokens_total{{engine="0"}} {output}
# TYPE {name} histogram
{name}_bucket{{engine="0",le="0.04"}} {first}
{name}_bucket{{engine="0",le="0.06"}} {second}
{name}_bucket{{engine="0",le="+Inf"}} {whole}
{name}_count{{engine="0"}} {whole}
{name}_sum{{engine="0"}} 1.0
"""
