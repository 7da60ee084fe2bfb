"""The choice of a model, with what is on this machine told apart from what is not."""

from __future__ import annotations

import streamlit as st

from inference.models.catalog import CATALOG, DEFAULT_NAMES, catalog_entry
from inference.models.catalog import DEFAULT_MODEL as DEFAULT_ENTRY
from inference.models.local_models import local_ids
from visuals.pages.markdown import quoted
from visuals.pages.run_settings import DEFAULT_MODEL
from visuals.pages.session import bound, session

LOOKED_FOR_S = 30.0  # how long it is taken for granted which models are here


def model_setting() -> None:
    """Draw the choice of one model, and say so when it has to be fetched first."""
    names, typed = model_names(), session().run.model
    st.selectbox(
        "Model",
        names if typed in names else [*names, typed],
        **bound("model"),
        format_func=model_label,
        accept_new_options=True,
        help="One from the list, another id on the hub, or a model folder on this machine. "
        "The first run with another model loads it.",
    )
    model = session().run.model
    if model in names and not _is_here(model):
        st.caption(
            f"{quoted(model)} is not on this machine. A run with it fetches the weights from the "
            "hub first, which needs a network and takes minutes."
        )


def model_names() -> list[str]:
    """Return the models on offer, each once; others can be typed."""
    return [DEFAULT_MODEL, *(entry.id for entry in CATALOG if entry.id not in DEFAULT_NAMES)]


def model_label(model: str) -> str:
    """Return a model's name as the list shows it."""
    if model in DEFAULT_NAMES:
        return f"{DEFAULT_ENTRY.id} (default)"
    is_missing = catalog_entry(model) is not None and not _is_here(model)
    return f"{model} (not on this machine)" if is_missing else model


def _is_here(model: str) -> bool:
    entry = catalog_entry(model)
    return entry is not None and entry.id in _local_ids()


@st.cache_data(ttl=LOOKED_FOR_S, show_spinner=False)
def _local_ids() -> frozenset[str]:
    return local_ids()
