"""The source of a run on the Live page, and the buttons that steer a run at an address."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from inference.records.arrivals import RemoteAsk
from inference.records.errors import InputError, PromptError
from inference.remote.growing import EndpointOrder
from inference.remote.messages import SILENCE_S, message_for
from visuals.live.endpoint_runs import EndpointRun, EndpointRuns
from visuals.pages.endpoint_source import (
    ChosenEndpoint,
    chosen_endpoint,
    endpoint_source,
    engine_name,
)
from visuals.pages.inputs import Source
from visuals.pages.markdown import escaped, quoted
from visuals.pages.run_settings import RunSettings
from visuals.pages.session import bound, session
from visuals.pages.transport_buttons import stop_button
from visuals.words import endpoint_runs as words

NOT_ASKED = "Give an address under Source and ask who is there first."


def source_tools() -> None:
    """Draw where tokens are made: here, or by an engine at an address."""
    with st.popover("Source", icon=":material/dns:", key="source-tools"):
        st.segmented_control(
            "Tokens are made by", list(Source), **bound("source"), required=True, width="stretch"
        )
        if is_elsewhere():
            endpoint_source()
            st.caption(words.APPLIES)


def is_elsewhere() -> bool:
    """Tell whether Start is to ask an engine at an address."""
    return session().endpoint.source is Source.ENDPOINT


def endpoint_controls(run: EndpointRun | None, start: Callable[[], None], *, is_busy: bool) -> None:
    """Draw Start and Stop, the buttons that are off for such a run, and where Start sends to.

    Args:
        run: The run at an address that is shown; None for none.
        start: Called by a press of Start.
        is_busy: A run is going on, here or there.
    """
    chosen = chosen_endpoint()
    with st.container(horizontal=True, gap="xsmall", key="controls"):
        st.button(
            "Start",
            key="start",
            type="primary",
            icon=":material/play_arrow:",
            disabled=is_busy or chosen is None,
            on_click=start,
            help=words.STARTS if chosen is not None else NOT_ASKED,
        )
        st.button("Pause", key="pause", icon=":material/pause:", disabled=True, help=words.NO_PAUSE)
        st.button(
            "Step", key="step", icon=":material/skip_next:", disabled=True, help=words.NO_STEP
        )
        stop_button(partial(_stop, run), help_text=words.ENDS, is_off=not is_busy or run is None)
    if is_elsewhere():
        _where_line(chosen)


def _where_line(chosen: ChosenEndpoint | None) -> None:
    """Say where Start would send the prompt."""
    if chosen is None:
        st.caption(NOT_ASKED)
    else:
        name = escaped(engine_name(chosen.info))
        st.caption(
            f"Start sends the prompt to {quoted(chosen.endpoint.address)} ({name}), model "
            f"{quoted(chosen.model)}."
        )


def start_elsewhere(runs: EndpointRuns) -> EndpointRun:
    """Return a run of the prompt that has begun at the chosen address.

    Raises:
        InputError: No engine was asked yet, it does not take a setting, or too many runs go.
        PromptError: The prompt is empty.
    """
    chosen = chosen_endpoint()
    if chosen is None:
        raise InputError(NOT_ASKED)
    order = order_for(chosen, session().run)
    message_for(order.asks[0], chosen.info.engine, ())  # refuses a setting before anything is sent
    return runs.start(chosen.endpoint, order)


def order_for(chosen: ChosenEndpoint, settings: RunSettings) -> EndpointOrder:
    """Return what the settings ask of an engine elsewhere.

    Raises:
        PromptError: The prompt is empty.
    """
    if not settings.prompt.strip():
        msg = "the prompt is empty; write something"
        raise PromptError(msg)
    wanted = RemoteAsk(
        model_id=chosen.model,
        prompt_text=settings.prompt,
        max_new_tokens=settings.max_new_tokens,
        sampling=settings.sampling,
        seed=settings.seed,
        is_raw=not settings.has_template,
    )
    return EndpointOrder(asks=(wanted,), model=chosen.model, silence_s=SILENCE_S)


def _stop(run: EndpointRun | None) -> None:
    if run is not None:
        run.stop()
