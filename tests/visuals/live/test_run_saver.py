"""Every run is kept on disk while it grows, and a disk that is full stops no run."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from inference.process.messages import RunEnded
from inference.records.status import RunState
from inference.runs.store import RunStore
from tests.visuals.live_doubles import FIRST, CapturedHub, HubUnderTest
from tests.visuals.traces import trace_of
from visuals.live.attention_requests import KEPT_MAPS
from visuals.live.live_run import LiveRun
from visuals.live.registry import KEPT_RUNS
from visuals.live.run_saver import RunSaver


@pytest.fixture
def under_test() -> HubUnderTest:
    return HubUnderTest()


def test_a_run_is_on_disk_before_it_has_ended_and_whole_after(
    under_test: HubUnderTest, tmp_path: Path
) -> None:
    store = RunStore(tmp_path)
    saver = RunSaver(store)
    run = under_test.begin("hi")
    under_test.step(run, 0, "o")
    saver.keep_once(under_test.hub)
    assert [path.suffix for path in store.folder.glob(f"{run.run_id}.jsonl")] == [".jsonl"]

    under_test.step(run, 1, "k")
    under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))
    saver.keep_once(under_test.hub)

    assert store.open(run.run_id) == under_test.hub.snapshot(run)
    assert list(store.folder.glob(f"{run.run_id}.jsonl")) == []


def test_what_a_killed_server_had_a_second_before_is_found_by_the_next(
    under_test: HubUnderTest, tmp_path: Path
) -> None:
    saver = RunSaver(RunStore(tmp_path))
    run = under_test.begin("hi")
    under_test.step(run, 0, "o")
    saver.keep_once(under_test.hub)
    under_test.step(run, 1, "k")
    stop = threading.Event()
    stop.set()
    saver.keep(under_test.hub, stop)  # the server's last round

    [entry] = RunStore(tmp_path).recover()

    assert (entry.key, entry.steps, entry.answers) == (run.run_id, 2, ("ok",))


def test_a_full_disk_is_one_sentence_and_the_run_goes_on(
    under_test: HubUnderTest, tmp_path: Path
) -> None:
    (tmp_path / "runs").write_text("a file where the folder should be")
    saver = RunSaver(RunStore(tmp_path))
    run = under_test.begin("hi")
    under_test.step(run, 0, "o")
    saver.keep_once(under_test.hub)
    assert "cannot be kept" in saver.problem
    assert under_test.hub.status(run).message == saver.problem
    assert run.state is not RunState.FAILED

    (tmp_path / "runs").unlink()
    under_test.step(run, 1, "k")
    under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))
    saver.keep_once(under_test.hub)

    assert saver.problem == ""
    assert under_test.hub.status(run).message == ""
    assert len(RunStore(tmp_path).open(run.run_id).events) == 2


def ended_without_room(under_test: HubUnderTest, folder: Path) -> tuple[RunSaver, LiveRun]:
    """End a run whose folder cannot be made, and try once to keep it."""
    (folder / "runs").write_text("a file where the folder should be")
    saver = RunSaver(RunStore(folder))
    run = under_test.begin("hi")
    under_test.step(run, 0, "o")
    under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))
    saver.keep_once(under_test.hub)
    return saver, run


def test_a_run_that_ended_without_room_is_kept_once_there_is_some(
    under_test: HubUnderTest, tmp_path: Path
) -> None:
    """The run was given up at its end, so making room afterwards did not bring it back."""
    saver, run = ended_without_room(under_test, tmp_path)
    assert "tried again" in under_test.hub.status(run).message

    (tmp_path / "runs").unlink()
    saver.keep_once(under_test.hub, is_retried=False)
    assert RunStore(tmp_path).entries() == ()
    saver.keep_once(under_test.hub)

    assert saver.problem == under_test.hub.status(run).message == ""
    assert RunStore(tmp_path).open(run.run_id) == under_test.hub.snapshot(run)


def test_a_run_that_ended_without_room_is_not_forgotten_before_it_is_written(
    under_test: HubUnderTest, tmp_path: Path
) -> None:
    saver, run = ended_without_room(under_test, tmp_path)
    fill_registry(under_test)
    assert under_test.hub.find(run.run_id) is run

    (tmp_path / "runs").unlink()
    saver.keep_once(under_test.hub)
    fill_registry(under_test)

    assert under_test.hub.find(run.run_id) is None
    assert len(RunStore(tmp_path).open(run.run_id).events) == 1


def fill_registry(under_test: HubUnderTest) -> None:
    """Make as many runs as the registry keeps, none with a step to write."""
    for _ in range(KEPT_RUNS):
        run = under_test.begin("x")
        under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.FAILED, message="no"))


def test_replays_opened_files_and_runs_without_a_step_are_not_kept(
    under_test: HubUnderTest, tmp_path: Path
) -> None:
    store = RunStore(tmp_path)
    saver = RunSaver(store)
    under_test.hub.replay(trace_of([b"a"], [b"b"]), speed=1e9)
    under_test.hub.adopt(trace_of([b"a"], [b"b"]))
    run = under_test.begin("hi")
    under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.FAILED, message="no"))

    saver.keep_once(under_test.hub)

    assert store.entries() == ()


def test_a_run_that_the_registry_has_forgotten_comes_back_under_its_id(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    under_test = HubUnderTest(RunSaver(store))
    trace = trace_of([b"a"], [b"b", b"c"])
    store.save(trace)
    assert under_test.hub.find("run") is None

    run = under_test.hub.reopen("run")

    assert run is not None
    assert under_test.hub.find("run") is run
    assert under_test.hub.snapshot(run) == trace
    assert under_test.hub.reopen("never-made") is None


def test_a_kept_run_has_the_weights_that_were_captured(tmp_path: Path) -> None:
    """A link opened by a later server used to show a grey square."""
    store = RunStore(tmp_path)
    under_test = CapturedHub()
    run = under_test.begin_captured()
    under_test.step(run, 0, "o")
    under_test.attended(run, FIRST)
    under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))
    RunSaver(store).keep_once(under_test.hub)

    later = HubUnderTest(RunSaver(RunStore(tmp_path))).hub
    reopened = later.reopen(run.run_id)

    assert reopened is not None
    captured = later.attention(reopened)
    assert (captured.choice, len(captured.maps)) == (FIRST, 1)


def test_weights_dropped_from_memory_come_from_the_run_file(tmp_path: Path) -> None:
    saver = RunSaver(RunStore(tmp_path))
    under_test = CapturedHub(saver)
    run = under_test.begin_captured()
    under_test.step(run, 0, "o")
    under_test.attended(run, FIRST)
    under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))
    saver.keep_once(under_test.hub)
    for _ in range(KEPT_MAPS):
        other = under_test.begin_captured()
        under_test.engine.reply(RunEnded(run_id=other.run_id, state=RunState.DONE))

    captured = under_test.hub.attention(run)

    assert run.recording is not None
    assert run.recording.attention.all() == ()
    assert (captured.choice, len(captured.maps)) == (FIRST, 1)
