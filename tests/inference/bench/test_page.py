"""The page's part of ``bench``: what it says of the figures, and of why there are none."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from inference.bench import page
from inference.bench.page import figures_of, measure_page, page_targets

PRINTED: dict[str, Any] = {
    "tokens_per_s": {
        "headless": [20.0, 10.0, 40.0],
        "viewer": [20.0, 9.9, 38.0],
        "browser": [18.0, 8.0, 36.0],
    },
    "ttft_s": {
        "headless": [0.1, 0.2, 0.1],
        "viewer": [0.1, 0.2, 0.1],
        "browser": [0.11, 0.2, 0.4],
    },
    "first_steps_s": {
        "headless": [0.1, 0.2, 0.1],
        "viewer": [0.1, 0.2, 0.1],
        "browser": [0.1, 0.22, 0.3],
    },
    "main_thread_ms": {"128": [9.0, 11.0], "1024": []},
    "frame_bytes": {"frames": 87, "median": 11_000, "largest": 42_000},
    "start_s": {"server": 3.0, "page": 4.5, "first run with its model": 20.0},
}


def test_ratios_are_taken_within_each_round() -> None:
    figures = figures_of(PRINTED)

    assert figures.viewer_ratio.median == pytest.approx(0.99)
    assert figures.browser_ratio.median == pytest.approx(0.9)
    assert figures.ttft_ratio.median == pytest.approx(1.1)
    assert figures.first_steps_ratio.median == pytest.approx(1.1)
    assert {length: ms.median for length, ms in figures.main_thread_ms.items()} == {"128": 10.0}
    assert figures.tokens_per_s["headless"].median == 20.0


def test_targets_are_met_or_missed_by_what_was_found() -> None:
    found = {target.name: target for target in page_targets(figures_of(PRINTED))}

    assert {target.is_met for target in found.values()} == {True}
    start = found["start to a page that takes a prompt, s"].found
    assert start is not None
    assert start.median == 7.5
    large = {**PRINTED, "frame_bytes": {"frames": 1, "median": 70_000, "largest": 70_000}}
    missed = [target.name for target in page_targets(figures_of(large)) if not target.is_met]
    assert missed == ["largest frame, bytes"]


def test_without_figures_nothing_is_met() -> None:
    assert [target.is_met for target in page_targets(None)] == [None] * 7


def test_a_page_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: object, **_named: object) -> subprocess.CompletedProcess[bytes]:
        return subprocess.CompletedProcess((), 2, b"", b"there is no Chromium or Chrome here\n")

    monkeypatch.setattr(subprocess, "run", fail)
    assert measure_page(1) == ("the page was not measured: there is no Chromium or Chrome here")


def test_the_page_measures_itself_under_the_name_that_is_called() -> None:
    path = page.ROOT / (page.MODULE.replace(".", "/") + ".py")
    assert path.is_file()
