"""What the Serving page says."""

from __future__ import annotations

WHOSE = (
    "**Whose figures are shown**: those of an engine that runs elsewhere, by its own metrics page, "
    "read once a second while this page is open."
)
HOW_TO_START = """Give the address of an engine and ask who is there. Each of these starts one:

- vLLM: `vllm serve MODEL --enable-per-request-metrics --enable-prompt-tokens-details`
- SGLang: `python -m sglang.launch_server --model-path MODEL --enable-metrics --enable-cache-report`
- llama.cpp: `llama-server -m MODEL.gguf --metrics`
- Ollama: `ollama serve` (no metrics page)
- transformers: `transformers serve MODEL` (no metrics page)

In a cluster: `kubectl port-forward service/NAME 8000:8000`, then `http://127.0.0.1:8000`."""
NO_METRICS = (
    "This engine has no metrics page that can be read, so that its queue, its room for K/V and its "
    "own latencies are not known from outside."
)
COUNTED_BY_ENGINE = (
    "All of them are the engine's own counts, of everybody's requests; tokens of prompts include "
    "those that its cache had, and some engines count a request's tokens only when it ends."
)
BANDS = "Blue bands: requests that were sent from here."
BUCKETS = (
    "Engines keep latencies in buckets, so that only the range is known in which a request lies. "
    "Of all requests that the engine counted in the last two minutes while this page was open."
)
