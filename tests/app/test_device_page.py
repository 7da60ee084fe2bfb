"""The Device page in AppTest, on a scripted engine."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from inference.process.messages import RunEnded, Sampled
from inference.records.model import DeviceOption
from inference.records.options import DecodeMode, DecodeOption
from inference.records.status import RunState
from inference.records.telemetry import TelemetrySample
from inference.runs.recordings import FIRST_RUN, recorded_runs
from tests.app.stage import STAGE
from tests.builders import DEFAULT_LOAD, model_ready
from tests.visuals.live_doubles import HubUnderTest

pytestmark = pytest.mark.app

SCRIPT = str(Path(__file__).with_name("device_script.py"))
NO_GPU = "a CUDA graph needs an NVIDIA GPU, and this run is on the CPU"


@pytest.fixture
def hub() -> HubUnderTest:
    STAGE.under_test = HubUnderTest()
    STAGE.under_test.hub.preload(DEFAULT_LOAD)
    ready = replace(
        model_ready(),
        devices=(DeviceOption(name="cpu", label="cpu \u00b7 a test machine"),),
        decodes=(
            DecodeOption(mode=DecodeMode.EAGER),
            DecodeOption(mode=DecodeMode.GRAPH, reason=NO_GPU),
        ),
        device_note="Runs on cpu (torch finds no GPU here) in float32 (the default there).",
    )
    STAGE.under_test.engine.reply(ready)
    return STAGE.under_test


def page() -> AppTest:
    return AppTest.from_file(SCRIPT, default_timeout=30).run()


def test_the_page_says_what_was_chosen_and_what_cannot_be_had(hub: HubUnderTest) -> None:
    assert hub.hub.engine_status().ready is not None

    shown = page()

    assert not shown.exception
    assert "Runs on cpu (torch finds no GPU here)" in shown.markdown[0].value
    [devices, decodes, *_of_the_recorded_run] = (one.proto.body for one in shown.get("html"))
    assert "<td>cpu</td>" in devices
    assert "<td>available</td>" in decodes
    assert f"<td>{escape(NO_GPU)}</td>" in decodes


def test_before_the_first_run_a_recorded_one_is_shown_and_said_to_be(hub: HubUnderTest) -> None:
    [trace] = recorded_runs(FIRST_RUN)

    shown = page()

    [label] = [text.value for text in shown.markdown if "recorded run" in text.value]
    assert trace.info.device.name in label
    assert "Start a run on the **Live** page" in label
    assert any(text.value == "##### Host and device" for text in shown.markdown)
    run = hub.begin()
    assert not [text for text in page().markdown if "recorded run" in text.value]
    run.is_kept = False  # as the tour's are, of a token or two
    assert [text for text in page().markdown if "recorded run" in text.value]


def test_a_run_is_shown_with_its_disturbances_and_its_counters(hub: HubUnderTest) -> None:
    run = hub.begin()
    for index, letter in enumerate("abcd"):
        hub.step(run, index, letter)
    sample = TelemetrySample(at_s=0.5, temperature_c=60.0, throttle_reasons=("power limit",))
    hub.engine.reply(Sampled(run_id=run.run_id, sample=sample))
    hub.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))

    shown = page()

    assert not shown.exception
    assert "clocks were held down in 1 of 1 samples (power limit)" in shown.warning[0].value
    [chart] = shown.get("vega_lite_chart")
    assert "temperature" in chart.proto.spec
    assert not any("Energy" in one.value for one in shown.markdown)  # nothing read it
    assert shown.selectbox(key="device-run").value == run.run_id


def test_before_a_model_is_loaded_the_page_waits() -> None:
    STAGE.under_test = HubUnderTest()

    shown = page()

    assert not shown.exception
    assert shown.info[0].value.startswith("No model is loaded yet")


def test_the_device_and_the_way_to_decode_are_chosen_in_the_settings(hub: HubUnderTest) -> None:
    live = AppTest.from_file(
        str(Path(__file__).with_name("live_script.py")), default_timeout=30
    ).run()

    live.selectbox(key="decode").select(DecodeMode.GRAPH).run()

    assert any(f"Not available here: {NO_GPU}" in one.value for one in live.caption)
    assert live.selectbox(key="device").options == ["auto", "cpu \u00b7 a test machine"]
    live.text_area(key="prompt").input("hello")
    live.number_input(key="max_new_tokens").set_value(4)
    live.button(key="start").click().run()
    assert not live.exception
    assert hub.generates()[-1].decode is DecodeMode.GRAPH
