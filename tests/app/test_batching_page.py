"""The Batching page, and the batch of the Live page, in AppTest on a scripted engine."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.ipc
import pytest
from streamlit.testing.v1 import AppTest

from inference.counting.public_shapes import public_shape
from inference.process.messages import (
    Generate,
    MeasureEnded,
    Measuring,
    ModelReady,
    RunEnded,
    RunStarted,
    Stepped,
    StopMeasuring,
    SweepBatches,
)
from inference.records.batches import BatchSweep, BatchTiming, SkippedPoint
from inference.records.options import BatchPlan, Padding, Policy
from inference.records.run import RunTrace
from inference.records.status import LoadStage, RunState
from inference.records.steps import Phase
from inference.runs.recordings import BATCH, recorded_measurements, recorded_runs
from tests.app.stage import STAGE, shown
from tests.builders import DEFAULT_LOAD, TINY_DEVICE, model_ready
from tests.visuals.batches import batch_trace
from tests.visuals.live_doubles import HubUnderTest
from visuals.pages.batch_setup import split_prompts
from visuals.pages.run_settings import BatchSource

pytestmark = pytest.mark.app

FOLDER = Path(__file__).parent
SHAPE = public_shape("Llama-3.1-8B", "bfloat16")


def ready() -> ModelReady:
    return replace(model_ready(context_limit=4096), shape=SHAPE)


@pytest.fixture
def hub() -> HubUnderTest:
    STAGE.under_test = HubUnderTest()
    STAGE.under_test.hub.preload(DEFAULT_LOAD)
    STAGE.under_test.engine.reply(ready())
    return STAGE.under_test


def open_page(script: str, hub: HubUnderTest) -> AppTest:
    assert hub is STAGE.under_test
    page = AppTest.from_file(str(FOLDER / script), default_timeout=30).run()
    assert not page.exception
    return page


@pytest.fixture
def page(hub: HubUnderTest) -> AppTest:
    return open_page("batching_script.py", hub)


@pytest.fixture
def live(hub: HubUnderTest) -> AppTest:
    return open_page("live_script.py", hub)


def sweep(*batches: int, is_whole: bool = True) -> BatchSweep:
    return BatchSweep(
        model_id="tiny",
        shape=SHAPE,
        device=TINY_DEVICE,
        measured_at=datetime(2026, 1, 2, tzinfo=UTC),
        points=tuple(
            BatchTiming(
                batch=batch,
                context_tokens=64,
                best_s=0.01,
                median_s=0.01,
                worst_s=0.01,
                repeats=3,
                used_bytes=1,
            )
            for batch in batches
        ),
        left_out=(SkippedPoint(batch=8, context_tokens=64, reason="no room"),),
        is_whole=is_whole,
    )


def texts(page: AppTest) -> str:
    blocks = (*page.markdown, *page.caption, *page.info, *page.warning, *page.error)
    return "\n".join(shown(block.value) for block in blocks)


def rows_of(page: AppTest, name: str, *, at: int = 0) -> list[dict[str, object]]:
    """Return a chart's rows by the name of their data, and by its place among several such."""
    found = [
        pyarrow.ipc.open_stream(one.data.data).read_all().to_pylist()
        for chart in page.get("vega_lite_chart")
        for one in chart.proto.datasets
        if one.name == name
    ]
    return found[at]


def press_batch(live: AppTest, source: str, prompt: str = "hello") -> Generate:
    live.text_area(key="prompt").set_value(prompt)
    live.selectbox(key="batch_source").set_value(source).run()
    live.button(key="start").click().run()
    [command] = [c for c in STAGE.under_test.engine.commands if isinstance(c, Generate)]
    return command


def test_the_sweep_is_ordered_with_the_batches_and_contexts_chosen(
    page: AppTest, hub: HubUnderTest
) -> None:
    page.button(key="batches-start").click().run()

    assert hub.engine.commands[-1] == SweepBatches(batches=(1, 2, 4, 8), contexts=(64, 512, 2048))


def test_partial_results_are_shown_while_the_sweep_goes_and_kept_when_it_is_stopped(
    page: AppTest, hub: HubUnderTest
) -> None:
    page.button(key="batches-start").click().run()
    stage = LoadStage(stage="2 of 12 points", ratio=1 / 6)
    hub.engine.reply(Measuring(stage=stage, batches=sweep(1, 2, is_whole=False)))

    page.run()
    assert [row["batch"] for row in rows_of(page, "batch_times")] == [1, 2]
    page.button(key="batches-stop").click().run()

    assert isinstance(hub.engine.commands[-1], StopMeasuring)
    hub.engine.reply(MeasureEnded(batches=sweep(1, 2, is_whole=False), sentence="stopped; kept"))
    page.run()
    assert not page.exception
    assert [row["batch"] for row in rows_of(page, "batch_times")] == [1, 2]
    assert "stopped; kept" in texts(page)


def test_what_was_left_out_is_said_with_its_reason(page: AppTest, hub: HubUnderTest) -> None:
    page.button(key="batches-start").click().run()
    hub.engine.reply(MeasureEnded(batches=sweep(1, 4)))

    page.run()

    assert "8 rows at 64 tokens left out: no room." in texts(page)
    assert "from 1 to 4 rows, **4 times** the tokens/s" in texts(page)


def test_a_sweep_of_another_model_is_not_shown_for_this_one(
    page: AppTest, hub: HubUnderTest
) -> None:
    other = replace(sweep(1, 2), shape=public_shape("Llama-3.1-8B", "float32"))
    page.button(key="batches-start").click().run()
    hub.engine.reply(MeasureEnded(batches=other))

    page.run()

    assert "A recorded sweep" in texts(page)
    assert "Press **Measure the sweep**" in texts(page)


def test_before_anything_was_measured_a_recorded_sweep_is_drawn_and_gives_way_to_ones_own(
    page: AppTest, hub: HubUnderTest
) -> None:
    """The page opened empty."""
    measured = recorded_measurements()
    assert measured is not None
    assert measured.batches.device.name in texts(page)
    assert {row["source"] for row in rows_of(page, "batch_times")} == {"measured", "counted"}

    page.button(key="batches-start").click().run()
    hub.engine.reply(MeasureEnded(batches=sweep(1, 2)))
    page.run()

    assert "A recorded sweep" not in texts(page)


def test_roofs_of_ones_own_do_not_drive_out_the_recorded_sweep(
    page: AppTest, hub: HubUnderTest
) -> None:
    """They are measured automatically; what a sweep shows would then never be seen."""
    measured = recorded_measurements()
    assert measured is not None
    hub.engine.reply(replace(ready(), ceilings=measured.ceilings))

    page.run()

    assert "Where the benefit ends" in texts(page)
    assert "A recorded sweep" in texts(page)
    assert {row["source"] for row in rows_of(page, "batch_times")} == {"counted"}
    assert {row["source"] for row in rows_of(page, "batch_times", at=1)} == {"measured", "counted"}


def test_while_the_model_loads_the_recorded_sweep_is_there() -> None:
    STAGE.under_test = HubUnderTest()
    STAGE.under_test.hub.preload(DEFAULT_LOAD)

    page = open_page("batching_script.py", STAGE.under_test)

    assert "Once the model is loaded, press **Measure the sweep**" in texts(page)


def test_a_device_that_is_not_here_is_counted_from_its_data_sheet(page: AppTest) -> None:
    rows = rows_of(page, "batch_rates", at=-1)

    assert {row["source"] for row in rows} == {"counted"}
    assert "**datasheet**" in texts(page)
    assert "Everything here is **counted**" in texts(page)


def finished_run(hub: HubUnderTest, live: AppTest, trace: RunTrace) -> None:
    """Play a run of three requests on the scripted engine."""
    live.number_input(key="batch_count").set_value(len(trace.requests)).run()
    command = press_batch(live, BatchSource.SAME)
    hub.engine.reply(RunStarted(info=replace(trace.info, run_id=command.run_id)))
    for event in trace.events:
        hub.engine.reply(Stepped(run_id=command.run_id, event=event))
    hub.engine.reply(RunEnded(run_id=command.run_id, state=RunState.DONE))


def test_each_request_of_a_batched_run_has_its_latency_and_the_run_its_goodput(
    live: AppTest, hub: HubUnderTest
) -> None:
    live.selectbox(key="batch_source").set_value(BatchSource.SAME).run()
    finished_run(hub, live, batch_trace(BatchPlan(policy=Policy.CONTINUOUS, slots=2)))

    page = open_page("batching_script.py", hub)

    [table] = [one.proto.body for one in page.get("html") if "Latency of each" in one.proto.body]
    assert table.count("<tr>") == 1 + 3
    assert rows_of(page, "slot_spans")
    page.number_input(key="br-ttft").set_value(0.6)
    page.number_input(key="br-tpot").set_value(5000.0).run()
    [metric] = page.metric
    assert metric.delta == "1 of 3 finished requests"
    assert "Neither good nor bad" not in texts(page)


def test_requests_whose_every_decode_step_was_observed_are_said_to_be_undecided(
    live: AppTest, hub: HubUnderTest
) -> None:
    live.selectbox(key="batch_source").set_value(BatchSource.SAME).run()
    trace = batch_trace(BatchPlan(policy=Policy.CONTINUOUS, slots=2))
    observed = tuple(replace(one, observed=one.phase is Phase.DECODE) for one in trace.events)
    finished_run(hub, live, replace(trace, events=observed))

    page = open_page("batching_script.py", hub)

    page.number_input(key="br-ttft").set_value(600.0).run()
    [metric] = page.metric
    assert (metric.value, metric.delta) == ("\u2013", "0 of 3 finished requests, 3 undecided")
    assert "Neither good nor bad: 3 requests" in texts(page)


def test_without_a_batched_run_a_recorded_one_is_shown_and_how_to_make_ones_own(
    page: AppTest,
) -> None:
    [batch] = recorded_runs(BATCH)

    assert "A recorded batch" in texts(page)
    assert "on the Live page choose Batch" in texts(page)
    assert batch.info.run_id in page.selectbox(key="br-run").value


def test_the_same_prompt_runs_as_often_as_asked_under_the_plan_chosen(live: AppTest) -> None:
    live.selectbox(key="batch_source").set_value(BatchSource.SAME).run()
    live.number_input(key="batch_count").set_value(3)
    live.selectbox(key="batch_policy").set_value(Policy.CONTINUOUS)
    live.number_input(key="batch_slots").set_value(2)
    live.number_input(key="batch_gap").set_value(1.5).run()

    command = press_batch(live, BatchSource.SAME)

    assert [one.prompt_text for one in command.requests] == ["hello"] * 3
    assert [one.arrival_s for one in command.requests] == [0.0, 1.5, 3.0]
    assert command.plan == BatchPlan(policy=Policy.CONTINUOUS, slots=2, padding=Padding.LEFT)


def test_each_prompt_can_have_an_arrival_time_of_its_own(live: AppTest) -> None:
    live.selectbox(key="batch_source").set_value(BatchSource.SAME).run()
    live.number_input(key="batch_count").set_value(3).run()
    live.text_input(key="batch_arrivals").set_value("0, 2.5, 1").run()

    command = press_batch(live, BatchSource.SAME)

    assert not live.exception
    assert [one.arrival_s for one in command.requests] == [0.0, 2.5, 1.0]


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("0, 1", "2 arrival times for 3 prompts"),
        ("0, soon, 2", "numbers of seconds"),
        ("0, -1, 2", "request 2 arrives at -1 s; the run begins at 0 s"),
        ("0, inf, 2", "request 2 arrives at inf s"),
    ],
    ids=["too few", "no number", "in the past", "never"],
)
def test_arrival_times_that_cannot_be_are_refused_and_nothing_is_run(
    live: AppTest, typed: str, sentence: str
) -> None:
    live.selectbox(key="batch_source").set_value(BatchSource.SAME).run()
    live.number_input(key="batch_count").set_value(3).run()
    live.text_input(key="batch_arrivals").set_value(typed).run()
    live.button(key="start").click().run()

    assert not live.exception
    assert any(sentence in error.value for error in live.error)
    assert not [c for c in STAGE.under_test.engine.commands if isinstance(c, Generate)]


def test_typed_prompts_are_parted_by_the_mark(live: AppTest) -> None:
    command = press_batch(live, BatchSource.TYPED, "one\nmore\n---\ntwo\n ---\n\n---\nthree")

    assert [one.prompt_text for one in command.requests] == ["one\nmore", "two", "three"]


def test_the_examples_run_together(live: AppTest) -> None:
    command = press_batch(live, BatchSource.EXAMPLES)

    assert len({one.prompt_text for one in command.requests}) == len(command.requests) == 4


def test_zero_rows_are_refused_with_a_sentence(live: AppTest) -> None:
    live.text_area(key="prompt").set_value("---\n---")
    live.selectbox(key="batch_source").set_value(BatchSource.TYPED).run()

    live.button(key="start").click().run()

    assert "no prompt was given" in texts(live)
    assert not [c for c in STAGE.under_test.engine.commands if isinstance(c, Generate)]


def test_the_row_that_is_too_long_is_named_and_nothing_is_run(live: AppTest) -> None:
    live.text_area(key="prompt").set_value("short\n---\n" + "long " * 1000)
    live.selectbox(key="batch_source").set_value(BatchSource.TYPED).run()

    live.button(key="start").click().run()

    assert "prompt 2 of 2: prompt has" in texts(live)
    assert not [c for c in STAGE.under_test.engine.commands if isinstance(c, Generate)]


def test_the_memory_of_the_batch_is_counted_before_it_starts(live: AppTest) -> None:
    live.selectbox(key="batch_source").set_value(BatchSource.SAME).run()

    assert "4 rows of up to" in texts(live)
    assert "of keys and values" in texts(live)


@pytest.mark.parametrize(
    ("text", "prompts"),
    [("a\n---\nb", ("a", "b")), ("a", ("a",)), ("", ()), ("---", ()), ("a --- b", ("a --- b",))],
)
def test_prompts_are_split_at_lines_that_hold_the_mark_alone(
    text: str, prompts: tuple[str, ...]
) -> None:
    assert split_prompts(text) == prompts
