"""The whole report on a real GPU, each check a test; run with `make gpu`.

``GPU_MODEL`` gives a model folder instead of the default model, ``GPU_OUT`` keeps the report and
the recorded runs.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from inference.bench.gpu_report import Report, ReportRequest, make_report
from inference.bench.gpu_setup import FULL
from inference.bench.gpu_speeds import Speed
from inference.commands.progress import ProgressLine
from inference.records.options import DecodeMode

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


@pytest.fixture(scope="module")
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Return the report, made once."""
    model = os.environ.get("GPU_MODEL") or str(request.getfixturevalue("default_model_folder"))
    folder = Path(os.environ.get("GPU_OUT") or tmp_path_factory.mktemp("gpu"))
    return make_report(
        ReportRequest(model=model, device="cuda:0"), FULL, folder, ProgressLine().show
    )


@pytest.mark.parametrize(
    "name",
    [
        "ids on the device are those of the CPU, float32",
        "graph steps choose the ids of eager ones, float32",
        "cache bytes are the allocator's",
        "measured roofs are within bounds of the data sheet",
        "step times sum to wall time",
        "no step time reaches into the next step",
    ],
)
def test_a_check_of_the_report_does_not_fail(report: Report, name: str) -> None:
    [check] = [check for check in report.checks if check.name == name]

    assert check.is_passed is not False, check.finding


def test_every_check_of_the_report_holds(report: Report) -> None:
    failed = {check.name: check.finding for check in report.checks if check.is_passed is False}

    assert failed == {}


def speed(report: Report, start: str) -> Speed:
    [found] = [one for one in report.speeds if one.name.startswith(start)]
    return found


def test_a_recorded_step_is_faster_than_an_eager_one(report: Report) -> None:
    graph, eager = speed(report, DecodeMode.GRAPH.value), speed(report, "eager, growing")

    assert graph.note == ""
    assert (graph.decode_tokens_per_s or 0) > (eager.decode_tokens_per_s or 0)


def test_a_recorded_step_is_launched_long_before_the_device_is_done(report: Report) -> None:
    graph = speed(report, DecodeMode.GRAPH.value)

    assert graph.host_ratio is not None
    assert graph.host_ratio < 1


def test_the_report_ends_inside_five_minutes(report: Report) -> None:
    assert report.seconds < 240
