"""The address of an engine as a source: what is typed, who answers there, and its models.

Nothing is sent before the address stands on the page and its button is pressed; then only reads
that change nothing there. A key goes from its box into memory, with the address it was given for,
and is nowhere else: the box is empty again once it was taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from inference.records.endpoints import EndpointInfo
from inference.records.errors import TokenByTokenError
from inference.remote.address import Endpoint, endpoint_at
from inference.remote.growing import identified
from visuals.pages.drawn import draw_table
from visuals.pages.markdown import escaped, quoted
from visuals.pages.session import bound, clear_choice, session, value_of
from visuals.pages.widget_keys import ENDPOINT_KEY

SEEN_FROM = "The address is as this server sees it: it sends the requests, and not your browser."


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenEndpoint:
    """An engine that was asked who it is, and the model chosen of it."""

    endpoint: Endpoint
    info: EndpointInfo
    model: str


def endpoint_source() -> None:
    """Draw the address, the key, the button that asks, and what the server answered."""
    state = session().endpoint_state
    st.text_input("Address of an engine", **bound("endpoint-address"), placeholder="http://…:8000")
    typed = _typed()
    st.text_input(
        "API key (optional)",
        key=ENDPOINT_KEY,
        type="password",
        autocomplete="off",
        help="Sent to this address alone, as a bearer token. It is held in memory until this tab "
        "is closed or another address is asked, and is in no file, log or export.",
    )
    if isinstance(typed, str):
        if typed:
            st.error(escaped(typed), icon=":material/error:")
        st.caption(SEEN_FROM)
        return
    st.caption(f"Requests will go to {quoted(typed.address)} and nowhere else. {SEEN_FROM}")
    st.button(
        "Ask who is there",
        key="endpoint-ask",
        icon=":material/travel_explore:",
        on_click=_ask,
        help="Reads that change nothing: the engine, its version, its models, and what it tells.",
    )
    if state.sentence:
        st.error(escaped(state.sentence), icon=":material/error:")
    info = state.info
    if info is None or info.address != typed.address:
        return
    _who(info, has_key=state.endpoint is not None and state.endpoint.key is not None)
    _model(info)
    offers_table(info)


def chosen_endpoint() -> ChosenEndpoint | None:
    """Return the engine that was asked and its model; None where none is chosen yet."""
    ours = session()
    endpoint, info, typed = ours.endpoint_state.endpoint, ours.endpoint_state.info, _typed()
    if endpoint is None or info is None or isinstance(typed, str) or typed != endpoint:
        return None
    listed = [one.model_id for one in info.models]
    model = ours.endpoint.model.strip()
    if listed and model not in listed:
        model = listed[0]
    return ChosenEndpoint(endpoint=endpoint, info=info, model=model) if model else None


def offers_table(info: EndpointInfo) -> None:
    """Draw what an engine tells of a request, and how that is known."""
    draw_table(
        [
            {"It tells": one.extra.value, "Answer": one.answer.value, "How known": one.reason}
            for one in info.offers
        ],
        caption="What the engine tells beside the text",
        is_wide=True,
    )
    for note in info.notes:
        st.caption(escaped(note))


def engine_name(info: EndpointInfo) -> str:
    """Return the engine with its version, where it states one."""
    return f"{info.engine.value} {info.version}".strip()


def _typed() -> Endpoint | str:
    """Return the endpoint that is typed, without a key, or what is wrong; empty for nothing."""
    address = session().endpoint.address.strip()
    if not address:
        return ""
    try:
        return endpoint_at(address)
    except TokenByTokenError as error:
        return str(error)


def _ask() -> None:
    """Ask the address who it is; a key given for another address is not sent to it."""
    state, typed = session().endpoint_state, _typed()
    if isinstance(typed, str):
        return
    former = state.endpoint
    key = (value_of(ENDPOINT_KEY) or "").strip() or None
    clear_choice(ENDPOINT_KEY)
    if key is None and former is not None and former == typed:
        key = former.key
    state.endpoint, state.info, state.sentence = None, None, ""
    try:
        endpoint = endpoint_at(session().endpoint.address, key)
        state.info = identified(endpoint)
    except TokenByTokenError as error:
        state.sentence = str(error)
        return
    state.endpoint = endpoint


def _who(info: EndpointInfo, *, has_key: bool) -> None:
    name = f"**{escaped(engine_name(info))}**{'' if info.version else ', version not said'}"
    held = " A key is held for it." if has_key else ""
    st.markdown(f"{name} answers there.{held}")


def _model(info: EndpointInfo) -> None:
    listed = [one.model_id for one in info.models]
    if not listed:
        st.text_input("Model", **bound("endpoint-model"), help="The server lists none; name one.")
        return
    st.selectbox("Model", listed, **bound("endpoint-model", listed))
