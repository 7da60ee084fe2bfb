"""The Roofline page in AppTest, on a scripted engine: roofs, the turn, and what if."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.ipc
import pytest
from streamlit.testing.v1 import AppTest

from inference.process.messages import MeasureCeilings, MeasureEnded, StopMeasuring, SweepTokens
from inference.runs.recordings import recorded_measurements
from tests.app.stage import STAGE
from tests.builders import DEFAULT_LOAD, model_ready
from tests.visuals.counted import COUNTED_SHAPE
from tests.visuals.counted import TOKEN_SWEEP as SWEEP
from tests.visuals.live_doubles import MEASURED, HubUnderTest
from visuals.charts.crossover import COUNTS
from visuals.live.idle_measuring import IDLE_S
from visuals.pages.device_choice import OWN_RATES, THIS_MACHINE

pytestmark = pytest.mark.app

SCRIPT = str(Path(__file__).with_name("roofline_script.py"))
READY = replace(model_ready(), shape=COUNTED_SHAPE)


@pytest.fixture
def hub() -> HubUnderTest:
    STAGE.under_test = HubUnderTest()
    STAGE.under_test.hub.preload(DEFAULT_LOAD)
    STAGE.under_test.engine.reply(READY)
    return STAGE.under_test


@pytest.fixture
def page(hub: HubUnderTest) -> AppTest:
    assert hub.hub.engine_status().ready is not None
    return AppTest.from_file(SCRIPT, default_timeout=30).run()


def metrics(page: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in page.metric}


def rows_of(page: AppTest, name: str) -> list[dict[str, Any]]:
    """Return the rows of the chart whose data have this name."""
    [rows] = [
        pyarrow.ipc.open_stream(data.data.data).read_all().to_pylist()
        for chart in page.get("vega_lite_chart")
        for data in chart.proto.datasets
        if data.name == name
    ]
    return rows


def number(text: str, unit: str) -> float:
    """Return the number of a figure in a unit; the figure must be in it, prefixes included."""
    value, said = text.split("\u00a0")
    assert said in (unit, f"k{unit}")
    return float(value.replace(",", "")) * (1000 if said == f"k{unit}" else 1)


def sentences(page: AppTest) -> str:
    shown = [*page.markdown, *page.info, *page.caption, *page.warning, *page.error]
    return "\n".join(element.value for element in shown)


def test_before_roofs_were_measured_the_page_says_so_and_offers_the_button(page: AppTest) -> None:
    assert not page.exception
    assert "The roofs are not measured yet on this machine" in sentences(page)
    assert not page.button(key="roofs-start").disabled
    assert page.button(key="roofs-stop").disabled


def test_until_roofs_are_measured_recorded_ones_are_drawn_and_said_to_be(
    page: AppTest, hub: HubUnderTest
) -> None:
    """The page opened empty."""
    measured = recorded_measurements()
    assert measured is not None
    assert "**Recorded roofs**" in sentences(page)
    assert "**A recorded crossover**" in sentences(page)
    assert measured.ceilings.device.name in sentences(page)
    assert rows_of(page, "here_roofs")

    hub.hub.measure(MeasureCeilings())
    hub.engine.reply(MeasureEnded(ceilings=MEASURED))
    page.run()

    assert "**Recorded roofs**" not in sentences(page)
    assert "**A recorded crossover**" not in sentences(page)


def test_while_the_model_loads_recorded_roofs_are_there_and_nothing_can_be_measured() -> None:
    STAGE.under_test = HubUnderTest()
    STAGE.under_test.hub.preload(DEFAULT_LOAD)

    page = AppTest.from_file(SCRIPT, default_timeout=30).run()

    assert not page.exception
    assert "**Recorded roofs**" in sentences(page)
    assert not [button for button in page.button if button.key == "roofs-start"]


def test_the_counted_crossover_is_said_to_be_the_ridge(page: AppTest, hub: HubUnderTest) -> None:
    hub.engine.reply(replace(READY, ceilings=MEASURED))
    page.run()

    assert (
        "this is the ridge of the roofline, 3.00\u00a0FLOP/byte, expressed in tokens"
        in sentences(page)
    )


def test_a_measurement_that_goes_by_itself_says_so(page: AppTest, hub: HubUnderTest) -> None:
    for _ in range(2):
        hub.hub.measure_when_idle(0.1)
        hub.time_s += IDLE_S + 1
    page.run()

    assert "Measured automatically while the engine is idle" in sentences(page)
    assert not page.button(key="roofs-stop").disabled


def test_the_button_measures_in_the_engine_and_the_stop_stops_it(
    page: AppTest, hub: HubUnderTest
) -> None:
    page.button(key="roofs-start").click().run()

    assert hub.engine.commands[-1] == MeasureCeilings()
    assert page.button(key="roofs-start").disabled
    assert page.get("progress")
    page.button(key="roofs-stop").click().run()
    assert hub.engine.commands[-1] == StopMeasuring()


def test_roofs_measured_on_a_busy_machine_are_said_to_be(page: AppTest, hub: HubUnderTest) -> None:
    calm = replace(MEASURED.reads[0], worst=1.6e9)
    busy = replace(MEASURED.reads[0], worst=0.6e9)
    quiet = replace(MEASURED, reads=(calm,), products=(calm,))
    hub.hub.measure(MeasureCeilings())
    hub.engine.reply(MeasureEnded(ceilings=quiet))
    page.run()
    assert not [one for one in page.warning if "something else was using this machine" in one.value]

    hub.hub.measure(MeasureCeilings())
    hub.engine.reply(MeasureEnded(ceilings=replace(quiet, reads=(busy,))))
    page.run()

    assert [one for one in page.warning if "something else was using this machine" in one.value]


def test_measured_roofs_are_shown_with_machine_and_spread(page: AppTest, hub: HubUnderTest) -> None:
    hub.hub.measure(MeasureCeilings())
    hub.engine.reply(MeasureEnded(ceilings=MEASURED))
    page.run()

    assert not page.exception
    assert metrics(page)["Memory read, measured"] == "2.00\u00a0GB/s"
    assert metrics(page)["Matrix product in float32, measured"] == "6.00\u00a0GFLOP/s"
    assert metrics(page)["Ridge point, where they meet, measured"] == "3.00\u00a0FLOP/byte"
    assert "a test machine, 1 thread" in sentences(page)
    assert page.button(key="roofs-start").label == "Measure again"


def test_roofs_kept_from_before_are_there_at_once(hub: HubUnderTest) -> None:
    hub.engine.reply(replace(READY, ceilings=MEASURED))

    page = AppTest.from_file(SCRIPT, default_timeout=30).run()

    assert metrics(page)["Memory read, measured"] == "2.00\u00a0GB/s"


def test_why_a_measurement_ended_is_a_sentence(page: AppTest, hub: HubUnderTest) -> None:
    hub.hub.measure(MeasureCeilings())
    hub.engine.reply(MeasureEnded(sentence="the memory of cpu is taken; free some of it"))
    page.run()

    assert "the memory of cpu is taken" in sentences(page)
    assert not page.button(key="roofs-start").disabled


def test_the_turn_is_counted_then_measured(page: AppTest, hub: HubUnderTest) -> None:
    hub.engine.reply(replace(READY, ceilings=MEASURED))
    page.run()
    assert "**Counted: " in sentences(page)

    page.button(key="sweep-start").click().run()
    assert hub.engine.commands[-1] == SweepTokens(counts=COUNTS)
    hub.engine.reply(MeasureEnded(sweep=SWEEP))
    page.run()

    assert not page.exception
    assert "**Measured: 26 tokens**" in sentences(page)


def test_the_reader_can_move_the_bottleneck(page: AppTest, hub: HubUnderTest) -> None:
    hub.engine.reply(replace(READY, ceilings=MEASURED))
    page.run()
    assert "**memory-bound**" in sentences(page)

    page.number_input(key="turn-fed").set_value(4000).run()

    assert not page.exception
    assert "**compute-bound**" in sentences(page)


def test_attention_can_be_counted_as_the_eager_kernel_does_it(
    page: AppTest, hub: HubUnderTest
) -> None:
    hub.engine.reply(replace(READY, ceilings=MEASURED))
    page.run()
    page.number_input(key="turn-fed").set_value(4000).run()
    causal = sentences(page)

    page.segmented_control(key="turn-attention").set_value("dense").run()

    assert not page.exception
    assert sentences(page) != causal


def test_what_if_is_counted_throughout_and_its_roofs_are_tagged(page: AppTest) -> None:
    assert metrics(page)["Inter-token latency (ITL), at least"].endswith("ms")
    assert "**datasheet**" in sentences(page)
    assert "**counted**" in sentences(page)
    roofs = rows_of(page, "whatif_roofs")
    assert len(roofs) >= 2
    assert {row["source"] for row in roofs} == {"datasheet"}


def test_a_larger_batch_takes_longer_and_gives_more_tokens(page: AppTest) -> None:
    single = metrics(page)

    page.number_input(key="wi-batch").set_value(64).run()

    assert not page.exception
    batch = metrics(page)
    assert number(batch["Inter-token latency (ITL), at least"], "ms") > number(
        single["Inter-token latency (ITL), at least"], "ms"
    )
    rate = "Whole batch, at most"
    assert number(batch[rate], "tok/s") > 2 * number(single[rate], "tok/s")


def test_a_device_without_a_rate_for_the_dtype_is_a_sentence(page: AppTest) -> None:
    page.selectbox(key="wi-device").set_value("T4").run()

    assert not page.exception
    assert "states no bfloat16 matrix rate" in page.error[0].value


def test_two_rates_of_ones_own_serve_as_a_device(page: AppTest) -> None:
    page.selectbox(key="wi-device").set_value(OWN_RATES).run()
    page.number_input(key="wi-gbs").set_value(1000.0).run()

    assert not page.exception
    assert "**entered**: two rates given by the user" in sentences(page)
    assert "datasheet" not in sentences(page)

    page.text_input(key="wi-called").set_value("my box").run()

    assert "**entered**: my box\\: two rates given by the user" in sentences(page)


def test_a_part_whose_vendor_states_no_rate_asks_for_one(page: AppTest) -> None:
    page.selectbox(key="wi-device").set_value("Apple M4 Max").run()

    assert not page.exception
    assert any("Enter its TFLOP/s" in one.value for one in page.info)

    page.number_input(key="wi-rate").set_value(30.0).run()

    assert "bandwidth; FLOP/s given by the user" in sentences(page)
    assert metrics(page)["Inter-token latency (ITL), at least"].endswith("ms")


def test_this_machine_is_a_device_once_it_was_measured(page: AppTest, hub: HubUnderTest) -> None:
    assert THIS_MACHINE not in page.selectbox(key="wi-device").options

    hub.engine.reply(replace(READY, ceilings=MEASURED))
    page.run()
    page.selectbox(key="wi-device").set_value(THIS_MACHINE).run()

    assert not page.exception
    assert "**measured**" in sentences(page)


def test_a_smaller_kv_dtype_needs_less_memory(page: AppTest) -> None:
    page.number_input(key="wi-context").set_value(100_000).run()
    before = metrics(page)["Memory needed"]

    page.selectbox(key="wi-kv").set_value("float8").run()

    assert float(metrics(page)["Memory needed"].split("\u00a0")[0]) < float(
        before.split("\u00a0")[0]
    )


@pytest.mark.parametrize("name", ["Mixtral-8x7B", "DeepSeek-V3", "gpt-oss-20b", "GPT-2"])
def test_every_kind_of_model_can_be_asked_about(page: AppTest, name: str) -> None:
    page.selectbox(key="wi-model").set_value(name).run()

    assert not page.exception
    assert metrics(page)["Memory needed"].endswith("GiB")


def test_a_model_that_does_not_fit_has_no_rate(page: AppTest) -> None:
    """DeepSeek-V3 on one H100 was headed 45.5 tok/s, though its weights are many times that.

    As published they are stored in 8 bits, which is the default; in bfloat16 they take twice that.
    """
    page.selectbox(key="wi-model").set_value("DeepSeek-V3").run()

    assert not page.exception
    timed = [value for label, value in metrics(page).items() if label.endswith(("least", "most"))]
    assert timed == ["\u2013"] * 4
    assert any("at least 8 such devices" in one.value for one in page.warning)

    stored = page.selectbox(key="wi-stored")
    assert stored.options[0].startswith("as published: FP8")
    stored.set_value(stored.options[1]).run()

    assert any("at least 16 such devices" in one.value for one in page.warning)
    assert rows_of(page, "whatif_roofs")


def test_memory_of_ones_own_tells_whether_it_fits(page: AppTest) -> None:
    page.selectbox(key="wi-device").set_value(OWN_RATES).run()
    assert metrics(page)["Inter-token latency (ITL), at least"].endswith("ms")

    page.number_input(key="wi-memory").set_value(8.0).run()

    assert metrics(page)["Inter-token latency (ITL), at least"] == "\u2013"
