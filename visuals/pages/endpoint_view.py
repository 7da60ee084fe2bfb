"""A run at an address as the Live page shows it: what arrived, and what follows from it.

A smaller view than the panel of a local run, since an arrival is no step. It is fed by the page
while the run goes, by a fragment, so that no widget outside of it is drawn again.
"""

from __future__ import annotations

import streamlit as st

from inference.figures.arrivals import ArrivalFigures, arrival_figures, ttft_parts
from inference.records.arrivals import RemoteRequest, RemoteRun
from inference.records.status import RunState
from inference.runs.arrival_exports import arrivals_csv
from inference.runs.remote_file import to_json
from visuals.charts import arrivals as charts
from visuals.charts.arrival_table import figure_rows, kv_words, sequence_lengths
from visuals.charts.arrival_text import answer_html
from visuals.charts.endings import ending
from visuals.charts.units import counted, date_text
from visuals.live.endpoint_runs import EndpointRun
from visuals.pages.drawn import draw_chart, draw_table
from visuals.pages.endpoint_source import engine_name, offers_table
from visuals.pages.markdown import escaped, quoted
from visuals.pages.session import bound, field_of
from visuals.words import endpoint_runs as words

POLL_S = 0.5
ASKING = "The engine is asked what it tells, with requests of two tokens."


def endpoint_view(run: EndpointRun, *, is_over: bool) -> None:
    """Draw the run, twice a second while it goes.

    Args:
        run: The run.
        is_over: The page was drawn for a run that is over; otherwise it is drawn again then.
    """

    @st.fragment(run_every=None if is_over else POLL_S)
    def growing() -> None:
        is_over_now = run.state.is_final  # asked first: what comes later is in the next round
        trace = run.snapshot()
        with st.container(key="endpoint-run"):
            _draw(run, trace)
        if is_over_now and not is_over:
            st.rerun()

    growing()


def endpoint_files(run: EndpointRun | None) -> None:
    """Draw the downloads of the run: its run file, and its arrivals as a table."""
    trace = run.newest if run is not None else None
    stem = f"token-by-token-{run.run_id if run is not None else 'none'}"
    st.download_button(
        "Save this run",
        data=lambda: to_json(trace) if trace is not None else "",
        file_name=f"{stem}.json",
        mime="application/json",
        key="save",
        icon=":material/download:",
        on_click="ignore",
        disabled=trace is None,
        help="Every arrival with its network read, and the engine's own times, as a run file.",
    )
    st.download_button(
        "Arrivals (CSV)",
        data=lambda: arrivals_csv((trace,)) if trace is not None else "",
        file_name=f"{stem}-arrivals.csv",
        mime="text/csv",
        key="save-arrivals",
        icon=":material/table:",
        on_click="ignore",
        disabled=trace is None,
        help="A row for each arrival: time, read, tokens, ids, text and bytes.",
    )


def _draw(run: EndpointRun, trace: RemoteRun | None) -> None:
    _head(run, trace)
    if trace is None or not trace.requests:
        return
    request = trace.requests[0]
    figures = arrival_figures(request)
    if len(trace.requests) > 1:
        st.caption(f"The first of {counted(len(trace.requests), 'request')} is shown.")
    _answer(request, figures)
    left, right = st.columns(2)
    with left:
        _ttft(request)
    with right:
        _gaps(figures)
    draw_table(
        figure_rows(request, figures), caption="Figures of this request, each with its origin"
    )
    left, right = st.columns(2)
    with left:
        _candidates(request)
    with right:
        _mask(request, figures)
    with st.expander("What cannot be known from outside", icon=":material/visibility_off:"):
        for name, reason in words.NOT_VISIBLE.items():
            st.markdown(f"**{name}**: {reason}")
    with st.expander("What this engine tells", icon=":material/checklist:"):
        offers_table(trace.endpoint)


def _head(run: EndpointRun, trace: RemoteRun | None) -> None:
    state = "asking" if run.state is RunState.QUEUED else ending(run.state.value)
    parts = [f"**{state}**"]
    if trace is not None:
        parts.append(escaped(engine_name(trace.endpoint)))
    parts += [quoted(run.model), quoted(run.address)]
    if trace is not None:
        parts.append(f"{date_text(trace.started_at)}, {trace.started_at:%H:%M} UTC")
    st.markdown(" \u00b7 ".join(parts))
    if run.state is RunState.QUEUED:
        st.caption(ASKING)
    if run.message:
        draw = st.error if run.state is RunState.FAILED else st.info
        draw(escaped(run.message), icon=":material/info:")
    if run.problem:
        st.warning(escaped(run.problem), icon=":material/warning:")


def _answer(request: RemoteRequest, figures: ArrivalFigures) -> None:
    st.markdown("##### Answer, as it arrived")
    st.html(answer_html(request))
    st.caption(words.READS)
    notes = [figures.counts.note, *request.notes]
    if figures.hidden_tokens:
        notes.append(
            f"{counted(figures.hidden_tokens, 'token')} came without text: an end, half a "
            "character, or kept back"
        )
    if figures.is_in_bursts:
        notes.append(
            f"tokens arrive {figures.tokens_per_read:g} at a time, so gaps say little of the engine"
        )
    for note in filter(None, notes):
        st.caption(escaped(note[0].upper() + note[1:]))


def _ttft(request: RemoteRequest) -> None:
    st.markdown("##### TTFT")
    parts = ttft_parts(request)
    if parts:
        draw_chart(charts.ttft_bar(parts), key="endpoint-ttft")
        st.caption(words.TTFT)
    else:
        st.caption(words.NO_TTFT)


def _gaps(figures: ArrivalFigures) -> None:
    st.markdown(f"##### {charts.gap_name(figures)}")
    if figures.gaps_s:
        draw_chart(charts.gaps(figures), key="endpoint-gaps")
        st.caption(words.ITL if figures.is_token_by_token else words.GAPS)
    else:
        st.caption(words.NO_GAPS)


def _candidates(request: RemoteRequest) -> None:
    st.markdown("##### Next token")
    tokens = charts.said_tokens(request)
    if not tokens:
        st.caption(words.NO_CANDIDATES)
        return
    place = len(tokens)
    if request.state.is_final and len(tokens) > 1:
        place = min(field_of("endpoint-token") or len(tokens), len(tokens))
        st.slider(
            "Token",
            1,
            len(tokens),
            **bound("endpoint-token", range(1, len(tokens) + 1)),
            help="Of the tokens that the engine named with candidates.",
        )
        place = min(field_of("endpoint-token"), len(tokens))
    draw_chart(charts.candidates(tokens[place - 1]), key="endpoint-candidates")


def _mask(request: RemoteRequest, figures: ArrivalFigures) -> None:
    st.markdown("##### Mask and K/V, counted")
    lengths = sequence_lengths(request, figures)
    if lengths is None:
        st.caption(words.NO_MASK)
        return
    draw_chart(charts.mask(*lengths), key="endpoint-mask")
    st.caption(words.MASK)
    st.caption(escaped(kv_words(request, figures) or words.NO_KV))
