"""Which widget shows which field, and the keys of the widgets that show none. No Streamlit."""

from __future__ import annotations

WIDGETS: dict[str, dict[str, str]] = {  # group of the session -> widget key -> field
    "run": {
        "prompt": "prompt",
        "max_new_tokens": "max_new_tokens",
        "choice": "decoding",
        "temperature": "temperature",
        "top_k": "top_k",
        "top_p": "top_p",
        "seed": "seed",
        "template": "has_template",
        "model": "model",
        "dtype": "dtype",
        "device": "device",
        "attention": "attention",
        "decode": "decode",
        "split": "split",
        "chunk_tokens": "chunk_tokens",
        "cache_kind": "cache",
        "captures": "is_captured",
        "pace": "pace",
        "batch_source": "batch_source",
        "batch_count": "batch_count",
        "batch_policy": "batch_policy",
        "batch_slots": "batch_slots",
        "batch_gap": "batch_gap_s",
        "batch_arrivals": "batch_arrivals",
        "batch_chunk": "batch_chunk_tokens",
        "batch_padding": "batch_padding",
    },
    "compare": {
        "compare-kind": "kind",
        "pasted": "pasted",
        "separator": "separator",
        "other-separator": "other_separator",
        "column": "column",
        "header": "has_header",
        "chosen": "chosen",
        "together": "together",
        "repeats": "repeats",
        "run-order": "sequence",
        "warm-up": "is_warmed",
        "vary-dtypes": "dtypes",
        "vary-attentions": "attentions",
        "vary-chunks": "chunks",
        "vary-caches": "caches",
        "vary-decodes": "decodes",
        "vary-rows": "rows",
        "vary-choice": "temperatures",
        "vary-models": "models",
        "reference": "reference",
    },
    "roofline": {
        "turn-batch": "step_rows",
        "turn-fed": "step_tokens",
        "turn-context": "step_context",
        "turn-attention": "step_attention",
        "wi-model": "model",
        "wi-dtype": "dtype",
        "wi-device": "device",
        "wi-stored": "stored",
        "wi-kv": "kv_dtype",
        "wi-called": "device_name",
        "wi-rate": "matrix_tflops_per_s",
        "wi-tflops": "tflops_per_s",
        "wi-gbs": "gigabytes_per_s",
        "wi-memory": "memory_gib",
        "wi-batch": "batch",
        "wi-prompt": "prompt_tokens",
        "wi-context": "context_tokens",
    },
    "batching": {
        "sweep_batches": "rows",
        "sweep_contexts": "contexts",
        "here-bytes-context": "here_bytes",
        "recorded-bytes-context": "recorded_bytes",
        "be-dtype": "dtype",
        "be-model": "model",
        "be-device": "device",
        "be-called": "device_name",
        "be-rate": "matrix_tflops_per_s",
        "be-tflops": "tflops_per_s",
        "be-gbs": "gigabytes_per_s",
        "be-memory": "memory_gib",
        "be-contexts": "elsewhere_contexts",
        "elsewhere-bytes-context": "elsewhere_bytes",
        "br-run": "run",
        "br-ttft": "ttft_s",
        "br-tpot": "tpot_ms",
    },
    "endpoint": {
        "source": "source",
        "endpoint-address": "address",
        "endpoint-model": "model",
        "endpoint-token": "token",
    },
    "serving": {
        "load-prompts": "prompts",
        "load-count": "count",
        "load-tokens": "tokens",
        "load-kind": "kind",
        "load-concurrency": "concurrency",
        "load-rates": "rates",
        "load-requests": "requests",
        "load-new-tokens": "new_tokens",
        "load-cold": "is_cold",
        "load-shown": "load",
        "load-step": "step",
        "load-ttft": "ttft_ms",
        "load-tpot": "tpot_ms",
    },
    "runs": {"search": "search", "speed": "speed", "device-run": "device_run"},
    "playlists": {"playlist-adding": "adding", "playlist-all": "has_all_panels"},
    "steps": {"live-step": "live", "replay-step": "replay"},
    "tour": {
        "tour-prompt": "prompt",
        "tour-try-forward-pass": "forward_pass",
        "tour-try-cache": "cache",
        "tour-try-mask": "mask",
        "tour-try-weight-reuse": "weight_reuse",
        "tour-try-roofline": "roofline",
        "tour-try-batching": "batching",
        "tour-try-context": "context",
    },
}
GROUP_OF: dict[str, str] = {key: group for group, keys in WIDGETS.items() for key in keys}

# Widgets that ask for something once, or for one run: their value is read where it is acted on.
EXAMPLE, CASE = "example", "case"
RUN_FILE, PROMPT_FILES, CONFIG_FILE = "run-file", "prompt-files", "wi-config"
LOAD_FILES = "load-files"
ENDPOINT_KEY = "endpoint-key"  # nothing keeps it: it is taken into memory and cleared
ONCE = (EXAMPLE, CASE, RUN_FILE, PROMPT_FILES, CONFIG_FILE, LOAD_FILES, ENDPOINT_KEY)
TICK, NAME, IMPORT = "pick-", "name-", "import-"  # before a run's key, or a count
PER_RUN = (TICK, NAME, IMPORT)
TOUR_ANSWER, TOUR_PANEL = "tour-answer-", "tour-panel-"  # before a chapter's slug
PER_CHAPTER = (TOUR_ANSWER, TOUR_PANEL)
PLAYLIST_NAME, PLAYLIST_FILES = "pl-name-", "pl-files-"  # before a count
# Before a count and an item's place.
PLAYLIST_NOTE, PLAYLIST_SHOWN, PLAYLIST_STEP = "pl-note-", "pl-shown-", "pl-step-"
PER_PLAYLIST = (PLAYLIST_NAME, PLAYLIST_FILES, PLAYLIST_NOTE, PLAYLIST_SHOWN, PLAYLIST_STEP)
PANELS = ("panel", "recorded")  # the live panels in which a layer can be chosen


def is_mapped(key: str) -> bool:
    """Tell whether a widget with this key is known here."""
    return (
        key in GROUP_OF
        or key in ONCE
        or key in PANELS
        or key.startswith((*PER_RUN, *PER_CHAPTER, *PER_PLAYLIST))
    )
