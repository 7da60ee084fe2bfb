"""The GPU report gone through on the CPU in tiny sizes, with little more than torch installed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from inference.__main__ import main
from inference.bench.gpu_checks import (
    cache_bytes,
    roofs_in_bounds,
    same_ids,
    step_times_do_not_overlap,
)
from inference.bench.gpu_report import DATA_FILE, REPORT_FILE, RUN_FILE, SWEEP_FILE
from inference.bench.gpu_setup import Bench, load_bench
from inference.bench.gpu_sizes import DRY
from inference.records.options import DecodeMode
from inference.records.rooflines import MeasuredCeilings, SweepPoint
from inference.records.status import RunState
from inference.runs.plain_run_file import write_run_file
from inference.runs.run_file import read, to_json
from tests.visuals.traces import trace_of

ROOT = Path(__file__).resolve().parents[3]
# What a GPU machine need not have.
ABSENT = (
    "pydantic",
    "platformdirs",
    "gguf",
    "accelerate",
    "streamlit",
    "altair",
    "pandas",
    "pyarrow",
    "starlette",
    "uvicorn",
    "websockets",
    "vl_convert",
    "charset_normalizer",
)
WITHOUT = f"""
import sys
for name in {ABSENT!r}:
    sys.modules[name] = None
from inference.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def dry_run(tiny_model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return the folder that a dry run filled, and what it printed."""
    folder = tmp_path_factory.mktemp("gpu") / "report"
    command = [sys.executable, "-W", "error", "-c", WITHOUT, "gpu", "--dry", "--device", "cpu"]
    command += ["--model", str(tiny_model_folder), "--out", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


@pytest.fixture(scope="module")
def bench(tiny_model_folder: Path) -> Bench:
    """Return the tiny model ready to be checked."""
    return load_bench(str(tiny_model_folder), "cpu", "float32", DRY, lambda _stage: None)


def test_a_dry_run_needs_little_more_than_torch_and_says_that_it_is_one(
    dry_run: tuple[Path, str],
) -> None:
    folder, printed = dry_run

    assert "**A dry run: everything is tiny" in printed
    assert "| FAIL |" not in printed
    assert "| the library's generate() |" in printed
    assert "not measured: a CUDA graph needs an NVIDIA GPU, and this run is on the CPU" in printed
    assert (folder / REPORT_FILE).read_text() == printed
    assert (folder / DATA_FILE).read_text().startswith("{")


def test_the_recorded_runs_of_a_dry_run_are_run_files(dry_run: tuple[Path, str]) -> None:
    folder, _ = dry_run

    runs, sweep = read(folder / RUN_FILE), read(folder / SWEEP_FILE)

    assert [run.state for run in (*runs, *sweep)] == [RunState.DONE] * 4
    assert [run.info.decode for run in runs] == [DecodeMode.EAGER] * 2
    assert [len(run.requests) for run in sweep] == list(DRY.batches)
    assert all(run.info.ceilings is not None for run in runs)
    assert all(run.info.device_note for run in runs)


def test_a_run_file_written_with_the_standard_library_is_the_same_run(tmp_path: Path) -> None:
    trace = trace_of([b"why"], [b"be", b"\xff"])
    path = tmp_path / "run.json.gz"

    write_run_file([trace], path)

    [again] = read(path)
    assert again == trace
    assert to_json(again) == to_json(trace)


def test_the_same_model_twice_agrees_on_every_compared_token(bench: Bench) -> None:
    check = same_ids(bench, bench, DRY.compared_tokens)

    assert check.is_passed
    assert check.finding == "the first 4 of 4 tokens agree in the worse of 2 rows"


def test_bytes_that_the_allocator_does_not_give_back_fail_the_check(bench: Bench) -> None:
    held = iter([10_000_000, 0])

    check = cache_bytes(bench, lambda: next(held))

    assert check.is_passed is False
    assert "10,000,000 given back" in check.finding


def test_an_allocator_that_rounds_up_to_blocks_passes(bench: Bench) -> None:
    keys_and_values = 2 * 2 * 2 * 8 * 96 * 4  # layers, both, kv heads, head_dim, room, bytes
    held = iter([keys_and_values + 6 * 512, 0])

    assert cache_bytes(bench, lambda: next(held)).is_passed


def test_a_step_time_that_reaches_into_the_next_step_fails_the_check() -> None:
    apart = trace_of([b"why"], [b"be", b"cause", b"x"], step_time_s=0.5)
    over = trace_of([b"why"], [b"be", b"cause", b"x"], step_time_s=0.6)

    assert step_times_do_not_overlap([apart]).is_passed is True
    assert step_times_do_not_overlap([apart, over]).is_passed is False
    assert step_times_do_not_overlap([]).is_passed is None


def test_a_gpu_report_without_a_gpu_asks_for_a_dry_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["gpu", "--device", "cpu", "--out", str(tmp_path / "report")])

    assert code == 2
    assert "add --dry to go through it on the CPU" in capsys.readouterr().err
    assert not (tmp_path / "report").exists()


def measured(bench: Bench, name: str, flops_per_s: float) -> MeasuredCeilings:
    def point(best: float) -> SweepPoint:
        return SweepPoint(label="", size=1, best=best, median=best, worst=best, repeats=1)

    return MeasuredCeilings(
        device=replace(bench.loaded.device, name=name),
        dtype="bfloat16",
        machine="a test machine",
        torch_version="2",
        threads=1,
        last_cache_bytes=None,
        measured_at=datetime(2026, 1, 1, tzinfo=UTC),
        reads=(point(3e12),),
        products=(point(flops_per_s),),
    )


@pytest.mark.parametrize(
    ("name", "flops_per_s", "is_passed"),
    [
        ("a test machine", 1e12, None),
        ("NVIDIA H100 80GB HBM3", 700e12, True),
        ("NVIDIA H100 80GB HBM3", 2000e12, False),
        ("NVIDIA H100 80GB HBM3", 100e12, False),
        ("NVIDIA H100 80GB HBM3", 1.1 * 989.4e12, True),
        ("NVIDIA H100 80GB HBM3", 0.3 * 989.4e12, True),
    ],
    ids=["no data sheet", "sane", "too high", "too low", "a high clock", "a low power limit"],
)
def test_measured_roofs_are_judged_by_the_data_sheet(
    bench: Bench, name: str, flops_per_s: float, is_passed: bool | None
) -> None:
    """GeForce cards above their stated boost failed, and a T4 at its power limit did nearly."""
    check = roofs_in_bounds(measured(bench, name, flops_per_s))

    assert check.is_passed is is_passed
    assert ("25% to 115% pass, since" in check.finding) is (is_passed is not None)
