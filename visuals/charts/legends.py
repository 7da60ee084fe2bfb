"""Legends of a chart that is taken away: they list what is drawn, and nothing else. No torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

CHANNELS = ("color", "fill", "shape", "strokeDash")
Spec = dict[str, Any]


def with_present_legends(spec: Spec) -> Spec:
    """Return a Vega-Lite spec with its rows whose legends have the values of the rows only.

    Legends of one channel and field are one legend, so all its layers count. A legend for which no
    row has a value stays as it is, since its values are worked out in the chart.
    """
    layers = spec.get("layer", [spec])
    present: dict[tuple[str, str], set[object]] = {}
    for layer in layers:
        for channel, encoding in _with_legend(layer):
            rows = spec.get("datasets", {}).get(_data_name(layer, spec), [])
            values = {row.get(encoding["field"]) for row in rows}
            present.setdefault((channel, encoding["field"]), set()).update(values)
    for layer in layers:
        for channel, encoding in _with_legend(layer):
            domain = encoding["scale"]["domain"]
            values = present[channel, encoding["field"]]
            shown = [value for value in domain if value in values]
            if shown and len(shown) < len(domain):
                encoding["legend"] = {**encoding.get("legend", {}), "values": shown}
    return spec


def _with_legend(layer: Spec) -> Iterator[tuple[str, Spec]]:
    """Yield the encodings that have a legend with a list of values."""
    for channel in CHANNELS:
        encoding = layer.get("encoding", {}).get(channel, {})
        has_domain = isinstance((encoding.get("scale") or {}).get("domain"), list)
        if "field" in encoding and has_domain and encoding.get("legend", {}) is not None:
            yield channel, encoding


def _data_name(layer: Spec, spec: Spec) -> str:
    return layer.get("data", spec.get("data", {})).get("name", "")
