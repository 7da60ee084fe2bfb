"""Configs that wait to be counted: one at a time, and only while somebody asks."""

from __future__ import annotations

import threading
import time

import pytest

from inference.counting import shape_jobs
from inference.counting.shape_jobs import PATIENCE_S, ShapeAnswer, ShapeJobs


def test_a_config_that_nobody_asks_for_any_more_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, go = [0.0], threading.Event()
    counted: list[object] = []

    def count(fields: dict[str, object], _dtype: str) -> ShapeAnswer:
        counted.append(fields["n"])
        go.wait(10)
        return ShapeAnswer(sentence=f"counted {fields['n']}")

    monkeypatch.setattr(shape_jobs, "count_apart", count)
    jobs = ShapeJobs(lambda: now_s[0])
    for number in (1, 2):
        assert jobs.answer({"n": number}, "float32").is_working
    _wait(lambda: counted == [1])

    now_s[0] = PATIENCE_S + 1
    assert jobs.answer({"n": 3}, "float32").is_working
    go.set()
    _wait(lambda: not jobs.answer({"n": 3}, "float32").is_working)

    assert counted == [1, 3]
    assert jobs.answer({"n": 3}, "float32").sentence == "counted 3"


def _wait(is_so: object) -> None:
    assert callable(is_so)
    end = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.01)
