"""The whole report on a real GPU, each check a test; run with `make gpu`.

``GPU_MODEL`` gives a model folder instead of the default model, ``GPU_OUT`` keeps the report and
the recorded runs.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from inference.bench.gpu_plan import FAST_STEP_S
from inference.bench.gpu_report import make_report
from inference.bench.gpu_report_text import Report, ReportRequest
from inference.bench.gpu_sizes import FULL
from inference.bench.gpu_speeds import Speed
from inference.commands.progress import ProgressLine
from inference.records.options import DecodeMode

# Ids in float32, of graphs in two dtypes, bytes, roofs, and the two checks of timings.
LEAST_CHECKS = 7
MAY_NOT_APPLY = "measured roofs"  # a part of which no data sheet is kept
# Source: our choice. A host that launches one graph is done long before the device is.
LATEST_LAUNCH = 0.5

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


def test_every_check_of_the_report_applies_here_and_holds(report: Report) -> None:
    not_passed = {
        check.name: check.finding
        for check in report.checks
        if check.is_passed is False
        or (check.is_passed is None and not check.name.startswith(MAY_NOT_APPLY))
    }

    assert len(report.checks) >= LEAST_CHECKS
    assert not_passed == {}


def speed(report: Report, start: str) -> Speed:
    [found] = [one for one in report.speeds if one.name.startswith(start)]
    return found


def test_a_recorded_step_is_faster_than_an_eager_one(report: Report) -> None:
    graph, eager = speed(report, DecodeMode.GRAPH.value), speed(report, "eager, growing")

    assert graph.note == ""
    assert (graph.decode_tokens_per_s or 0) > (eager.decode_tokens_per_s or 0)


def test_a_recorded_step_is_launched_before_an_eager_one_and_before_the_device_is_done(
    report: Report,
) -> None:
    graph, eager = speed(report, DecodeMode.GRAPH.value), speed(report, "eager, growing")

    assert graph.host_ratio is not None
    assert eager.host_ratio is not None
    assert 0 < graph.host_ratio < min(eager.host_ratio, LATEST_LAUNCH)


def test_all_of_it_took_no_longer_than_was_promised(report: Report) -> None:
    """Three minutes on a card whose eager step takes up to 15 ms, four on a slower one."""
    assert report.pace is not None
    assert report.seconds <= (180 if report.pace.step_s <= FAST_STEP_S else 240)


def test_busy_time_and_energy_of_every_way_are_known_or_not_given_by_this_gpu(
    report: Report,
) -> None:
    not_read = {reading for reading, _ in report.unread}
    ways = [one for one in report.speeds if one.steady_tokens is not None]

    assert ways
    if "gpu_busy_ratio" not in not_read:
        assert all(way.busy_ratio is not None for way in ways), [way.unknown for way in ways]
    if "energy_j" not in not_read:
        assert all(way.joules_per_token is not None for way in ways), [way.unknown for way in ways]
