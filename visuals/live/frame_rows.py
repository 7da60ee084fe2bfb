"""The rows of all live charts that a frame's steps and readings add. No torch, no page.

Readings are not counted by the cursor: a frame brings those since the newest step that the viewer
has drawn, and the viewer adds what it lacks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from inference.records.steps import Part, Phase
from inference.records.telemetry import TelemetrySample
from visuals.charts import kv_cache, latency, next_token, roofline_rows, utilization
from visuals.charts.axes import picked
from visuals.live.frame_tokens import Drawn, Frame
from visuals.live.tables import appended, merged, replaced

_OVERLAP_S = 3.0  # readings reach the record a little later than the steps they go with
_MAX_READINGS = 60


def chart_rows(drawn: Drawn) -> Frame:
    """Return tables by the names of the charts' data."""
    tables = _reading_tables(drawn)
    if drawn.fresh:
        tables |= _step_time_tables(drawn) | _cache_tables(drawn) | _roofline_tables(drawn)
        tables |= _entropy_tables(drawn)
    return tables


def _step_time_tables(drawn: Drawn) -> Frame:
    """Return the new step times of both phases, and the ends of their axes."""
    tables: Frame = {}
    for phase in Phase:
        before = sum(event.phase is phase for event in drawn.trace.events[: drawn.begin])
        rows = latency.phase_step_rows(drawn.fresh, phase, first=before + 1)
        if rows:
            name = f"{phase.value}_step_times"
            tables[name] = appended(rows)
            tables[f"{name}_extent"] = replaced(latency.step_time_extent(drawn.events, phase))
        bounds = latency.bound_rows(drawn.fresh, drawn.trace.info, phase, first=before + 1)
        if bounds:
            tables[f"{phase.value}_step_times_bounds"] = appended(bounds)
    return tables


def _roofline_tables(drawn: Drawn) -> Frame:
    """Return the points of the new steps, and what else the rooflines show after them."""
    info = drawn.trace.info
    tables: Frame = {}
    for part in Part:
        points = roofline_rows.point_rows(drawn.fresh, info, part)
        if points:
            tables[f"roofline_{part.value}"] = appended(points)
        if points or not drawn.begin:
            ends = roofline_rows.frame_datasets(drawn.events, info, part)
            tables |= {name: replaced(rows) for name, rows in ends.items()}
    return tables


def _cache_tables(drawn: Drawn) -> Frame:
    """Return what the cache holds after the new steps, and the ends of its axes."""
    events, fresh = drawn.events, drawn.fresh
    return {
        "cache_growth": appended(kv_cache.growth_rows(events, drawn.trace.info, begin=drawn.begin)),
        "cache_layers": appended(kv_cache.layer_rows(fresh)),
        "cache_growth_extent": replaced(kv_cache.growth_extent(events)),
        "cache_layers_extent": replaced(kv_cache.layer_extent(events)),
        "tokens_per_layer": replaced(kv_cache.held_rows(events)),
        "tokens_per_layer_extent": replaced(kv_cache.held_extent(events)),
    }


def _entropy_tables(drawn: Drawn) -> Frame:
    """Return the entropy of the first request's new steps, and the ends of its axes."""
    first = drawn.trace.requests[0].request_id if drawn.trace.requests else ""
    rows = next_token.entropy_rows(drawn.fresh, first)
    if not rows:
        return {}
    return {
        "entropy_by_step": appended(rows),
        "entropy_by_step_extent": replaced(next_token.entropy_extent(drawn.events, first)),
    }


def _reading_tables(drawn: Drawn) -> Frame:
    """Return the readings that the viewer may not have."""
    samples = drawn.trace.telemetry
    if not samples:
        return {}
    first = _first_unseen(samples, drawn)
    rows = picked(utilization.reading_rows(samples, first=first), _MAX_READINGS)
    watts = picked(utilization.power_rows(samples, first=first), _MAX_READINGS)
    tables: Frame = {
        "utilization": merged(rows),
        "utilization_extent": replaced(utilization.time_extent(samples)),
    }
    if watts:
        tables["power"] = merged(watts)
        tables["power_extent"] = replaced(utilization.power_extent(samples))
    return tables


def _first_unseen(samples: Sequence[TelemetrySample], drawn: Drawn) -> int:
    """Return the index of the first reading since the newest step drawn before the frame."""
    if drawn.begin == 0:
        return 0
    newest = drawn.trace.events[drawn.begin - 1]
    since_s = newest.started_s + newest.duration_s - _OVERLAP_S
    return bisect_left(samples, since_s, key=lambda sample: sample.at_s)
