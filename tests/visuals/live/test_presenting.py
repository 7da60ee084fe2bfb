"""Who presents, what all who follow are shown, and what others are told who mean to steer."""

from __future__ import annotations

import pytest

from inference.process.messages import Action, Control, RunEnded, StateChanged
from inference.records.status import RunState
from tests.visuals.live_doubles import HubUnderTest
from visuals.live.live_run import LiveRun
from visuals.live.presenting import FIRST_PANELS, Pointer, Presenting, Seat, known_panels
from visuals.words.presenter import ONLY_FOLLOWING, RUN_NOT_HERE, TAKEN_OVER

STEPS = "abc"


class Room:
    """A presentation with a run of three steps, and the seats that a test has sat down."""

    def __init__(self, state: RunState = RunState.DONE) -> None:
        self.under_test = HubUnderTest()
        self.presenting = Presenting(self.under_test.hub)
        self.woken: list[Seat] = []
        self.run = self.under_test.begin()
        for index, letter in enumerate(STEPS):
            self.under_test.step(self.run, index, letter)
        if state.is_final:
            self.under_test.engine.reply(RunEnded(run_id=self.run.run_id, state=state))
        else:
            self.under_test.engine.reply(StateChanged(run_id=self.run.run_id, state=state))

    def seat(self, *, may_present: bool = False) -> Seat:
        seat = Seat(wake=lambda: self.woken.append(seat), may_present=may_present)
        self.presenting.sit(seat)
        return seat

    def presenter(self) -> Seat:
        seat = self.seat(may_present=True)
        self.presenting.take(seat, self.run)
        return seat

    def steps_shown(self) -> int:
        now = self.presenting.current
        assert now is not None
        shown = self.under_test.hub.find(now.shown_id)
        assert shown is not None
        trace = self.under_test.hub.snapshot(shown)
        return 0 if trace is None else len(trace.events)

    def steered(self) -> list[Action]:
        """Return what the engine was told to do with the run."""
        sent = self.under_test.engine.commands
        return [one.action for one in sent if isinstance(one, Control)]


def shown_run(room: Room) -> LiveRun | None:
    now = room.presenting.current
    return room.under_test.hub.find(now.shown_id) if now is not None else None


def test_nobody_presents_until_somebody_takes_it_and_all_are_woken_by_what_changes() -> None:
    room = Room()
    assert room.presenting.current is None
    viewer = room.seat()

    seat = room.presenter()
    room.presenting.show(seat, panels=("mask", "kv"), is_dark=True)
    room.presenting.point(seat, Pointer(panel="mask", x=0.25, y=0.5))

    now = room.presenting.current
    assert now is not None
    assert (now.run_id, now.shown_id) == (room.run.run_id, room.run.run_id)
    assert (now.panels, now.is_dark, now.pointer) == (
        ("mask", "kv"),
        True,
        Pointer(panel="mask", x=0.25, y=0.5),
    )
    assert room.woken.count(viewer) == 3
    room.presenting.show(seat, panels=("mask", "kv"))
    assert room.woken.count(viewer) == 3, "nothing has changed"


def test_other_panels_take_the_ring_away() -> None:
    room = Room()
    seat = room.presenter()
    room.presenting.point(seat, Pointer(panel="mask", x=0.25, y=0.5))

    room.presenting.show(seat, panels=("kv",))

    assert room.presenting.current is not None
    assert room.presenting.current.pointer is None


def test_a_viewer_steers_nothing_and_is_told_so() -> None:
    room = Room(RunState.PAUSED)
    room.presenter()
    before, viewer = room.presenting.current, room.seat()

    for press in (
        lambda: room.presenting.take(viewer, room.run),
        lambda: room.presenting.show(viewer, panels=("kv",)),
        lambda: room.presenting.point(viewer, Pointer(panel="kv", x=0, y=0)),
        lambda: room.presenting.forward(viewer),
        lambda: room.presenting.back(viewer),
    ):
        press()
        assert viewer.sentences.popleft() == ONLY_FOLLOWING
    room.presenting.leave(viewer)

    assert room.presenting.current == before
    assert room.steered() == []


def test_of_two_presenters_the_newest_holds_and_the_other_is_told() -> None:
    room = Room()
    first = room.presenter()
    room.presenting.show(first, panels=("roofline",), is_dark=True)

    second = room.presenter()

    assert room.presenting.holds(second)
    assert list(first.sentences) == [TAKEN_OVER]
    assert room.presenting.current is not None
    assert room.presenting.current.panels == ("roofline",), "nobody's picture jumps"
    assert room.presenting.current.is_dark
    room.presenting.show(first, panels=("kv",))
    room.presenting.leave(first)
    assert room.presenting.current.panels == ("roofline",)
    assert list(first.sentences) == [TAKEN_OVER, TAKEN_OVER]
    room.presenting.leave(second)
    assert room.presenting.current is None


def test_panels_that_a_presenter_names_come_before_those_shown() -> None:
    room = Room()
    room.presenter()
    second = room.seat(may_present=True)

    room.presenting.take(second, room.run, ("kv",), is_dark=True)

    assert room.presenting.current is not None
    assert (room.presenting.current.panels, room.presenting.current.is_dark) == (("kv",), True)


def test_a_finished_run_is_looked_at_step_by_step_backwards_and_forwards() -> None:
    room = Room()
    seat = room.presenter()

    shown: list[int] = []
    for press in (room.presenting.back, room.presenting.back, room.presenting.back):
        press(seat)
        shown.append(room.steps_shown())
    earlier = shown_run(room)
    assert earlier is not None
    assert earlier.state is RunState.PAUSED
    for press in (room.presenting.forward, room.presenting.forward):
        press(seat)
        shown.append(room.steps_shown())

    assert shown == [2, 1, 1, 2, 3]
    assert shown_run(room) is room.run
    room.presenting.forward(seat)
    assert shown_run(room) is room.run, "there is nothing after the end"
    assert room.steered() == []


def test_all_steps_looked_at_are_of_one_trace() -> None:
    """So that attention weights, once captured of it, are there for all of them."""
    room = Room()
    seat = room.presenter()
    room.presenting.back(seat)
    first = shown_run(room)
    room.presenting.back(seat)
    second = shown_run(room)

    assert first is not second
    assert first is not None
    assert second is not None
    assert first.attention_key == second.attention_key


def test_a_paused_run_does_one_step_more_and_one_that_goes_on_is_held_first() -> None:
    room = Room(RunState.PAUSED)
    seat = room.presenter()
    room.presenting.forward(seat)
    assert room.steered() == [Action.STEP]
    room.presenting.back(seat)
    assert room.steps_shown() == 2
    room.presenting.forward(seat)
    assert shown_run(room) is room.run
    assert room.steered() == [Action.STEP]

    going = Room(RunState.RUNNING)
    presenter = going.presenter()
    going.presenting.back(presenter)
    assert going.steered() == [Action.PAUSE]
    assert shown_run(going) is going.run


def test_another_run_of_the_presenters_page_is_followed() -> None:
    room = Room()
    seat = room.presenter()
    room.presenting.back(seat)
    other = room.under_test.begin("other")

    room.presenting.show(seat, run=other)

    assert shown_run(room) is other
    room.presenting.show(seat, run=other, panels=("kv",))
    assert shown_run(room) is other


def test_a_run_that_is_gone_is_said() -> None:
    room = Room()
    seat = room.presenter()
    del room.under_test.hub._registry._runs[room.run.run_id]

    room.presenting.back(seat)

    assert list(seat.sentences) == [RUN_NOT_HERE]


def test_a_run_stays_watched_while_an_earlier_step_of_it_is_drawn() -> None:
    room = Room(RunState.PAUSED)
    seat = room.presenter()
    room.presenting.back(seat)
    room.under_test.time_s += 1000.0

    room.presenting.touch(room.seat())
    assert room.run.last_seen_s < room.under_test.time_s
    room.presenting.touch(seat)

    assert room.run.last_seen_s == room.under_test.time_s


def test_a_run_that_goes_on_again_is_shown_itself() -> None:
    room = Room(RunState.PAUSED)
    seat = room.presenter()
    room.presenting.back(seat)
    room.presenting.touch(seat)
    assert room.steps_shown() == 2

    state = StateChanged(run_id=room.run.run_id, state=RunState.RUNNING)
    room.under_test.engine.reply(state)
    room.presenting.touch(seat)

    assert shown_run(room) is room.run


@pytest.mark.parametrize(
    ("names", "panels"),
    [
        (["mask", "kv"], ("mask", "kv")),
        (["kv", "kv"], ("kv",)),
        (["mask", "kv", "tokens"], ("mask", "kv")),
        (["no-such", "kv", 7, None], ("kv",)),
        ("mask", ()),
        (None, ()),
    ],
)
def test_panels_are_known_by_name_two_at_most(names: object, panels: tuple[str, ...]) -> None:
    assert known_panels(names) == panels


def test_the_first_panels_are_known() -> None:
    assert known_panels(FIRST_PANELS) == FIRST_PANELS
