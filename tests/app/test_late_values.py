"""Requests that are merged while the script is busy lose nothing that was typed."""

from __future__ import annotations

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.scriptrunner_utils.script_requests import (
    RerunData,
    ScriptRequests,
    ScriptRequestType,
)

from visuals.pages.late_values import keep_late_values


@pytest.fixture(autouse=True)
def _kept() -> None:
    keep_late_values()


def states(**values: str) -> WidgetStates:
    return WidgetStates(
        widgets=[WidgetState(id=name, string_value=value) for name, value in values.items()]
    )


def merged(*requests: RerunData) -> RerunData:
    """Return what the script is run with after requests that came while it was busy."""
    waiting = ScriptRequests()
    for request in requests:
        assert waiting.request_rerun(request)
    taken = waiting.on_scriptrunner_ready()
    assert taken.type is ScriptRequestType.RERUN
    return taken.rerun_data


def said(request: RerunData) -> dict[str, str]:
    assert request.widget_states is not None
    return {state.id: state.string_value for state in request.widget_states.widgets}


def test_a_value_typed_before_the_press_on_a_link_is_not_dropped() -> None:
    """A prompt typed while the model loaded was gone after another page."""
    typed = RerunData(widget_states=states(prompt="mine"), page_script_hash="live")
    pressed = RerunData(widget_states=WidgetStates(), page_script_hash="compare")

    request = merged(typed, pressed)

    assert request.page_script_hash == "compare"
    assert said(request) == {"prompt": "mine"}


def test_the_later_value_of_a_widget_in_both_wins() -> None:
    first = RerunData(widget_states=states(prompt="mi", seed="1"))
    second = RerunData(widget_states=states(prompt="mine"))

    assert said(merged(first, second)) == {"prompt": "mine", "seed": "1"}


def test_a_request_without_states_changes_none() -> None:
    typed = RerunData(widget_states=states(prompt="mine"))

    assert said(merged(typed, RerunData())) == {"prompt": "mine"}


def test_values_are_kept_once_however_often_pages_are_run() -> None:
    keep_late_values()
    keep_late_values()

    request = merged(
        RerunData(widget_states=states(prompt="mine")), RerunData(widget_states=states(seed="1"))
    )

    assert request.widget_states is not None
    assert len(request.widget_states.widgets) == 2
