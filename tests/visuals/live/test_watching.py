"""What a hub refuses to those who may only watch."""

from __future__ import annotations

import inspect

import pytest

from inference.process.messages import Action, Generate, LoadModel, MeasureCeilings, SplitSteps
from inference.records.attention import AttentionChoice
from inference.records.errors import InputError
from tests.builders import order
from tests.visuals.live_doubles import HubUnderTest
from visuals.live.hub import Hub
from visuals.live.watching import WatchingHub

# What steers, files or decides: none of it is for a watcher.
STEERS = {
    *("submit", "prepare", "enqueue", "adopt", "replay", "change_speed", "control"),
    *("preload", "split_steps", "capture", "measure", "stop_measuring", "check_model", "used"),
}
# The app's own, from no page.
OF_THE_APP = {
    *("saved", "not_saved", "abandon_unwatched", "stop_overdue", "end_frozen", "close", "receive"),
    *("measure_when_idle", "keep_house", "look_at_memory", "put_away_when_idle"),
}


def test_each_thing_a_hub_offers_is_said_to_be_read_or_to_steer() -> None:
    public = {name for name, _ in inspect.getmembers(Hub) if not name.startswith("_")}

    assert public == WatchingHub.READS | STEERS | OF_THE_APP
    assert not WatchingHub.READS & (STEERS | OF_THE_APP)


def test_a_watcher_sees_the_run_and_cannot_touch_it() -> None:
    under_test = HubUnderTest()
    hub = under_test.hub
    run = hub.submit(order())
    sent = len(under_test.engine.commands)
    watching = WatchingHub(hub)

    assert watching.find(run.run_id) is run
    assert watching.status(run).state is run.state
    for press in (
        lambda: watching.submit(order()),
        lambda: watching.prepare(order()),
        lambda: watching.enqueue(run),
        lambda: watching.control(run, Action.STOP),
        lambda: watching.measure(MeasureCeilings()),
        watching.stop_measuring,
        watching.check_model,
        lambda: watching.preload(LoadModel(model="other")),
        lambda: watching.change_speed(run, 2.0),
        watching.close,
    ):
        with pytest.raises(InputError, match="for watching only"):
            press()
    watching.capture(run, AttentionChoice(layer=0))
    watching.split_steps(run, is_wanted=True)

    assert len(under_test.engine.commands) == sent
    assert not any(
        isinstance(one, SplitSteps | Generate) for one in under_test.engine.commands[sent:]
    )
    assert hub.runs() == (run,)
