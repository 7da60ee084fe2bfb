"""The Live page in AppTest, on a scripted engine: presses, sentences, and what is shown when."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from inference.process.messages import Action, Control, RunEnded, StateChanged
from inference.records.options import Sampling
from inference.records.status import RunState
from inference.runs.recordings import FIRST_RUN, recorded_runs
from inference.runs.run_file import to_json
from tests.app.stage import STAGE, shown
from tests.builders import DEFAULT_LOAD
from tests.visuals.live_doubles import HubUnderTest
from visuals.live.live_run import LiveRun

pytestmark = pytest.mark.app

SCRIPT = str(Path(__file__).with_name("live_script.py"))


@pytest.fixture
def hub() -> HubUnderTest:
    STAGE.under_test = HubUnderTest()
    STAGE.under_test.load()
    return STAGE.under_test


@pytest.fixture
def page(hub: HubUnderTest) -> AppTest:
    assert hub.hub.engine_status().ready is not None
    return AppTest.from_file(SCRIPT, default_timeout=30).run()


def shown_run(page: AppTest) -> LiveRun:
    """Return the run whose id is in the address."""
    run = STAGE.under_test.hub.find(str(page.query_params["run"]))
    assert run is not None
    return run


def panel_data(page: AppTest) -> dict[str, object]:
    every = [json.loads(each.proto.json) for each in page.get("bidi_component")]
    [panel] = [data for data in every if "run_id" in data]
    return panel


def player_button(page: AppTest) -> Any:  # noqa: ANN401  Streamlit's own message
    """Return the button that saves the run as a page that plays it."""
    [button] = [each.proto for each in page.get("download_button") if "plays" in each.proto.label]
    return button


def start(page: AppTest, prompt: str = "hello") -> LiveRun:
    page.text_area(key="prompt").set_value(prompt)
    page.button(key="start").click().run()
    assert not page.exception
    return shown_run(page)


def test_the_page_opens_with_a_prompt_and_only_start_and_step_to_press(page: AppTest) -> None:
    assert not page.exception
    assert page.text_area(key="prompt").value
    assert {key: page.button(key=key).disabled for key in ("start", "pause", "step", "stop")} == {
        "start": False,
        "pause": True,
        "step": False,
        "stop": True,
    }


def test_start_orders_what_the_widgets_say_and_shows_that_run(
    page: AppTest, hub: HubUnderTest
) -> None:
    page.number_input(key="max_new_tokens").set_value(9)
    page.toggle(key="template").set_value(False)

    run = start(page, "hello")

    [generate] = hub.generates()
    [request] = generate.requests
    assert request.prompt_text == "hello"
    assert request.max_new_tokens == 9
    assert request.sampling == Sampling()
    assert bytes(hub.hub.codec().piece(i).raw[0] for i in request.prompt_ids) == b"hello"
    assert not generate.is_paused
    assert panel_data(page)["run_id"] == run.run_id


def test_the_chat_template_is_applied_unless_it_is_switched_off(
    page: AppTest, hub: HubUnderTest
) -> None:
    start(page, "hello")

    [request] = hub.generates()[0].requests
    assert hub.hub.codec().decode(request.prompt_ids) == "hello>"
    assert request.prompt_ids[0] == 256


def test_sampling_settings_reach_the_engine(page: AppTest, hub: HubUnderTest) -> None:
    page.segmented_control(key="choice").set_value("sampling").run()
    page.slider(key="temperature").set_value(1.5)
    page.number_input(key="top_k").set_value(20)
    page.slider(key="top_p").set_value(0.9)
    page.number_input(key="seed").set_value(7)

    start(page)

    [generate] = hub.generates()
    assert generate.seed == 7
    assert generate.requests[0].sampling == Sampling(temperature=1.5, top_k=20, top_p=0.9)


def test_step_without_a_run_starts_a_paused_one_and_asks_for_one_step(
    page: AppTest, hub: HubUnderTest
) -> None:
    page.text_area(key="prompt").set_value("hello")
    page.button(key="step").click().run()

    [generate] = hub.generates()
    assert generate.is_paused
    assert hub.engine.commands[-1] == Control(run_id=generate.run_id, action=Action.STEP)


def test_pause_becomes_resume_while_the_run_is_paused(page: AppTest, hub: HubUnderTest) -> None:
    run = start(page)
    page.button(key="pause").click().run()
    hub.engine.reply(StateChanged(run_id=run.run_id, state=RunState.PAUSED))

    page.run()

    assert hub.engine.commands[-1] == Control(run_id=run.run_id, action=Action.PAUSE)
    assert page.button(key="pause").label == "Resume"
    page.button(key="pause").click().run()
    assert hub.engine.commands[-1] == Control(run_id=run.run_id, action=Action.RESUME)


def test_stop_stops_the_run_and_start_is_free_again(page: AppTest, hub: HubUnderTest) -> None:
    run = start(page)
    assert page.button(key="start").disabled

    page.button(key="stop").click().run()
    hub.engine.reply(RunEnded(run_id=run.run_id, state=RunState.STOPPED))
    page.run()

    assert Control(run_id=run.run_id, action=Action.STOP) in hub.engine.commands
    assert not page.button(key="start").disabled
    assert page.button(key="stop").disabled


def test_the_pace_goes_to_a_run_that_goes(page: AppTest, hub: HubUnderTest) -> None:
    run = start(page)

    page.selectbox(key="pace").set_value("Pace: 2 steps/s").run()

    assert hub.engine.commands[-1] == Control(
        run_id=run.run_id, action=Action.PACE, steps_per_s=2.0
    )


def test_changing_a_widget_leaves_the_panel_and_the_run_alone(
    page: AppTest, hub: HubUnderTest
) -> None:
    start(page)
    before, commands = panel_data(page), list(hub.engine.commands)

    page.text_area(key="prompt").set_value("something else").run()
    page.number_input(key="max_new_tokens").set_value(12).run()

    assert panel_data(page) == before
    assert hub.engine.commands == commands


def test_the_panel_knows_the_state_that_the_buttons_show(page: AppTest) -> None:
    """It had the page run again for a state that the page knew, over a press on another page."""
    run = start(page)

    assert panel_data(page)["state"] == run.state.value
    assert page.button(key="start").disabled


def test_the_address_brings_a_run_back_to_a_new_tab(page: AppTest) -> None:
    run = start(page)

    other = AppTest.from_file(SCRIPT, default_timeout=30)
    other.query_params["run"] = run.run_id
    other.run()

    assert panel_data(other)["run_id"] == run.run_id
    assert not other.button(key="stop").disabled


def test_a_run_that_is_not_kept_any_more_is_a_sentence(hub: HubUnderTest) -> None:
    page = AppTest.from_file(SCRIPT, default_timeout=30)
    page.query_params["run"] = "long-gone"
    page.run()

    assert not page.exception
    assert hub.generates() == []
    assert "names run long-gone, which is not on this server" in shown(page.warning[0].value)


def test_a_dead_link_goes_on_saying_so_until_another_run_is_shown(page: AppTest) -> None:
    """The page forgot it, with the address, as soon as it ran again: another run stood there."""
    page.query_params["run"] = "long-gone"
    page.run()

    page.run()

    assert page.query_params["run"] in ("long-gone", ["long-gone"])
    assert "long-gone" in shown(page.warning[0].value)
    page.text_area(key="prompt").set_value("  ")
    page.button(key="start").click().run()
    assert "the prompt is empty" in page.error[0].value
    page.run()
    assert "the prompt is empty" in page.error[0].value
    run = start(page, "hello")
    assert page.query_params["run"] in (run.run_id, [run.run_id])
    assert not page.warning


def test_markup_in_a_dead_link_is_text(hub: HubUnderTest) -> None:
    evil = "](https://evil.example)![x](y)" * 30
    page = AppTest.from_file(SCRIPT, default_timeout=30)
    page.query_params["run"] = evil
    page.run()

    assert hub.generates() == []
    said = page.warning[0].value
    assert "\\](http" in said
    assert "](https" in shown(said)
    assert len(said) < len(evil)


def test_an_empty_prompt_is_a_sentence_and_the_next_run_works(
    page: AppTest, hub: HubUnderTest
) -> None:
    page.text_area(key="prompt").set_value("   ")
    page.button(key="start").click().run()
    assert "the prompt is empty" in page.error[0].value
    assert hub.generates() == []

    start(page, "hello")

    assert not page.error
    assert len(hub.generates()) == 1


def test_a_prompt_longer_than_the_context_is_a_sentence(page: AppTest) -> None:
    page.text_area(key="prompt").set_value("x" * 100)
    page.button(key="start").click().run()

    assert "the model takes 64" in page.error[0].value


def test_every_example_fills_the_prompt_box(page: AppTest) -> None:
    names = page.selectbox(key="example").options

    assert len(names) > 3
    for name in names:
        page.selectbox(key="example").set_value(name).run()
        assert not page.exception
        assert page.text_area(key="prompt").value.strip()


def test_the_exact_input_shows_the_template_around_the_prompt(page: AppTest) -> None:
    page.text_area(key="prompt").set_value("<b>hello</b>").run()

    assert [code.value for code in page.code] == ["<s><b>hello</b>>"]


def test_a_saved_run_file_can_be_opened_and_a_damaged_one_is_a_sentence(
    page: AppTest, hub: HubUnderTest
) -> None:
    run = hub.begin("hi")
    hub.step(run, 0, "o")
    hub.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))
    trace = hub.hub.snapshot(run)
    assert trace is not None
    content = to_json(trace).encode()

    page.file_uploader[0].upload("run.json", content, "application/json").run()

    opened = shown_run(page)
    assert hub.hub.snapshot(opened) == trace
    page.file_uploader[0].upload("broken.json", content[:50], "application/json").run()
    assert shown(page.error[0].value).startswith("broken.json: ")


def test_a_run_can_be_saved_as_a_page_that_plays_once_it_is_over(
    page: AppTest, hub: HubUnderTest
) -> None:
    run = start(page)
    hub.engine.reply(StateChanged(run_id=run.run_id, state=RunState.RUNNING))
    assert player_button(page.run()).disabled

    hub.engine.reply(RunEnded(run_id=run.run_id, state=RunState.FAILED))
    assert hub.hub.snapshot(run) is None
    assert player_button(page.run()).disabled  # nothing of it was recorded
    over = hub.begin("hi")
    hub.step(over, 0, "o")
    hub.engine.reply(RunEnded(run_id=over.run_id, state=RunState.DONE))
    page.query_params["run"] = over.run_id

    assert not player_button(page.run()).disabled


def test_a_default_model_that_did_not_load_is_said_on_the_empty_page() -> None:
    from inference.process.messages import LoadFailed  # noqa: PLC0415

    STAGE.under_test = HubUnderTest()
    STAGE.under_test.hub.preload(DEFAULT_LOAD)
    failed = LoadFailed(request=DEFAULT_LOAD, sentence="the wheel's checksum is wrong")
    STAGE.under_test.engine.reply(failed)

    page = AppTest.from_file(SCRIPT, default_timeout=30).run()

    assert "the wheel's checksum is wrong" in page.warning[0].value


def test_while_the_model_loads_the_page_says_how_far_it_is() -> None:
    from inference.process.messages import Loading  # noqa: PLC0415
    from inference.records.status import LoadStage  # noqa: PLC0415

    STAGE.under_test = HubUnderTest()
    STAGE.under_test.hub.preload(DEFAULT_LOAD)
    STAGE.under_test.engine.reply(Loading(stage=LoadStage(stage="reading weights", ratio=0.5)))

    page = AppTest.from_file(SCRIPT, default_timeout=30).run()

    [line] = [
        each
        for each in page.get("bidi_component")
        if each.proto.component_name == "token_by_token_loading"
    ]
    status = {"stage": "reading weights", "ratio": 0.5, "error": ""}
    assert json.loads(line.proto.json)["status"] == status


def test_no_timer_of_the_page_runs_while_the_model_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timer's rerun of the page that is being left could win over the press that leaves it."""
    fragment, timed = st.fragment, []

    def noticed(*arguments: object, **options: object) -> object:
        if options.get("run_every") is not None:
            timed.append(options["run_every"])
        return fragment(*arguments, **options)

    monkeypatch.setattr(st, "fragment", noticed)
    STAGE.under_test = HubUnderTest()
    STAGE.under_test.hub.preload(DEFAULT_LOAD)

    page = AppTest.from_file(SCRIPT, default_timeout=30).run()

    assert not page.exception
    assert timed == []


def test_the_settings_that_keep_step_times_undisturbed_are_in_the_config() -> None:
    import tomllib  # noqa: PLC0415

    config = tomllib.loads(Path(".streamlit/config.toml").read_text(encoding="utf-8"))

    assert config["runner"]["postScriptGC"] is False
    assert config["server"]["address"] == "127.0.0.1"
    assert config["browser"]["gatherUsageStats"] is False


def test_before_the_first_run_the_page_shows_a_recorded_one_with_machine_and_date(
    page: AppTest,
) -> None:
    [trace] = recorded_runs(FIRST_RUN)

    [label] = [text.value for text in page.markdown if "recorded run" in text.value]

    assert trace.info.device.name in label
    assert str(trace.info.started_at.year) in label
    assert str(panel_data(page)["run_id"]) == f"file-{trace.info.run_id}"


def test_a_reload_keeps_the_settings_of_the_run_on_screen(page: AppTest) -> None:
    """After a reload Maximum new tokens said 64 beside a run of 120."""
    page.number_input(key="max_new_tokens").set_value(120)
    page.number_input(key="chunk_tokens").set_value(2)
    page.toggle(key="template").set_value(False)
    run = start(page, "hello")

    reloaded = AppTest.from_file(SCRIPT, default_timeout=30)
    reloaded.query_params["run"] = run.run_id
    reloaded.run()

    assert not reloaded.exception
    assert reloaded.text_area(key="prompt").value == "hello"
    assert reloaded.number_input(key="max_new_tokens").value == 120
    assert reloaded.number_input(key="chunk_tokens").value == 2
    assert reloaded.toggle(key="template").value is False


def test_one_press_makes_all_settings_as_by_default(page: AppTest) -> None:
    assert page.button(key="reset-settings").disabled
    page.number_input(key="max_new_tokens").set_value(120).run()
    page.segmented_control(key="choice").set_value("sampling").run()
    page.text_area(key="prompt").set_value("mine").run()
    assert any("2 settings differ from the defaults" in one.value for one in page.caption)

    page.button(key="reset-settings").click().run()

    assert page.number_input(key="max_new_tokens").value == 64
    assert page.segmented_control(key="choice").value == "greedy"
    assert page.text_area(key="prompt").value == "mine"
    assert page.button(key="reset-settings").disabled


def test_every_model_is_offered_once_and_says_whether_it_is_here(page: AppTest) -> None:
    options = page.selectbox(key="model").options

    assert len({option.partition(" (")[0] for option in options}) == len(options)
    assert options[0] == "SmolLM2-135M-Instruct (default)"
    missing = [option for option in options if option.endswith("(not on this machine)")]
    assert missing
    page.selectbox(key="model").set_value("Qwen/Qwen3-0.6B").run()
    assert any("not on this machine" in caption.value for caption in page.caption)
