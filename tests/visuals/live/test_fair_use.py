"""What one visitor of a room may take, and that others are left theirs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from inference.process.messages import Action, RunEnded
from inference.records.errors import InputError
from inference.records.status import RunState
from inference.runs.store import RunStore
from tests.builders import order
from tests.visuals.live_doubles import HubUnderTest
from tests.visuals.traces import trace_of
from visuals.live.access import AccessGate, AccessKeys
from visuals.live.comparison_plan import PlannedRun
from visuals.live.fair_use import (
    FairUse,
    LastHour,
    Limits,
    VisitorHub,
    limits_from,
    new_tokens,
    unfinished,
)
from visuals.live.groups import Groups

NONE = Limits(runs=0, tokens=0, upload_mb=0, kept_mb=0)


class Room:
    """A hub that several visitors share, and a time of its own."""

    def __init__(self, limits: Limits, folder: Path) -> None:
        self.time_s = 0.0
        self.under_test = HubUnderTest()
        self.under_test.load()
        self.store = RunStore(folder)
        self.fair_use = FairUse(limits, self.store, lambda: self.time_s)

    def visitor(self, name: str) -> VisitorHub:
        return VisitorHub(self.under_test.hub, self.fair_use, name)


def test_runs_that_go_and_wait_are_counted_by_visitor(tmp_path: Path) -> None:
    room = Room(replace(NONE, runs=2), tmp_path)
    one, other = room.visitor("one"), room.visitor("other")
    first = one.submit(order())
    one.submit(order())

    with pytest.raises(InputError, match="2 of your runs are running or waiting already"):
        one.submit(order())
    waiting = other.submit(order())
    assert [run.owner for run in unfinished(one)] == ["one", "one", "other"]
    assert unfinished(one)[0] is first
    assert room.under_test.hub.find(waiting.run_id) is waiting

    room.under_test.engine.reply(RunEnded(run_id=first.run_id, state=RunState.DONE, message=""))
    assert one.submit(order()).owner == "one"


def test_new_tokens_are_counted_by_the_hour(tmp_path: Path) -> None:
    asked = new_tokens(order())
    room = Room(replace(NONE, tokens=2 * asked), tmp_path)
    one = room.visitor("one")
    one.submit(order())
    with pytest.raises(InputError, match=rf"you have {asked:,} left"):
        one.submit(replace(order(), prompts=("a", "b")))
    one.submit(order())
    with pytest.raises(InputError, match="you have 0 left"):
        one.submit(order())
    assert room.visitor("other").submit(order()).owner == "other"

    room.time_s = 3601.0
    assert one.submit(order()).owner == "one"


def test_a_run_that_the_queue_refuses_costs_no_tokens(tmp_path: Path) -> None:
    room = Room(replace(NONE, tokens=40 * new_tokens(order())), tmp_path)
    crowd, one = room.visitor("crowd"), room.visitor("one")
    for _ in range(33):  # one goes, the rest wait
        crowd.submit(order())
    for _ in range(50):
        with pytest.raises(InputError, match="runs are waiting already"):
            one.submit(order())


def test_a_comparison_counts_run_by_run_and_ends_with_the_reason(tmp_path: Path) -> None:
    room = Room(replace(NONE, tokens=new_tokens(order())), tmp_path)
    shared = Groups(room.under_test.hub)
    group = shared.on(room.visitor("one")).start(
        [PlannedRun(label="a", order=order()), PlannedRun(label="b", order=order())]
    )
    assert group.current is not None
    assert group.current.owner == "one"
    assert shared.find(group.group_id) is group

    room.under_test.engine.reply(
        RunEnded(run_id=group.current.run_id, state=RunState.DONE, message="")
    )
    assert group.is_over
    assert "you have 0 left" in group.message


def test_kept_bytes_are_those_of_ones_own_runs_that_are_still_there(tmp_path: Path) -> None:
    room = Room(replace(NONE, kept_mb=1), tmp_path)
    one = room.visitor("one")
    run = one.submit(order())
    trace = trace_of([b"a"], [b"b"])
    room.store.save(replace(trace, info=replace(trace.info, run_id=run.run_id)))
    one.submit(order())
    room.store.folder.joinpath(f"{run.run_id}.json.gz").write_bytes(b"0" * 1_500_000)

    with pytest.raises(InputError, match="delete some on the Runs page"):
        one.submit(order())
    room.visitor("other").submit(order())
    room.store.delete([run.run_id])
    one.submit(order())


def test_any_operator_can_end_a_run_of_another(tmp_path: Path) -> None:
    room = Room(NONE, tmp_path)
    room.visitor("one").submit(order())
    waiting = room.visitor("one").submit(order())

    room.visitor("other").control(waiting, Action.STOP)

    assert waiting.state is RunState.STOPPED


def test_uploads_are_counted_before_they_are_read(tmp_path: Path) -> None:
    room = Room(replace(NONE, upload_mb=1), tmp_path)
    keys = AccessKeys("correct-horse-battery")
    app = Starlette(
        routes=[Route("/", lambda _request: PlainTextResponse("ours"), methods=["GET", "PUT"])],
        middleware=[Middleware(AccessGate, keys=keys, take_upload=room.fair_use.take_upload)],
    )
    one, other = TestClient(app), TestClient(app)
    for client in (one, other):
        client.get(f"/?key={keys.operate}")

    assert one.put("/", content=b"0" * 600_000).status_code == 200
    refused = one.put("/", content=b"0" * 600_000)
    assert refused.status_code == 413
    assert "as much as each visitor may" in refused.text
    assert other.put("/", content=b"0" * 600_000).status_code == 200
    unsized = other.put("/", content=iter([b"0"]))
    assert unsized.status_code == 411
    room.time_s = 3601.0
    assert one.put("/", content=b"0" * 600_000).status_code == 200


def test_what_was_taken_is_counted_in_little_memory() -> None:
    """Each upload of nothing was remembered for an hour, and each cookie for ever."""
    now_s = [0.0]
    taken = LastHour(lambda: now_s[0])
    for _ in range(10_000):
        taken.add("one", 1)
    assert taken.of("one") == 10_000
    assert len(taken) == 1

    for minute in range(200):
        now_s[0] = 60.0 * minute
        taken.add("one", 1)
    assert taken.of("one") == 60
    assert len(taken) == 60
    for number in range(100):
        taken.add(f"visitor {number}", 1)
    now_s[0] += 3601.0
    taken.add("another", 1)
    assert len(taken) == 1


def test_limits_are_taken_from_a_line_of_text() -> None:
    assert limits_from("") == Limits()
    assert limits_from(" runs=5, tokens=0,") == Limits(runs=5, tokens=0)
    for wrong in ("runs", "runs=-1", "runs=many", "rows=3", "runs=\u0663"):
        with pytest.raises(InputError, match="is not a limit"):
            limits_from(wrong)
