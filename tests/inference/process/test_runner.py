"""One run on a tiny model and a sink that notes what it gets: order, ends and what is let go."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from inference.engine.loop import PLAIN, GenerationOptions
from inference.models.loading import load_model
from inference.process.runner import Runner, RunPlan, part_meter
from inference.records.errors import InputError
from inference.records.options import BatchPlan, CacheKind, DecodeMode, Policy, Sampling
from inference.records.run import Request, RunInfo
from inference.records.status import LoadStage, RunState
from inference.records.steps import StepEvent
from inference.records.telemetry import TelemetrySample, Unavailable

REQUEST = Request(
    request_id="r0",
    prompt_text="",
    prompt_ids=(5, 9, 120),
    max_new_tokens=3,
    sampling=Sampling(),
)
PLAN = RunPlan(run_id="run", requests=(REQUEST,), seed=0, options=PLAIN)


class NotingSink:
    """Lets a number of steps begin, and notes each call but the samples."""

    def __init__(self, steps: int = 99) -> None:
        self.calls: list[str] = []
        self.end: tuple[RunState, str] | None = None
        self._steps = steps

    def preparing(self, stage: LoadStage) -> None:
        self.calls.append(stage.stage)

    def started(self, info: RunInfo) -> None:
        self.calls.append(f"started {info.run_id}")

    def may_step(self) -> bool:
        self.calls.append("may step")
        self._steps -= 1
        return self._steps >= 0

    def idle(self, seconds: float) -> bool:
        self.calls.append(f"idle {seconds:g}")
        return False

    def stepped(self, event: StepEvent) -> None:
        self.calls.append(f"step {event.index}")

    def sampled(self, sample: TelemetrySample) -> None:
        pass

    def ended(self, state: RunState, message: str, unavailable: tuple[Unavailable, ...]) -> None:
        del unavailable
        self.calls.append("ended")
        self.end = (state, message)


class HoldingSink(NotingSink):
    """Takes its time before the run, and notes when each step was over since then."""

    HELD_S = 0.5

    def __init__(self, now_s: Callable[[], float]) -> None:
        super().__init__()
        self.began_s = 0.0
        self.seen: list[tuple[float, float]] = []  # on the run's own time, and since it was let go
        self._now_s = now_s

    def started(self, info: RunInfo) -> None:
        super().started(info)
        time.sleep(self.HELD_S)
        self.began_s = self._now_s()

    def stepped(self, event: StepEvent) -> None:
        super().stepped(event)
        self.seen.append((event.started_s, self._now_s() - self.began_s))


class InterruptedSink(NotingSink):
    """Is interrupted from the keyboard after the first step."""

    def stepped(self, event: StepEvent) -> None:
        super().stepped(event)
        raise KeyboardInterrupt


@pytest.fixture(scope="module")
def runner(tiny_model_folder: Path) -> Runner:
    loaded = load_model(
        str(tiny_model_folder), dtype="float32", device="cpu", on_stage=lambda _stage: None
    )
    return Runner(replace(loaded, eos_ids=frozenset()))


def test_parts_of_steps_are_timed_on_one_device_only(tiny_model_folder: Path) -> None:
    loaded = load_model(
        str(tiny_model_folder), dtype="float32", device="cpu", on_stage=lambda _stage: None
    )
    assert part_meter(loaded.model) is not None
    layers = getattr(loaded.model.get_decoder(), "layers")  # noqa: B009  not typed

    layers[-1].to("meta")

    assert part_meter(loaded.model) is None


def test_the_sink_is_asked_before_each_step_and_not_after_the_last(runner: Runner) -> None:
    sink = NotingSink()

    runner.run(PLAN, sink)

    steps = [call for index in range(3) for call in ("may step", f"step {index}")]
    assert sink.calls == ["started run", *steps, "ended"]
    assert sink.end == (RunState.DONE, "")


def test_a_run_ends_where_the_sink_says_so(runner: Runner) -> None:
    sink = NotingSink(steps=1)

    runner.run(PLAN, sink)

    assert sink.calls == ["started run", "may step", "step 0", "may step", "ended"]
    assert sink.end == (RunState.STOPPED, "stopped by the user")


def test_a_wait_for_a_request_that_is_ended_stops_the_run(runner: Runner) -> None:
    sink = NotingSink()
    late = replace(REQUEST, arrival_s=5.0)
    options = GenerationOptions(plan=BatchPlan(policy=Policy.CONTINUOUS, slots=1))

    runner.run(replace(PLAN, requests=(late,), options=options), sink)

    assert sink.calls == ["started run", "may step", "idle 5", "ended"]
    assert sink.end == (RunState.STOPPED, "stopped by the user")


def test_options_that_cannot_be_met_fail_the_run_with_their_sentence(runner: Runner) -> None:
    sink = NotingSink()
    plan = BatchPlan(policy=Policy.CONTINUOUS)
    options = GenerationOptions(cache=CacheKind.STATIC, plan=plan)

    runner.run(replace(PLAN, options=options), sink)

    assert sink.end is not None
    assert sink.end[0] is RunState.FAILED
    assert "rows cannot come and go in a static cache" in sink.end[1]


def test_an_interrupted_run_keeps_its_steps_and_is_stopped(runner: Runner) -> None:
    sink = InterruptedSink()

    runner.run(PLAN, sink)

    assert sink.calls[-2:] == ["step 0", "ended"]
    assert sink.end == (RunState.STOPPED, "interrupted")


def test_what_is_made_ready_is_said_before_the_run_starts(runner: Runner) -> None:
    sink = NotingSink()

    runner.run(replace(PLAN, options=GenerationOptions(decode=DecodeMode.GRAPH)), sink)

    assert sink.calls[:2] == ["recording the decode step", "started run"]


def test_a_run_that_has_ended_is_not_held_by_the_engine(runner: Runner) -> None:
    sink = NotingSink()
    runner.run(PLAN, sink)
    held = weakref.ref(sink)

    del sink
    gc.collect()

    assert held() is None


def test_the_wait_before_a_run_begins_is_before_its_clock(runner: Runner) -> None:
    """It would stand in the timeline, and in the readings, of every run started on a page."""
    sink = HoldingSink(runner.clock.now_s)

    runner.run(PLAN, sink)

    assert len(sink.seen) == 3
    assert all(on_run_s <= since_s for on_run_s, since_s in sink.seen)


def test_room_is_asked_for_before_a_step_takes_it_and_steps_kept_give_way(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The static cache of the run's own step was counted as used, and then asked for again."""
    calls: list[str] = []
    has_kept = [True]

    def check(*_args: object, **_options: object) -> None:
        calls.append("room?")
        if has_kept[0]:
            msg = "no room"
            raise InputError(msg)

    def release() -> bool:
        calls.append("release")
        had_some, has_kept[0] = has_kept[0], False
        return had_some

    def prepare(requests: object, options: GenerationOptions) -> tuple[GenerationOptions, str]:
        calls.append("prepare" if requests else "prepare nothing")
        return options, ""

    monkeypatch.setattr("inference.process.runner.check_memory", check)
    monkeypatch.setattr(runner.backend, "release_prepared", release)
    monkeypatch.setattr(runner.engine, "prepare", prepare)
    sink = NotingSink()

    runner.run(PLAN, sink)

    assert calls == ["room?", "release", "room?", "prepare"]
    assert sink.end == (RunState.DONE, "")


def test_a_run_without_room_is_refused_and_prepares_nothing(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(*_args: object, **_options: object) -> None:
        msg = "no room"
        raise InputError(msg)

    monkeypatch.setattr("inference.process.runner.check_memory", check)
    sink = NotingSink()

    runner.run(PLAN, sink)

    assert sink.calls == ["started run", "ended"]
    assert sink.end == (RunState.FAILED, "no room")
