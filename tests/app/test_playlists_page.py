"""The Playlists page in AppTest: made, changed, taken back, given away, and played."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from inference.records.run import RunTrace
from inference.records.status import RunState
from inference.runs.playlist_file import playlist_json
from inference.runs.playlists import Playlist, PlaylistItem
from inference.runs.recordings import recorded_runs
from inference.runs.run_file import to_json
from tests.app.stage import STAGE, Stage, shown
from tests.builders import run_info
from tests.visuals.traces import trace_of
from visuals.pages.current_item import SHIPPED_LIST
from visuals.pages.presenter import stage_of_address, with_note
from visuals.panel.stage import presenter_stage
from visuals.words.teaching import RANDOM, TEACHING

pytestmark = pytest.mark.app

SCRIPT = str(Path(__file__).with_name("playlists_script.py"))
EVIL = "<b>:red[*look*]</b> https://example.org"


def run(run_id: str, prompt: bytes = b"why") -> RunTrace:
    return replace(trace_of([prompt], [b"be", b"cause"]), info=run_info(run_id))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    STAGE.reset(tmp_path)
    STAGE.store.save(run("one", b"why is it so"))
    return STAGE


def opened(**address: str) -> AppTest:
    page = AppTest.from_file(SCRIPT, default_timeout=60)
    for name, value in address.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def press(page: AppTest, key: str) -> None:
    page.button(key=key).click().run()
    assert not page.exception


def words(page: AppTest) -> str:
    """Return what the page says, without the marks that keep it from being Markdown."""
    parts = (page.markdown, page.caption, page.error, page.info, page.subheader, page.text)
    return "\n".join(shown(str(one.value)) for part in parts for one in part)


def kept(stage: Stage) -> Playlist:
    [entry] = stage.playlists.entries()
    return stage.playlists.open(entry.key)


def test_a_lecturer_builds_a_list_and_every_change_is_kept_and_taken_back(stage: Stage) -> None:
    page = opened()
    press(page, "playlist-new")
    page.text_input(key="pl-name-0").set_value("Monday").run()
    page.multiselect(key="playlist-adding").set_value(["recording:long-prompt", "kept:one"]).run()
    press(page, "playlist-add")
    page.text_input(key="pl-note-1-1").set_value(EVIL).run()
    page.selectbox(key="pl-shown-1-0").set_value("kv").run()
    page.number_input(key="pl-step-1-0").set_value(2).run()
    press(page, "pl-up-1")

    first = PlaylistItem(kept="one", note=EVIL)
    second = PlaylistItem(recording="long-prompt", panel="kv", step=2)
    assert kept(stage) == Playlist(title="Monday", items=(first, second))
    press(page, "pl-remove-0")
    assert kept(stage).items == (second,)
    press(page, "playlist-undo")
    assert kept(stage).items == (first, second)
    assert page.text_input(key="pl-note-4-0").value == EVIL
    press(page, "playlist-undo")
    assert kept(stage).items == (second, first)


def test_a_list_that_is_deleted_comes_back(stage: Stage) -> None:
    key = stage.playlists.save(Playlist(title="Monday"))
    page = opened(playlist=key)

    press(page, "playlist-delete")
    assert "playlist" not in page.query_params
    assert "Monday" not in words(page)
    press(page, "playlist-restore")

    assert "Monday" in words(page)


def test_the_recorded_runs_are_a_list_that_can_be_copied_only(stage: Stage) -> None:
    page = opened(playlist=SHIPPED_LIST)
    keys = {button.key for button in page.button}
    assert "playlist-delete" not in keys
    assert "pl-remove-0" not in keys

    press(page, "playlist-copy")

    assert len(kept(stage).items) == len(TEACHING)
    assert "pl-remove-0" in {button.key for button in page.button}


def test_the_recorded_runs_play_one_after_another_with_their_sentence(stage: Stage) -> None:
    page = opened(playlist=SHIPPED_LIST, item="1")
    for number, teaching in enumerate(TEACHING, start=1):
        said = words(page)
        assert f"{number} of {len(TEACHING)}: {teaching.title}" in said
        assert teaching.look_at in said
        assert (RANDOM in said) is teaching.is_random
        replayed = stage.under_test.hub.runs()[-1]
        assert replayed.replay is not None
        assert replayed.replay.trace == recorded_runs(teaching.name)[0]
        if number < len(TEACHING):
            press(page, "playlist-next")

    assert page.button(key="playlist-next").disabled
    press(page, "playlist-back")
    assert f"{len(TEACHING) - 1} of" in words(page)
    assert stage.under_test.engine.commands == []


def test_an_item_begins_after_its_step_and_with_its_panel(stage: Stage) -> None:
    item = PlaylistItem(kept="one", note=EVIL, panel="kv", step=1)
    key = stage.playlists.save(Playlist(items=(item, PlaylistItem(kept="one", panel="nope"))))
    page = opened(playlist=key, item="1")
    [replayed] = stage.under_test.hub.runs()
    snapshot = stage.under_test.hub.snapshot(replayed)

    assert snapshot is not None
    assert (len(snapshot.events), replayed.state) == (1, RunState.PAUSED)
    assert EVIL in words(page)
    assert EVIL not in [one.value for one in page.markdown]
    page.toggle(key="playlist-all").set_value(True).run()
    assert not page.exception
    press(page, "playlist-next")
    assert "There is no panel nope" in words(page)


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("1", "1 of 2"),
        ("2", "2 of 2"),
        ("99", "2 of 2"),
        ("0", "1 of 2"),
        ("-1", "1 of 2"),
        ("x", "1 of 2"),
        ("9" * 5000, "1 of 2"),
        ("\u0662", "1 of 2"),
    ],
)
def test_any_number_in_the_address_shows_an_item(stage: Stage, item: str, expected: str) -> None:
    key = stage.playlists.save(Playlist(items=(PlaylistItem(kept="one"),) * 2))

    assert expected in words(opened(playlist=key, item=item))


def test_a_presenter_reads_the_note_in_place_of_every_panels_idea(stage: Stage) -> None:
    key = stage.playlists.save(Playlist(items=(PlaylistItem(kept="one", note=EVIL, panel="kv"),)))
    assert EVIL in words(opened(playlist=key, item="1", present="1"))
    usual = presenter_stage(is_on=True)

    noted = with_note(usual, EVIL)

    ideas = noted["ideas"]
    assert isinstance(ideas, list)
    assert {idea["prefill"] for idea in ideas} == {idea["decode"] for idea in ideas} == {EVIL}
    assert with_note(usual, "") == usual


@pytest.mark.parametrize("on", ["", "1"])
def test_the_mode_begins_with_an_items_own_panel_however_it_is_switched_on(
    monkeypatch: pytest.MonkeyPatch, on: str
) -> None:
    monkeypatch.setattr("streamlit.query_params", {"present": on} if on else {})

    assert stage_of_address("kv")["panels"] == ["kv"]
    assert stage_of_address()["panels"] == []


@pytest.mark.parametrize("item", [{}, {"item": "1"}])
def test_a_list_that_is_not_here_is_a_sentence_with_a_way_back(
    stage: Stage, item: dict[str, str]
) -> None:
    page = opened(playlist="nope", **item)

    assert "playlist nope is not kept here" in page.error[0].value
    press(page, "playlist-back")
    assert "Put runs in the order" in words(page)
    assert stage.playlists.entries() == ()


def test_a_list_without_runs_cannot_be_played(stage: Stage) -> None:
    key = stage.playlists.save(Playlist())

    assert "has no runs yet" in opened(playlist=key, item="1").error[0].value


def test_missing_and_damaged_runs_are_a_sentence_each_and_the_others_play(stage: Stage) -> None:
    damaged = json.loads(to_json(run("two")))
    damaged["events"] = 7
    items = [
        {"kept": "gone", "note": "missing"},
        {"run": damaged, "note": "damaged"},
        {"recording": "unheard-of"},
        {"run": json.loads(to_json(run("three", b"inside"))), "note": EVIL},
    ]
    content = json.dumps({"playlist_version": 1, "title": EVIL, "items": items}).encode()
    page = opened()
    page.file_uploader[0].upload("list.json", content, "application/json").run()
    assert not page.exception
    assert "Item 2 cannot be shown" in page.info[0].value
    [entry] = stage.playlists.entries()

    press(page, f"pl-list-play-{entry.key}")
    for reason in ("run gone is not kept here", "events", "no recording named unheard-of"):
        assert reason in page.error[0].value
        press(page, "playlist-next")

    assert not page.error
    assert "4 of 4: \u2068inside" in words(page)
    assert [one.replay.trace for one in stage.under_test.hub.runs() if one.replay] == [
        run("three", b"inside")
    ]
    assert json.loads(playlist_json(kept(stage)))["items"] == items


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"{}", "no playlist of this program"),
        (b'{"playlist_version":9,"items":[]}', "version 9"),
        (to_json(run("one")).encode(), "a run and no playlist"),
        (b" " * 40_000_000, "larger than 32 MiB"),
    ],
    ids=["other JSON", "later version", "run file", "too large"],
)
def test_a_file_that_is_no_playlist_is_a_sentence_and_nothing_is_lost(
    stage: Stage, content: bytes, expected: str
) -> None:
    stage.playlists.save(Playlist(title="Monday"))
    page = opened()

    page.file_uploader[0].upload("x.json", content, "application/json").run()

    assert not page.exception
    assert expected in page.error[0].value
    assert kept(stage).title == "Monday"


def test_a_folder_that_takes_nothing_is_a_sentence(stage: Stage) -> None:
    stage.playlists.folder.parent.mkdir(exist_ok=True)
    stage.playlists.folder.write_text("in the way", encoding="utf-8")
    page = opened()

    press(page, "playlist-new")

    assert "cannot be kept in" in page.error[0].value
