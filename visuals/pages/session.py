"""The one typed object that a browser tab's session holds, and the widgets that show its fields.

The only module that touches Streamlit's session state. Streamlit keeps a widget's value under the
widget's key, and persists it where the widget is bound; what is bound is drawn from the object and
taken back into it, so a value outlives its widget when a page is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypedDict

import streamlit as st

from inference.records.attention import AttentionChoice
from visuals.live.attention_feed import choice_from
from visuals.pages.inputs import (
    BatchingInputs,
    CompareInputs,
    EndpointInputs,
    PlaylistInputs,
    RooflineInputs,
    RunsInputs,
    ServingInputs,
    StepInputs,
    TourInputs,
)
from visuals.pages.page_states import (
    ComparePageState,
    EndpointState,
    LivePageState,
    PlaylistsPageState,
    ReplayState,
    RunsPageState,
    ServingPageState,
    TourPageState,
)
from visuals.pages.run_settings import RunSettings
from visuals.pages.widget_keys import GROUP_OF, PANELS, TICK, WIDGETS, is_mapped

SESSION = "session"


@dataclass(slots=True)
class Session:
    """Everything of ours that belongs to one browser tab.

    Attributes:
        drawn: Keys of the bound widgets that the page shown has drawn so far.
        page: The page shown.
        config: The config.json that was uploaded on the Roofline page; None for none.
        is_polling: The live panel could not open its WebSocket; the page feeds it.
        watched: The run that a presenter showed last, and which was the newest run then.
    """

    run: RunSettings = field(default_factory=RunSettings)
    compare: CompareInputs = field(default_factory=CompareInputs)
    roofline: RooflineInputs = field(default_factory=RooflineInputs)
    batching: BatchingInputs = field(default_factory=BatchingInputs)
    endpoint: EndpointInputs = field(default_factory=EndpointInputs)
    serving: ServingInputs = field(default_factory=ServingInputs)
    runs: RunsInputs = field(default_factory=RunsInputs)
    steps: StepInputs = field(default_factory=StepInputs)
    tour: TourInputs = field(default_factory=TourInputs)
    endpoint_state: EndpointState = field(default_factory=EndpointState)
    serving_page: ServingPageState = field(default_factory=ServingPageState)
    live_page: LivePageState = field(default_factory=LivePageState)
    compare_page: ComparePageState = field(default_factory=ComparePageState)
    runs_page: RunsPageState = field(default_factory=RunsPageState)
    tour_page: TourPageState = field(default_factory=TourPageState)
    playlists: PlaylistInputs = field(default_factory=PlaylistInputs)
    playlists_page: PlaylistsPageState = field(default_factory=PlaylistsPageState)
    replay: ReplayState | None = None
    config: bytes | None = None
    is_polling: bool = False
    watched: tuple[str, str] = ("", "")
    page: str = ""
    drawn: set[str] = field(default_factory=set)


class Bound(TypedDict):
    """The arguments that tie a widget to its field.

    A change is taken in a callback: those run before any script, so a value counts even where the
    press that leaves its page stops the script that would have drawn the widget again.
    """

    key: str
    persist_state: Literal["session"]
    on_change: Callable[[], None]


def session() -> Session:
    """Return the tab's session, with what its widgets say at this moment."""
    ours = _ours()
    for key in GROUP_OF:
        _take(ours, key)
    return ours


def enter_page(name: str) -> Session:
    """Return the session at the beginning of a page's script run."""
    ours = session()
    if ours.page != name:
        ours.page = name
        ours.drawn.clear()
    return ours


def field_of(key: str) -> Any:  # noqa: ANN401  # each field has a type of its own
    """Return the value of the field that the widget with this key shows."""
    ours = _ours()
    _take(ours, key)
    return _field(ours, key)


def bound(
    key: str,
    options: Sequence[object] | None = None,
    *,
    first: object = None,
    then: Callable[[], None] | None = None,
) -> Bound:
    """Return the arguments that draw the widget with this key from its field.

    Args:
        key: One of the mapped keys.
        options: What the widget offers, where that is not always the same. A value that is not
            among them gives way to the first of them.
        first: What it gives way to instead.
        then: Called once a changed value has been taken.
    """
    ours = _ours()
    said = _take(ours, key)
    value = _offered(_field(ours, key), options, first)
    _put(ours, key, value)
    if key not in ours.drawn or said != value:
        st.session_state[key] = _as_widget(value)
        ours.drawn.add(key)
    return Bound(key=key, persist_state="session", on_change=partial(_changed, key, then))


def change(**values: object) -> None:
    """Give the fields that these widgets show other values, before the widgets are drawn."""
    ours = session()
    for key, value in values.items():
        _put(ours, key, value)
        st.session_state[key] = _as_widget(value)


def take_settings(settings: RunSettings) -> None:
    """Give all settings of a run these values, before their widgets are drawn."""
    change(**{key: getattr(settings, name) for key, name in WIDGETS["run"].items()})


def value_of(key: str) -> Any:  # noqa: ANN401  # each widget has a type of its own
    """Return what a widget that shows no field says; None where it is not drawn.

    Raises:
        KeyError: There is no such widget.
    """
    if not is_mapped(key):
        raise KeyError(key)
    return st.session_state.get(key)


def clear_choice(key: str) -> None:
    """Leave nothing chosen in a widget that only offers something to take."""
    if not is_mapped(key):
        raise KeyError(key)
    st.session_state[key] = None


def is_ticked(run_key: str) -> bool:
    """Tell whether the run with this key is ticked on the Runs page."""
    return bool(value_of(f"{TICK}{run_key}"))


def tick(run_keys: Sequence[str]) -> None:
    """Tick these runs on the Runs page, before their boxes are drawn."""
    for run_key in run_keys:
        st.session_state[f"{TICK}{run_key}"] = True


def panel_state(key: str) -> Mapping[str, Any]:
    """Return what a live panel has reported of itself; empty before it has."""
    reported = value_of(key)
    return reported if isinstance(reported, Mapping) else {}


def chosen_capture() -> AttentionChoice | None:
    """Return the layer and head chosen in a panel; None where nobody has chosen."""
    choices = (choice_from(panel_state(key).get("capture")) for key in PANELS)
    return next((choice for choice in choices if choice is not None), None)


def _ours() -> Session:
    return st.session_state.setdefault(SESSION, Session())


def _take(ours: Session, key: str) -> object:
    """Take what a widget says into its field, and return it; None where it says nothing."""
    if (said := _said(key)) is not None:
        _put(ours, key, said)
    return said


def _changed(key: str, then: Callable[[], None] | None) -> None:
    _take(_ours(), key)
    if then is not None:
        then()


def _field(ours: Session, key: str) -> object:
    group = GROUP_OF[key]
    return getattr(getattr(ours, group), WIDGETS[group][key])


def _put(ours: Session, key: str, value: object) -> None:
    if _field(ours, key) != value:
        group = GROUP_OF[key]
        changed = replace(getattr(ours, group), **{WIDGETS[group][key]: value})
        setattr(ours, group, changed)


def _said(key: str) -> object:
    value = st.session_state.get(key)
    return tuple(value) if isinstance(value, list) else value


def _as_widget(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _offered(value: object, options: Sequence[object] | None, first: object) -> object:
    if options is None:
        return value
    if isinstance(value, tuple):
        return tuple(one for one in value if one in options)
    return value if value in options else first if first is not None else options[0]
