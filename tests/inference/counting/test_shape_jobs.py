"""Configs that wait to be counted: one at a time, once, and only while somebody asks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from inference.counting.shape_jobs import PATIENCE_S, ShapeAnswer, ShapeJobs

LONGEST_WAIT_S = 10.0  # for a thread of the test, which has nothing else to do


class HeldCount:
    """Counts nothing until it is let go, and says which configs it was asked for."""

    def __init__(self) -> None:
        self.counted: list[object] = []
        self.has_begun = threading.Event()
        self.go = threading.Event()

    def __call__(self, fields: Mapping[str, object], _dtype: str) -> ShapeAnswer:
        self.counted.append(fields["n"])
        self.has_begun.set()
        assert self.go.wait(LONGEST_WAIT_S)
        return ShapeAnswer(sentence=f"counted {fields['n']}")


class Threads:
    """Starts work in threads that can be waited for."""

    def __init__(self) -> None:
        self._started: list[threading.Thread] = []

    def start(self, work: Callable[[], None]) -> None:
        self._started.append(threading.Thread(target=work, daemon=True))
        self._started[-1].start()

    def join(self) -> None:
        for thread in self._started:
            thread.join(LONGEST_WAIT_S)
            assert not thread.is_alive()


def test_a_config_that_nobody_asks_for_any_more_is_skipped() -> None:
    now_s, count, threads = [0.0], HeldCount(), Threads()
    jobs = ShapeJobs(lambda: now_s[0], count, threads.start)
    assert jobs.answer({"n": 1}, "float32").is_working
    assert count.has_begun.wait(LONGEST_WAIT_S)
    assert jobs.answer({"n": 2}, "float32").is_working

    now_s[0] = PATIENCE_S + 1
    assert jobs.answer({"n": 3}, "float32").is_working
    count.go.set()
    threads.join()

    assert count.counted == [1, 3]
    assert jobs.answer({"n": 3}, "float32").sentence == "counted 3"


def test_a_config_is_counted_once_however_often_it_is_asked_for() -> None:
    count, threads = HeldCount(), Threads()
    count.go.set()
    jobs = ShapeJobs(count=count, start=threads.start)
    jobs.answer({"n": 1}, "float32")
    threads.join()

    answers = [jobs.answer({"n": 1}, "float32") for _ in range(3)]

    assert {one.sentence for one in answers} == {"counted 1"}
    assert count.counted == [1]
