"""What the Serving page says."""

from __future__ import annotations

WHOSE = (
    "**Whose figures are shown**: those of an engine that runs elsewhere, by its own metrics page, "
    "read once a second while this page is open: requests that run and wait, how full its K/V "
    "cache is, and tokens a second of prefill and decode."
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
STARTS = (
    "First asks with requests of two tokens what the engine takes, then sends each step. Somebody "
    "may pay for the tokens."
)
NOT_ASKED = "Give an address and ask who is there first."
NO_PROMPT = "there is no prompt; upload a file with some, or make prompts of a length"
CLOSED_TAB = (
    "One load goes at a time. It goes on for two and a half minutes after the last page that shows "
    "it was closed, then it is stopped and what came is kept."
)
COUNTED_HERE = (
    "Cut from a text of this program, each from another word on. Counted with the tokenizer of the "
    "model loaded here, without a chat template; the results say what the engine counted."
)
ESTIMATED = (
    "Cut from a text of this program, each from another word on. No tokenizer is loaded here, so "
    "four characters are taken for a token; the results say what the engine counted."
)
CLOSED_LOOP = "Closed loop: the next request is sent when one has ended. One step for each number."
OPEN_LOOP = (
    "Open loop: each request has its moment, fixed beforehand and kept whatever became of the "
    "others; TTFT counts from there, so that waiting on this side is in it. One step for each "
    "number."
)
COLD = "No prefix is known to the engine then. Warm-up requests always have words of their own."
NO_LOAD = (
    "No load is kept yet. Send one under **Load**; `python -m inference load` sends larger ones."
)
FIGURES = (
    "Median / 95 % / 99 % of the measured requests that finished; the warm-up is in no figure. "
    "Goodput counts requests that kept both limits. Prefix hits are by the engine's own counters "
    "before and after, everybody's requests included."
)
TIMELINE = (
    "Each line is a request: grey while it waited on this side, blue to its first token, orange "
    "while tokens came, a white mark for each read that brought some. Pale: warm-up."
)
CURVE = "Each point is a step of the sweep, with its number; further right and lower is better."
BESIDE = "Green: decode steps of this program, by rows in the batch,"
