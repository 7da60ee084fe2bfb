"""The Runs page in AppTest: the list, search, names, deletion, import and replay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from inference.process.messages import Action
from inference.records.run import RunTrace
from inference.records.status import RunState
from inference.runs.run_file import to_json
from tests.app.stage import STAGE, Stage
from tests.builders import run_info
from tests.visuals.traces import trace_of
from visuals.pages.replays import SHIPPED, shipped_runs
from visuals.words.teaching import NO_GPU, RANDOM, TEACHING, TeachingRun

pytestmark = pytest.mark.app

SCRIPT = str(Path(__file__).with_name("runs_script.py"))


def run(run_id: str, prompt: bytes = b"why") -> RunTrace:
    return replace(trace_of([prompt], [b"be", b"cause"]), info=run_info(run_id))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    STAGE.reset(tmp_path)
    STAGE.store.save(run("one", b"why is it so"))
    STAGE.store.save(run("two", b"<b>:red[*markup*]"))
    return STAGE


@pytest.fixture
def page(stage: Stage) -> AppTest:
    assert len(stage.store.entries()) == 2
    return AppTest.from_file(SCRIPT, default_timeout=30).run()


def listed(page: AppTest) -> list[str]:
    return [box.key.removeprefix("pick-") for box in page.checkbox]


def test_every_run_is_listed_and_prompts_are_text(page: AppTest) -> None:
    assert not page.exception
    assert sorted(listed(page)) == ["one", "two"]
    assert {"why is it so", "<b>:red[*markup*]"} <= {text.value for text in page.text}


def test_an_empty_store_says_where_runs_come_from(tmp_path: Path) -> None:
    STAGE.reset(tmp_path)

    page = AppTest.from_file(SCRIPT, default_timeout=30).run()

    assert "No run is kept yet" in page.info[0].value


def test_searching_leaves_the_runs_that_have_all_words(page: AppTest) -> None:
    page.text_input(key="search").set_value("WHY so").run()
    assert listed(page) == ["one"]

    page.text_input(key="search").set_value("nowhere").run()

    assert listed(page) == []
    assert "No run has all of these words: nowhere" in page.info[0].value
    page.button(key="clear-search").click().run()
    assert sorted(listed(page)) == ["one", "two"]
    assert not page.exception


def test_repeats_are_one_row_and_are_ticked_at_once(page: AppTest, stage: Stage) -> None:
    for run_id in ("again", "and-again"):
        stage.store.save(run(run_id, b"why is it so"))
    page.run()
    [label] = [box.label for box in page.expander]
    assert label == "Show the 3 runs"

    page.button(key="tick-again").click().run()
    page.button(key="compare-picked").click().run()

    assert sorted(page.session_state["compared"]) == ["again", "and-again", "one"]


def test_deleted_runs_come_back_with_one_press(page: AppTest, stage: Stage) -> None:
    page.checkbox(key="pick-one").check().run()
    page.button(key="delete-picked").click().run()
    assert listed(page) == ["two"]

    page.button(key="undo").click().run()

    assert sorted(listed(page)) == ["one", "two"]
    assert stage.store.open("one") == run("one", b"why is it so")


def test_ticked_runs_are_taken_to_the_compare_page(page: AppTest) -> None:
    assert page.button(key="compare-picked").disabled
    page.checkbox(key="pick-one").check().run()
    page.checkbox(key="pick-two").check().run()

    page.button(key="compare-picked").click().run()

    assert sorted(page.session_state["compared"]) == ["one", "two"]


def test_a_run_plays_again_with_pause_step_and_whole(page: AppTest, stage: Stage) -> None:
    page.button(key="open-one").click().run()
    assert not page.exception
    assert page.query_params["run"] in ("one", ["one"])
    hub, under_test = stage.under_test.hub, stage.under_test
    [replayed] = [one for one in hub.runs() if one.replay is not None]
    assert replayed.state is RunState.RUNNING

    page.button(key="pause").click().run()
    assert replayed.state is RunState.PAUSED
    page.button(key="step").click().run()
    shown = hub.snapshot(replayed)
    assert shown is not None
    assert len(shown.events) == 1
    under_test.time_s += 100
    page.button(key="whole").click().run()

    assert not page.exception
    assert hub.snapshot(hub.runs()[-1]) == run("one", b"why is it so")
    assert page.query_params["view"] in ("whole", ["whole"])
    page.button(key="pause").click().run()
    assert "view" not in page.query_params
    assert under_test.engine.commands == []


def test_the_speed_goes_to_the_run_that_plays(page: AppTest, stage: Stage) -> None:
    page.button(key="open-one").click().run()
    page.selectbox(key="speed").set_value("Speed: 16 \u00d7").run()
    [replayed] = [one for one in stage.under_test.hub.runs() if one.replay is not None]

    stage.under_test.time_s += 0.05

    shown = stage.under_test.hub.snapshot(replayed)
    assert shown is not None
    assert len(shown.events) == 2
    stage.under_test.hub.control(replayed, Action.STOP)


def test_a_run_can_be_named_and_is_found_by_its_name(page: AppTest, stage: Stage) -> None:
    page.button(key="open-one").click().run()
    page.text_input(key="name-one").set_value("the first").run()
    page.button(key="back").click().run()

    page.text_input(key="search").set_value("first").run()

    assert listed(page) == ["one"]
    assert page.text[0].value == "the first"  # before the recorded runs, which are always there
    assert stage.store.open("one").info.run_id == "one"


def test_the_address_opens_a_run_whole_for_others(stage: Stage) -> None:
    page = AppTest.from_file(SCRIPT, default_timeout=30)
    page.query_params["run"] = "two"
    page.query_params["view"] = "whole"
    page.run()

    assert not page.exception
    assert stage.under_test.hub.runs()[0].recorded == run("two", b"<b>:red[*markup*]")


def test_a_run_that_is_not_kept_is_a_sentence(stage: Stage) -> None:
    assert stage.store.entry("gone") is None
    page = AppTest.from_file(SCRIPT, default_timeout=30)
    page.query_params["run"] = "gone"
    page.run()

    assert not page.exception
    assert "run gone is not kept here" in page.error[0].value


def test_run_files_are_taken_in_and_damaged_ones_are_a_sentence(
    page: AppTest, stage: Stage
) -> None:
    file = to_json((run("three"), run("four"))).encode()
    page.file_uploader[0].upload("runs.json", file, "application/json").run()
    assert sorted(listed(page)) == ["four", "one", "three", "two"]
    assert stage.store.open("three") == run("three")

    page.file_uploader[0].upload("bad.json", file[:99], "application/json").run()

    assert "bad" in page.error[0].value
    assert len(listed(page)) == 4


def test_a_run_file_edited_by_hand_stays_in_the_list_with_a_sentence(
    page: AppTest, stage: Stage
) -> None:
    (stage.store.folder / "bad.json.gz").write_text("{}")

    page.run()

    assert "bad" in listed(page)
    assert page.button(key="open-bad").disabled
    assert not page.exception


def test_a_full_disk_is_said_on_the_page(stage: Stage) -> None:
    stage.problem = "the run cannot be kept in /data: No space left on device; free some room"

    page = AppTest.from_file(SCRIPT, default_timeout=30).run()

    assert "No space left" in page.warning[0].value


def test_the_recorded_runs_that_come_with_the_program_play_too(page: AppTest, stage: Stage) -> None:
    shipped = shipped_runs()
    assert shipped
    offered = {button.key for button in page.button} & set(shipped)
    prompts = {shipped[key].requests[0].prompt_text for key in offered}
    assert prompts == {trace.requests[0].prompt_text for trace in shipped.values()}
    said = "\n".join(text.value for text in page.markdown)
    assert all(text in said for one in TEACHING for text in (one.title, one.look_at))
    assert said.count(RANDOM) == sum(one.is_random for one in TEACHING)
    assert any(NO_GPU in caption.value for caption in page.caption)

    for key, trace in shipped.items():
        other = AppTest.from_file(SCRIPT, default_timeout=30)
        other.query_params["run"] = key
        other.run()
        assert not other.exception
        [*_, replayed] = stage.under_test.hub.runs()
        assert replayed.replay is not None
        assert replayed.replay.trace == trace


@pytest.mark.parametrize("teaching", TEACHING, ids=lambda teaching: teaching.name)
def test_a_recorded_run_opens_with_its_sentence_above_it(
    stage: Stage, teaching: TeachingRun
) -> None:
    assert stage.problem == ""
    page = AppTest.from_file(SCRIPT, default_timeout=30)
    page.query_params["run"] = f"{SHIPPED}{teaching.name}"
    page.run()

    assert not page.exception
    assert teaching.look_at in page.markdown[0].value
    assert page.button(key="run-again").disabled is bool(teaching.no_again)
    assert any(RANDOM in one.value for one in page.caption) is teaching.is_random


def test_the_recorded_runs_can_be_played_one_after_another(page: AppTest) -> None:
    page.button(key="play-recorded").click().run()

    assert page.session_state["recorded"]


def test_a_kept_run_shows_its_settings_and_can_be_made_again(page: AppTest) -> None:
    page.button(key="open-one").click().run()
    shown_words = "\n".join(one.value for one in page.expander[0].markdown)
    assert "**K/V cache**: dynamic" in shown_words
    assert "**Decoding**: greedy" in shown_words
    assert "**Maximum new tokens**: 2" in shown_words

    page.button(key="run-again").click().run()

    assert page.session_state["live"]
    settings = page.session_state["session"].run
    assert (settings.prompt, settings.max_new_tokens) == ("why is it so", 2)


def test_the_room_of_runs_is_shown_and_what_made_room_is_said_once(
    page: AppTest, stage: Stage
) -> None:
    assert "the oldest without a name" not in page.caption[-1].value
    stage.store.rename("one", "mine")
    stage.store.most_bytes = stage.store.room().used_bytes + 10

    stage.store.save(run("three"))
    page.run()

    assert sorted(listed(page)) == ["one", "three"]
    said = "To make room, 1 run without a name was removed"
    assert said in page.info[0].value
    [kept] = [one.value for one in page.caption if one.value.startswith("Kept in")]
    assert "Since the server was started: 1 run." in kept
    page.run()
    assert not any(said in one.value for one in page.info)


def test_named_runs_that_take_too_much_are_said(page: AppTest, stage: Stage) -> None:
    stage.store.most_bytes = 1
    page.run()

    assert "Runs with a name stay: delete some" in page.warning[0].value


def test_one_run_is_offered_as_a_page_that_plays(stage: Stage) -> None:
    page = AppTest.from_file(SCRIPT, default_timeout=30)
    page.query_params["run"] = "one"

    page.run()

    assert not page.exception
    labels = [each.proto.label for each in page.get("download_button")]
    assert "Page that plays (HTML)" in labels
    assert stage.store.entry("one") is not None
