"""The figures that an engine elsewhere gives of itself, read while the page is open."""

from __future__ import annotations

import streamlit as st

from inference.records.endpoints import Answer, Extra
from inference.records.errors import InputError
from inference.records.serving import EngineReading
from visuals.charts.serving import (
    NOT_SAID,
    SHOWN_S,
    OwnRequests,
    Panel,
    engine_panel,
    engine_table,
    latency_rows,
    panel_rows,
    silent_s,
    unsaid,
)
from visuals.live.endpoint_runs import EndpointRuns
from visuals.live.load_runs import LoadRuns
from visuals.live.serving_watch import EVERY_S, ServingWatches
from visuals.pages.drawn import draw_chart, draw_table
from visuals.pages.endpoint_source import ChosenEndpoint
from visuals.pages.markdown import escaped
from visuals.words import serving as words

TABLE_S = 10.0
MOST_NAMED = 5


def engine_section(
    watches: ServingWatches, runs: EndpointRuns, loads: LoadRuns, chosen: ChosenEndpoint
) -> None:
    """Draw the engine's figures with what was sent from here, again every second."""
    metrics = chosen.info.offer(Extra.METRICS)
    if metrics.answer is Answer.NO:
        st.info(f"{words.NO_METRICS} {escaped(metrics.reason)}.")
        return

    @st.fragment(run_every=EVERY_S)
    def figures() -> None:
        try:
            readings = watches.of(chosen.endpoint).readings()
        except InputError as error:
            st.error(escaped(str(error)), icon=":material/error:")
            return
        _figures(readings, _sent_from_here(runs, loads, chosen.endpoint.address))

    figures()


def _sent_from_here(runs: EndpointRuns, loads: LoadRuns, address: str) -> OwnRequests:
    """Return the runs of the Live page and the load of this server that went to an address."""
    of_live, latest = runs.sent_to(address), loads.latest
    if latest is None or latest.address != address:
        return OwnRequests(runs=of_live)
    return OwnRequests(runs=(*of_live, *latest.runs), sending_since=latest.sending_since)


def _figures(readings: tuple[EngineReading, ...], own: OwnRequests) -> None:
    silent = silent_s(readings)
    if silent is not None:
        st.warning(f"The metrics page could not be read for {silent:.0f} s; it is asked again.")
    table = engine_table(readings, TABLE_S)
    if not table:
        st.caption("The metrics page is being read for the first time.")
        return
    draw_table(table, caption="What the engine says now", is_wide=True)
    st.caption(f"Rates and shares over the last {TABLE_S:.0f} s. {words.COUNTED_BY_ENGINE}")
    boxes = [*st.columns(2), st.container()]
    for panel, box in zip(Panel, boxes, strict=True):
        with box:
            _panel(panel, readings, own)
    st.caption(words.BANDS)
    draw_table(latency_rows(readings, SHOWN_S), caption="Latency in the engine's buckets")
    st.caption(words.BUCKETS)
    unreadable = readings[-1].unreadable
    if unreadable:
        st.caption(f"Could not be read: {escaped(', '.join(unreadable[:MOST_NAMED]))}.")


def _panel(panel: Panel, readings: tuple[EngineReading, ...], own: OwnRequests) -> None:
    st.markdown(f"**{panel.value}**")
    missing = unsaid(panel, readings)
    if panel_rows(panel, readings):
        draw_chart(engine_panel(panel, readings, own), key=f"serving-{panel.name.lower()}")
    elif not missing:
        st.caption("No two readings yet, or nothing was counted between them.")
    if missing:
        st.caption(f"{', '.join(missing)}: {NOT_SAID}.")
