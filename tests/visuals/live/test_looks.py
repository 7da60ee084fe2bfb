"""One look at a run and one frame for all who are level."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from inference.records.status import RunState, RunStatus
from tests.visuals.live_doubles import HubUnderTest
from visuals.live import route
from visuals.live.frame_tokens import Frame
from visuals.live.looks import FRESH_S, Look, Looks, Made
from visuals.live.route import _Viewer

VIEWERS = 30


def look(at_s: float = 0.0) -> Look:
    return Look(status=RunStatus(state=RunState.RUNNING), trace=None, at_s=at_s)


def made() -> Made:
    return Made(update={}, text="{}")


def test_who_has_seen_all_of_a_look_takes_another_and_the_others_are_given_that_one() -> None:
    looks = Looks()
    first = looks.newest(None, 0.0, look)

    assert looks.newest(None, 0.05, lambda: look(0.05)) is first
    second = looks.newest(first, 0.05, lambda: look(0.05))
    assert second is not first
    assert looks.newest(first, 0.06, lambda: look(0.06)) is second
    assert looks.newest(first, 0.05 + FRESH_S, lambda: look(1.0)) is not second


def test_nothing_is_kept_once_the_last_viewer_is_gone() -> None:
    under_test = HubUnderTest()
    run = under_test.begin()
    under_test.hub.watch(run)
    first = run.looks.newest(None, 0.0, look)
    under_test.hub.watch(run)
    under_test.hub.leave(run)
    assert run.looks.newest(None, 0.0, look) is first

    under_test.hub.leave(run)

    assert run.looks.newest(None, 0.0, look) is not first


def test_a_frame_is_made_once_however_many_ask_at_the_same_time() -> None:
    shared, made_here = look(), threading.Semaphore(0)

    def slowly() -> Made:
        made_here.release()
        return made()

    with ThreadPoolExecutor(VIEWERS) as threads:
        frames = set(map(id, threads.map(lambda _: shared.frame(5, slowly), range(VIEWERS))))

    assert len(frames) == 1
    assert made_here.acquire(blocking=False)
    assert not made_here.acquire(blocking=False)
    assert shared.frame(6, made) is not shared.frame(5, made)


def test_a_frame_that_failed_is_made_by_the_next_who_asks() -> None:
    shared = look()

    def fails() -> Made:
        msg = "no frame"
        raise ValueError(msg)

    with pytest.raises(ValueError, match="no frame"):
        shared.frame(0, fails)
    assert shared.frame(0, made) is not None


def test_viewers_who_are_level_are_sent_one_frame_and_come_to_the_same_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: list[int] = []
    build = route.frame

    def counted(*arguments: object) -> Frame:
        built.append(1)
        return build(*arguments)

    monkeypatch.setattr(route, "frame", counted)
    under_test = HubUnderTest()
    run = under_test.begin()
    viewers = [_Viewer(under_test.hub, run, 0) for _ in range(VIEWERS)]
    late = _Viewer(under_test.hub, run, 2)
    for index, letter in enumerate("abc"):
        under_test.step(run, index, letter)
        sent = [viewer.build() for viewer in viewers]
        assert len({id(one.text) for one in sent}) == 1
        for viewer, one in zip(viewers, sent, strict=True):
            viewer.acknowledge(one, 0.0, "a 1")

    assert len(built) < 2 * 3, "one a look, and one more where a look was old"
    own = late.build()
    assert own.update is not None
    assert own.update["from"] == 2
    assert own.update["to"] == own.update["total"]
