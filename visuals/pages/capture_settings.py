"""The settings of how a prompt is fed, how the cache stores, and whether attention is captured."""

from __future__ import annotations

import streamlit as st

from inference.records.options import CacheKind
from visuals.live.hub import Hub
from visuals.pages.markdown import escaped
from visuals.pages.session import bound

MAX_CHUNK = 1 << 20
CACHES = {
    CacheKind.DYNAMIC: "dynamic: grows with the tokens",
    CacheKind.STATIC: "static: all memory reserved at the start",
    CacheKind.QUANTISED: "quantised: 8-bit numbers",
}


def cache_settings(hub: Hub) -> None:
    """Draw chunked prefill, the kind of cache, and whether attention weights are captured."""
    st.number_input(
        "Prefill chunk size in tokens (0 = all at once)",
        0,
        MAX_CHUNK,
        **bound("chunk_tokens"),
        help="Each chunk is a step: a rectangle over what is stored and a triangle of its own. It "
        "may be at most as long as the prompt.",
    )
    _cache_setting(hub)
    st.toggle(
        "Capture attention weights",
        **bound("captures"),
        help="The queries and keys of one layer are kept in each step, and its weights are "
        "computed after the step, outside its step time. The panel says what that costs. Steps "
        "launched as a graph or compiled are not captured.",
    )


def _cache_setting(hub: Hub) -> None:
    """Offer the kinds of cache that the loaded model supports, and say why not the others."""
    ready = hub.engine_status().ready
    reasons = {option.kind: option.reason for option in ready.caches} if ready is not None else {}
    offered = [kind for kind in CacheKind if not reasons.get(kind)]
    st.selectbox(
        "K/V cache",
        offered,
        **bound("cache_kind", offered),
        format_func=lambda kind: CACHES[kind],
        help="What each kind really holds is in the K/V cache panel, under formula.",
    )
    for kind, reason in reasons.items():
        if reason:
            st.caption(f"No {kind.value} cache for this model: {escaped(reason)}.")
