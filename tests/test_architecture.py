"""The seams hold when modules are really loaded, re-exports and lazy imports included."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TORCH = ("torch", "transformers")
DRAWING = ("streamlit", "altair", "pandas")

WITHOUT_TORCH = (
    "inference.batch_predictions",
    "inference.batch_records",
    "inference.batching",
    "inference.catalog",
    "inference.client",
    "inference.comparisons",
    "inference.costs",
    "inference.datasheets",
    "inference.device_metrics",
    "inference.errors",
    "inference.exports",
    "inference.masks",
    "inference.messages",
    "inference.metrics",
    "inference.nvml",
    "inference.orders",
    "inference.plain_json",
    "inference.perfetto",
    "inference.public_shapes",
    "inference.recording",
    "inference.records",
    "inference.replay",
    "inference.requests",
    "inference.roofline",
    "inference.shape_jobs",
    "inference.store",
    "inference.telemetry",
    "inference.text",
    "inference.traces",
    "inference.uploads",
    "visuals.batching",
    "visuals.live.frames",
    "visuals.live.groups",
    "visuals.live.hub",
    "visuals.live.keeping",
    "visuals.live.live_run",
    "visuals.live.model_slot",
    "visuals.live.registry",
    "visuals.live.route",
    "visuals.planning",
    "visuals.report",
    "app",
)
MEASURING = (
    "inference.backend",
    "inference.engine",
    "inference.headless",
    "inference.loading",
    "inference.timing",
    "inference.worker",
)


def first_that_loads(modules: tuple[str, ...], suspects: tuple[str, ...]) -> str:
    """Return the first module whose import, in order, brings in a suspect; empty when none does."""
    script = (
        "import importlib, sys\n"
        f"for module in {modules!r}:\n"
        "    importlib.import_module(module)\n"
        f"    found = [name for name in {suspects!r} if name in sys.modules]\n"
        "    if found:\n"
        "        print(module, 'loads', *found)\n"
        "        break\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return result.stdout.strip()


def test_records_arithmetic_and_pages_load_no_torch() -> None:
    assert first_that_loads(WITHOUT_TORCH, TORCH) == ""


def test_the_engine_loads_nothing_that_draws() -> None:
    assert first_that_loads(MEASURING, DRAWING) == ""


def test_a_module_that_loads_a_suspect_is_named() -> None:
    modules = ("inference.records", "inference.sampling")

    assert first_that_loads(modules, ("torch",)) == "inference.sampling loads torch"
