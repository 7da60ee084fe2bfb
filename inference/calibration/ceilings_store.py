"""Keeps measured roofs in the user's cache folder, one file per device, dtype, torch and threads.

A roof is measured once and reused until something it depends on changes or a fresh one is wanted.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import torch
from pydantic import TypeAdapter, ValidationError

from inference.calibration.ceilings import OnProgress, ShouldStop, machine_name, measure_ceilings
from inference.kernels.wide_products import is_widened
from inference.records.rooflines import MeasuredCeilings, SweepPoint
from inference.storage.atomic_write import replace_file
from inference.storage.folders import cache_folder


def ceilings_folder() -> Path:
    """Return where roofs are kept; ``TOKEN_BY_TOKEN_CACHE`` moves it."""
    return cache_folder("ceilings")


def saved_ceilings(
    device: torch.device, dtype: torch.dtype, folder: Path | None = None
) -> MeasuredCeilings | None:
    """Return the roofs kept for this device, dtype, torch and number of threads, if any."""
    path = _path(device, dtype, folder)
    try:
        return TypeAdapter(MeasuredCeilings).validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None  # none yet, or a file that can no longer be read: it is measured again


def save_ceilings(
    measured: MeasuredCeilings,
    device: torch.device,
    dtype: torch.dtype,
    folder: Path | None = None,
) -> bool:
    """Write roofs in one stroke; return whether they could be kept."""
    path = _path(device, dtype, folder)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, TypeAdapter(MeasuredCeilings).dump_json(measured, indent=1))
    except OSError:
        return False
    return True


def ceilings_for(
    device: torch.device,
    dtype: torch.dtype,
    on_progress: OnProgress = lambda _ratio, _text: None,
    should_stop: ShouldStop = lambda: False,
    *,
    is_fresh: bool = False,
) -> MeasuredCeilings | None:
    """Return the device's roofs, kept ones unless fresh ones are asked for; None when stopped.

    Raises:
        OutOfMemoryError: If there is no room to measure.
    """
    kept = None if is_fresh else saved_ceilings(device, dtype)
    if kept is not None:
        return kept
    measured = measure_ceilings(device, dtype, on_progress, should_stop)
    if measured is not None:
        save_ceilings(measured, device, dtype)
    return measured


def ceilings_json(measured: MeasuredCeilings) -> str:
    """Return both roofs, their spread and every size of the sweeps as JSON."""
    ceilings = measured.ceilings
    return json.dumps(
        {
            "source": ceilings.source.value,
            "flops_per_s": ceilings.flops_per_s,
            "flops_spread_ratio": measured.best_product.spread_ratio,
            "bytes_per_s": ceilings.bytes_per_s,
            "bytes_spread_ratio": measured.best_read.spread_ratio,
            "ridge_flops_per_byte": ceilings.ridge_flops_per_byte,
            "dtype": measured.dtype,
            "device": {"kind": measured.device.kind, "name": measured.device.name},
            "machine": measured.machine,
            "threads": measured.threads,
            "torch_version": measured.torch_version,
            "last_cache_bytes": measured.last_cache_bytes,
            "measured_at": measured.measured_at.isoformat(timespec="seconds"),
            "disturbed": measured.is_disturbed,
            "method": ceilings.method,
            "notes": measured.notes,
            "reads": [_point_fields(point, "bytes_per_s") for point in measured.reads],
            "products": [_point_fields(point, "flops_per_s") for point in measured.products],
        },
        indent=2,
    )


def _point_fields(point: SweepPoint, unit: str) -> dict[str, object]:
    return {
        "label": point.label,
        "size": point.size,
        f"best_{unit}": point.best,
        f"median_{unit}": point.median,
        f"worst_{unit}": point.worst,
        "spread_ratio": point.spread_ratio,
        "repeats": point.repeats,
        "disturbed": point.is_disturbed,
    }


def _path(device: torch.device, dtype: torch.dtype, folder: Path | None) -> Path:
    parts = (
        device.type,
        machine_name(device),
        str(dtype).removeprefix("torch."),
        f"torch {torch.__version__}",
        f"{torch.get_num_threads()} threads",
        # Of a version that multiplied them as they are, the roof was too low.
        *(["float32 products"] if device.type == "cpu" and is_widened(dtype) else []),
    )
    name = re.sub(r"[^0-9a-z.]+", "-", " ".join(parts).lower())
    return (folder or ceilings_folder()) / f"{name}.json"
