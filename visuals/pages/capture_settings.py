"""The settings of what is looked at in a run, how its prompt is fed, and how its cache stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import streamlit as st

from inference.process.orders import RunOrder
from inference.records.attention import AttentionChoice
from inference.records.options import CacheKind, DecodeMode
from visuals.live.attention_feed import choice_from
from visuals.live.hub import Hub

PANELS = ("panel", "recorded")  # keys of the live panels in which a layer can be picked
MAX_CHUNK = 1 << 20
CACHES = {
    CacheKind.DYNAMIC: "dynamic: grows with every token",
    CacheKind.STATIC: "static: all its room at the start",
    CacheKind.QUANTISED: "quantised: 8-bit numbers",
}


def attention_settings(hub: Hub) -> None:
    """Draw chunked prefill, the kind of cache, and whether attention weights are looked at."""
    st.number_input(
        "Prefill in chunks of so many tokens (0: all at once)",
        0,
        MAX_CHUNK,
        0,
        key="chunk_tokens",
        help="Each chunk is a step: a rectangle over what is stored and a triangle of its own. It "
        "may be as long as the prompt at most.",
    )
    _cache_setting(hub)
    st.toggle(
        "Look at attention weights",
        value=True,
        key="captures",
        help="The queries and keys of one layer are remembered in each step, and its weights are "
        "formed after the step's step time. The panel says what that costs. Steps handed over as a "
        "graph or compiled are not looked at.",
    )


def captured_choice(order: RunOrder) -> RunOrder:
    """Return the order with what these settings and the panel's pickers ask for."""
    state = st.session_state
    chunk_tokens = int(state.get("chunk_tokens", 0))
    return replace(
        order,
        chunk_tokens=chunk_tokens or None,
        cache=CacheKind(state.get("cache_kind") or CacheKind.DYNAMIC),
        is_captured=bool(state.get("captures", True)) and order.decode is DecodeMode.EAGER,
        capture=_picked(),
    )


def _cache_setting(hub: Hub) -> None:
    """Offer the kinds of cache that the model held can have; say why of each other."""
    ready = hub.engine_status().ready
    reasons = {one.kind: one.reason for one in ready.caches} if ready is not None else {}
    offered = [kind for kind in CacheKind if not reasons.get(kind)]
    st.selectbox(
        "Keys and values are stored",
        offered,
        key="cache_kind",
        format_func=lambda kind: CACHES[kind],
        help="What a kind of cache really holds is in the K/V cache panel, under formula.",
    )
    for kind, reason in reasons.items():
        if reason:
            st.caption(f"No {kind.value} cache for this model: {reason}.")


def _picked() -> AttentionChoice | None:
    """Return the layer and head picked in a panel; None where nobody has picked."""
    for key in PANELS:
        told = st.session_state.get(key)
        choice = choice_from(told.get("capture")) if isinstance(told, Mapping) else None
        if choice is not None:
            return choice
    return None
