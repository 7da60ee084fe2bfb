"""The Self-check page: what runs here, compared with what the library computes.

A thin script: it never loops or sleeps. The engine checks whenever it is idle.
"""

from __future__ import annotations

import streamlit as st

from inference.records.checks import CheckKind, CheckOutcome, SelfCheck
from visuals.charts.self_check import late_names, made_words, named, table_html
from visuals.live.hub import Hub
from visuals.live.model_checks import ModelCheckStatus
from visuals.pages.markdown import escaped
from visuals.pages.session import enter_page

POLL_S = 1.0


def self_check_page(hub: Hub) -> None:
    """Draw the page."""
    enter_page("check")
    status, engine = hub.check_status(), hub.engine_status()
    st.markdown(
        "**Is what is shown here what the model computes?** The engine compares the model that is "
        "loaded, as it runs on this machine, with the library's own computation on the same "
        "weights. It does so when idle after a model is loaded, once for each version of the "
        "program, the libraries and the weights; a run goes first, and the check continues after "
        "it."
    )
    if engine.ready is None:
        _no_model(hub)
    else:
        _state(status)
        st.button(
            "Check again",
            key="check-again",
            icon=":material/rule:",
            disabled=status.is_going,
            on_click=hub.check_model,
            help="Run every check again, however long it takes, while no run is in progress.",
        )
        if status.check is not None:
            st.caption(escaped(made_words(status.check)))
            if status.check.checks:
                st.html(table_html(status.check))
    _watch(hub, status, is_loading=engine.stage is not None)


def _no_model(hub: Hub) -> None:
    engine = hub.engine_status()
    if engine.error:
        st.warning(f"The model could not be loaded: {escaped(engine.error)}")
    elif engine.stage is not None:
        st.info("The model is being loaded; it is checked after that.")
    else:
        sentence = hub.check_status().sentence
        st.info(f"No model is loaded, so there is nothing to check. {escaped(sentence)}")


def _state(status: ModelCheckStatus) -> None:
    """Say how far the check is, or what came of it."""
    check = status.check
    done = len(check.checks) if check is not None else 0
    if status.sentence:
        st.warning(escaped(status.sentence[:1].upper() + status.sentence[1:]) + ".")
    if check is not None and check.warning:
        st.error(
            f"{escaped(check.warning)} Runs of this model are marked with it.",
            icon=":material/error:",
        )
    if status.is_going:
        words = f"{done} of {len(CheckKind)} checks are done"
        st.progress(done / len(CheckKind), text=f"{words}; the engine goes on whenever it is idle.")
    elif check is None:
        st.info("This model is not checked yet.")
    elif check.is_whole and not check.warning:
        _result(check)


def _result(check: SelfCheck) -> None:
    """Say what passed, what is not possible, and what there was no time for."""
    passed, left_out = (named(check, one) for one in (CheckOutcome.PASSED, CheckOutcome.IMPOSSIBLE))
    if passed:
        st.success(f"Passed: {passed}.", icon=":material/check_circle:")
    if left_out:
        st.info(f"Not possible here: {left_out}; the table says why.")
    if late := late_names(check):
        st.info(
            f"Not done yet: {late}. An automatic check stops after ten seconds, and this "
            "machine was slow or busy. Press Check again for the rest; it also continues when the "
            "model is next loaded.",
            icon=":material/hourglass:",
        )


def _watch(hub: Hub, drawn: ModelCheckStatus, *, is_loading: bool) -> None:
    """Draw the page again once something else is known than when it was drawn."""
    is_changing = drawn.is_going or is_loading

    @st.fragment(run_every=POLL_S if is_changing else None)
    def watched() -> None:
        is_still_loading = hub.engine_status().stage is not None
        if hub.check_status() != drawn or is_still_loading is not is_loading:
            st.rerun()

    watched()
