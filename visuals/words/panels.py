"""The panels of a run by their names, with the titles that stand above them."""

from __future__ import annotations

PANEL_TITLES = {
    "tokens": "Tokens",
    "batch": "Batch",
    "mask": "Attention",
    "roofline": "Roofline",
    "latency": "Step latency",
    "weights": "Weight reuse",
    "kv": "K/V cache",
    "utilization": "Utilisation",
    "next": "Next token",
}
