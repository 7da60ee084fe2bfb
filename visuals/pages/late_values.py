"""What was typed just before a page is left, kept where Streamlit would drop it.

A value typed and the press on another page's link reach the server as two requests. Where the
script is busy, Streamlit 1.67 merges them and keeps of the first only pressed buttons: the value is
gone before any of our code runs. A request that does not name a widget says nothing of its value,
so the earlier request's value is kept; Streamlit clears it with its page's other widgets.
"""

from __future__ import annotations

from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime.scriptrunner_utils import script_requests

# pyright: reportPrivateUsage=false
# There is no public way to say how requests are merged; the tests fail where this one has moved.
_streamlit_merge = script_requests._coalesce_widget_states  # noqa: SLF001


def keep_late_values() -> None:
    """Have Streamlit keep the values of widgets that a later request does not name."""
    script_requests._coalesce_widget_states = _merged  # noqa: SLF001


def _merged(older: WidgetStates | None, newer: WidgetStates | None) -> WidgetStates | None:
    """Return the states of both requests; of a widget in both, as Streamlit has it."""
    states = _streamlit_merge(older, newer)
    if older is None or states is None:
        return states
    named = {state.id for state in states.widgets}
    states.widgets.extend(state for state in older.widgets if state.id not in named)
    return states
