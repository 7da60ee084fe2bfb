"""The live panel on a page: one component that follows one run, mounted once and never remounted.

The component opens its own WebSocket, so the page's reruns neither move nor slow it. What the page
passes changes only with the run and its state; all other reruns cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from streamlit.components import v2

from inference.records.status import RunState
from visuals.live.live_run import LiveRun
from visuals.panel.contents import EXPLANATIONS, chart_specs
from visuals.panel.modules import loader, styles
from visuals.panel.routes import scripts_address, vega_address
from visuals.panel.stage import Stage

if TYPE_CHECKING:
    from streamlit.components.v2.bidi_component import ComponentResult

_component = v2.component(
    "token_by_token_live_panel",
    html="",
    css=styles(),
    js=loader(),
    isolate_styles=True,
)


def live_panel(  # noqa: PLR0913  each is one thing that a page knows of the run
    run: LiveRun,
    *,
    key: str,
    state: RunState,
    frame: dict[str, object] | None = None,
    label: str = "",
    panels: Sequence[str] | None = None,
    stage: Stage | None = None,
    on_measure: Callable[[], None] | None = None,
    on_presenting: Callable[[], None] | None = None,
) -> ComponentResult:
    """Show a run and return what the panel says: state, transport, cursor, capture and part.

    The transport is ``poll`` where the panel gets no WebSocket and the page has to pass frames, and
    ``restored`` once a WebSocket works again.

    Args:
        run: The run to follow; another one takes this one's place in the same panel.
        key: Must stay the same between reruns, or the panel is built anew each time.
        state: The run's state as the page's buttons show it. The panel has the page run again once
            it has drawn another one.
        frame: Given, the panel draws it instead of opening a WebSocket. It should start at
            ``cursor``; a frame that starts at 0 is drawn from scratch.
        label: Stands before the model's name, such as "recorded run".
        panels: Names of those shown below the header, by ``live_panel.js``; None for all.
        stage: What the panel needs to present or to follow a presenter; None for a page that does
            neither.
        on_measure: Called when somebody asks in the panel for the roofs to be measured.
        on_presenting: Called when presenter mode was switched on or off in the panel.
    """
    data: dict[str, object] = {
        "run_id": run.run_id,
        "token": run.token,
        "label": label,
        "state": state.value,
        "entry": "main.js",
        "scripts": scripts_address(),
        "vega": vega_address(),
        "specs": chart_specs(),
        "explanations": EXPLANATIONS,
        "panels": None if panels is None else list(panels),
        "stage": stage,
    }
    if frame is not None:
        data["frame"] = frame
    return _component(
        key=key,
        data=data,
        default={
            "state": None,
            "transport": "socket",
            "cursor": 0,
            "capture": None,
            "part": "step",
            "measure": 0,
            "presenting": None,
        },
        on_state_change=_nothing,
        on_transport_change=_nothing,
        on_cursor_change=_nothing,
        on_capture_change=_nothing,
        on_part_change=_nothing,
        on_measure_change=on_measure or _nothing,
        on_presenting_change=on_presenting or _nothing,
    )


def _nothing() -> None:
    """Do nothing: a callback makes its value part of the result, and the page reads it there."""
