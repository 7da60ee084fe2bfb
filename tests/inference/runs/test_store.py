"""The store of runs: nothing is lost on the way, and a damaged file harms no other run."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from inference.records.errors import InputError, RunFileError
from inference.records.run import RunTrace
from inference.records.status import RunState
from inference.runs.journals import CUT_OFF, read_journal, recovered
from inference.runs.run_file import to_json
from inference.runs.store import RunStore
from inference.runs.store_entries import entry_to_json
from inference.runs.store_room import ROOM_VARIABLE, room_from_environment
from tests.builders import run_from_json, run_info
from tests.visuals.traces import trace_of


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path)


def run(run_id: str = "run-1", *, steps: int = 3) -> RunTrace:
    trace = trace_of([b"why", b" so"], [b"be", b"cause", b"."][:steps])
    return replace(trace, info=run_info(run_id))


def part_of(trace: RunTrace, steps: int) -> RunTrace:
    return replace(
        trace,
        events=trace.events[:steps],
        telemetry=trace.telemetry[:steps],
        state=RunState.RUNNING,
    )


def test_a_kept_run_keeps_every_value(store: RunStore) -> None:
    kept = run()

    store.save(kept)

    assert store.open("run-1") == kept == run_from_json(to_json(kept))


def test_the_list_shows_the_newest_first_with_prompt_and_figures(store: RunStore) -> None:
    older, newer = run("older"), run("newer")
    later = newer.info.started_at.replace(year=2027)
    store.save(replace(newer, info=replace(newer.info, started_at=later)))
    store.save(older)

    entries = store.entries()

    assert [entry.key for entry in entries] == ["newer", "older"]
    assert entries[0].prompts == ("why so",)
    assert (entries[0].prompt_tokens, entries[0].steps) == (2, 3)


def test_a_lost_or_wrong_entry_is_made_again_from_the_run_file(store: RunStore) -> None:
    entry = store.save(run())
    path = store.folder / "run-1.entry.json"
    for content in (None, b"{", b'{"key": "other"}'):
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)

        assert RunStore(store.folder.parent).entries() == (entry,)


def test_an_entry_written_before_it_had_all_fields_is_made_again(store: RunStore) -> None:
    entry = store.save(run())
    store.rename("run-1", "mine")
    older = replace(entry, name="mine", version=0, ttft_s=None, tokens_per_s=None)
    (store.folder / "run-1.entry.json").write_bytes(entry_to_json(older))

    assert RunStore(store.folder.parent).entries() == (replace(entry, name="mine"),)
    assert entry.tokens_per_s is not None


def test_a_name_is_kept_and_survives_a_run_that_is_saved_again(store: RunStore) -> None:
    store.save(part_of(run(), 1))
    store.rename("run-1", "  the   slow one ")

    store.save(run())

    assert [entry.title for entry in store.entries()] == ["the slow one"]
    assert [entry.name for entry in store.entries()] == ["the slow one"]


def test_deleted_runs_come_back_with_their_names(store: RunStore) -> None:
    store.save(run())
    store.rename("run-1", "mine")
    before = store.entries()

    store.delete(["run-1"])
    assert store.entries() == ()
    store.restore(["run-1"])

    assert store.entries() == before


def test_deleted_runs_are_gone_after_a_week(store: RunStore) -> None:
    store.save(run())
    store.delete(["run-1"])
    for path in (store.folder / "trash").iterdir():
        os.utime(path, (0, 0))

    store.recover()
    store.restore(["run-1"])

    assert store.entries() == ()


def test_another_run_of_the_same_id_gets_a_key_of_its_own(store: RunStore) -> None:
    first = run()
    other = replace(first, requests=(replace(first.requests[0], prompt_text="else"),))

    store.save(first)
    entry = store.save(other)

    assert entry.key != "run-1"
    assert store.open("run-1") == first
    assert store.open(entry.key) == other


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "", "x" * 70, "nul\0"])
def test_no_id_from_a_file_or_an_address_becomes_a_path(store: RunStore, name: str) -> None:
    entry = store.save(replace(run(), info=run_info(name)))

    assert [path.name for path in store.folder.glob("*.json.gz")] == [f"{entry.key}.json.gz"]
    with pytest.raises(RunFileError, match="not kept here"):
        store.open(name)
    assert store.entry(name) is None


def test_a_run_file_edited_by_hand_is_a_sentence_in_the_list_and_harms_no_other(
    store: RunStore,
) -> None:
    store.save(run("good"))
    (store.folder / "bad.json.gz").write_text(to_json(run("bad")).replace('"index":1', '"index":7'))

    entries = {entry.key: entry.problem for entry in store.entries()}

    assert entries["good"] == ""
    assert "events[1].index: 7 where 1 was expected" in entries["bad"]


def test_a_full_disk_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file where the folder should be")

    with pytest.raises(InputError, match="cannot be kept in"):
        RunStore(tmp_path).save(run())


def test_a_run_that_grows_is_recovered_up_to_its_last_line(store: RunStore) -> None:
    whole = run()
    journal = store.journal("run-1")
    journal.append(part_of(whole, 1))
    journal.append(part_of(whole, 2))
    journal.release()  # as the system does when a program dies

    [entry] = store.recover()

    trace = store.open(entry.key)
    assert trace.events == whole.events[:2]
    assert trace.telemetry == whole.telemetry[:2]
    assert trace.outputs[0].text == "because"
    assert (trace.state, trace.message) == (RunState.FAILED, CUT_OFF)
    assert list(store.folder.glob("*.jsonl")) == []


def test_a_line_cut_short_costs_that_line_only(store: RunStore) -> None:
    whole = run()
    journal = store.journal("run-1")
    journal.append(part_of(whole, 1))
    journal.append(part_of(whole, 3))
    path = store.folder / "run-1.jsonl"
    path.write_bytes(path.read_bytes()[:-20])

    assert read_journal(path).events == whole.events[:1]


def test_a_journal_goes_on_after_a_disk_that_was_full(store: RunStore) -> None:
    whole = run()
    journal = store.journal("run-1")
    journal.append(part_of(whole, 1))
    path = store.folder / "run-1.jsonl"
    away = path.rename(path.with_suffix(".away"))
    path.mkdir()
    with pytest.raises(InputError, match="cannot be kept"):
        journal.append(part_of(whole, 2))
    path.rmdir()
    away.rename(path)
    with path.open("ab") as file:
        file.write(b'{"events": [')

    journal.append(whole)

    assert read_journal(path).events == whole.events


def test_a_journal_that_another_program_writes_is_left_alone(store: RunStore) -> None:
    journal = store.journal("run-1")
    journal.append(part_of(run(), 1))

    assert recovered(store.folder / "run-1.jsonl") is None
    assert store.recover() == ()
    assert (store.folder / "run-1.jsonl").exists()


def test_two_stores_on_one_folder_see_each_others_runs(store: RunStore) -> None:
    other = RunStore(store.folder.parent)
    store.save(run("a"))
    assert [entry.key for entry in other.entries()] == ["a"]

    other.save(run("b"))
    other.rename("a", "named elsewhere")
    store.delete(["b"])

    assert [entry.title for entry in store.entries()] == ["named elsewhere"]
    assert other.entries() == store.entries()


def test_runs_are_kept_where_the_data_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_BY_TOKEN_DATA", str(tmp_path))

    assert RunStore().folder == tmp_path / "runs"


def test_a_program_killed_mid_run_leaves_a_run_to_recover(tmp_path: Path) -> None:
    """The lock of a killed process must not keep its run from the next server."""
    script = (
        "import os, sys; from pathlib import Path\n"
        "from inference.runs.run_file import read_bytes\n"
        "from inference.runs.store import RunStore\n"
        "[part] = read_bytes(Path(sys.argv[1]).read_bytes())\n"
        "RunStore(Path(sys.argv[2])).journal('run-1').append(part)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    part, folder = tmp_path / "part.json", tmp_path / "store"
    part.write_text(to_json(part_of(run(), 2)), encoding="utf-8")
    subprocess.run([sys.executable, "-c", script, str(part), str(folder)], check=False, timeout=60)

    [entry] = RunStore(folder).recover()

    assert (entry.steps, entry.state) == (2, RunState.FAILED)


def aged(store: RunStore, key: str, age_s: int) -> None:
    """Date a kept run back."""
    path = store.folder / f"{key}.json.gz"
    former_ns = path.stat().st_mtime_ns
    os.utime(path, ns=(former_ns, former_ns - age_s * 10**9))


def keys(store: RunStore) -> set[str]:
    return {entry.key for entry in store.entries()}


def test_the_oldest_runs_without_a_name_make_room(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    for age_s, key in enumerate(("d", "c", "b", "a")):
        store.save(run(key))
        aged(store, key, age_s * 60)
    one_bytes = store.room().used_bytes // 4
    store.rename("a", "mine")
    store.most_bytes = store.room().used_bytes + one_bytes // 2

    store.save(run("new"))

    assert keys(store) == {"a", "c", "d", "new"}
    room = store.room()
    assert (room.removed, room.excess_bytes) == (1, 0)
    assert room.used_bytes <= (room.most_bytes or 0)
    assert not list(store.folder.glob("b.*"))


def test_deleted_runs_go_before_any_that_is_kept(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    for key in ("a", "b", "c"):
        store.save(run(key))
    store.delete(["c"])
    store.most_bytes = store.room().used_bytes + 100  # an entry or a date may be longer

    store.save(run("new"))

    assert keys(store) == {"a", "b", "new"}
    assert not list((store.folder / "trash").iterdir())
    assert store.room().removed == 0


def test_runs_with_a_name_or_of_another_version_and_the_new_one_stay(tmp_path: Path) -> None:
    store = RunStore(tmp_path, most_bytes=1)
    store.save(run("named"), name="mine")
    (store.folder / "later.json.gz").write_bytes(b"of a later version")

    store.save(run("new"))

    assert keys(store) == {"named", "later", "new"}
    assert store.room().excess_bytes > 0
    store.save(run("newer"))
    assert keys(store) == {"named", "later", "newer"}


def test_runs_with_a_name_never_take_more_than_all_may(tmp_path: Path) -> None:
    """Whoever named runs took as much of the disk as they liked."""
    store = RunStore(tmp_path)
    for key in ("a", "b", "c"):
        store.save(run(key))
    store.most_bytes = sum(entry.file_bytes for entry in store.entries()) - 1
    store.rename("a", "mine")
    store.rename("b", "mine too")

    with pytest.raises(InputError, match="take its name away"):
        store.rename("c", "and this")
    store.rename("a", "another name")
    store.rename("b", "")
    store.rename("c", "and this")

    assert {entry.name for entry in store.entries()} == {"another name", "", "and this"}


def test_a_link_among_kept_runs_counts_as_itself_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    """A link was taken for all that it leads to, so that too little was removed."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "large").write_bytes(b"0" * 1_000_000)
    store = RunStore(tmp_path / "data")
    for key in ("a", "b"):
        store.save(run(key))
    (store.folder / "trash").mkdir()
    (store.folder / "trash" / "linked.json.gz").symlink_to(elsewhere / "large")
    (store.folder / "more").symlink_to(elsewhere)
    aged(store, "a", 60)
    assert store.room().used_bytes < 1_000_000
    store.most_bytes = store.room().used_bytes

    store.save(run("new"))

    assert keys(store) == {"b", "new"}
    assert (elsewhere / "large").stat().st_size == 1_000_000


def test_a_limit_that_was_lowered_holds_from_the_start(tmp_path: Path) -> None:
    RunStore(tmp_path).save(run("a"))
    store = RunStore(tmp_path, most_bytes=1)

    store.recover()

    assert keys(store) == set()
    assert store.room().removed == 1


def test_without_a_limit_nothing_goes(store: RunStore) -> None:
    for key in ("a", "b"):
        store.save(run(key))

    assert keys(store) == {"a", "b"}
    assert store.room().most_bytes is None


@pytest.mark.parametrize(
    ("value", "most_bytes"), [("", 5_000_000_000), ("20", 20_000_000), ("0", None)]
)
def test_the_limit_is_a_setting(
    value: str, most_bytes: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ROOM_VARIABLE, value)

    assert room_from_environment() == most_bytes


@pytest.mark.parametrize("value", ["-1", "much", "1.5", "9" * 400, "²"])
def test_a_limit_that_is_none_is_a_sentence(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ROOM_VARIABLE, value)

    with pytest.raises(InputError, match="give whole megabytes, or 0 for no limit"):
        room_from_environment()
