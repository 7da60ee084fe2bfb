"""A load on an engine elsewhere: what is sent, its progress, and Stop."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from inference.models.tokenization import TextCodec
from inference.prompts.made_prompts import estimated_tokens, made_prompts
from inference.prompts.prompt_files import (
    MAX_BYTES,
    SUFFIXES,
    Upload,
    Uploads,
    UploadSettings,
    grouped,
    read_uploads,
)
from inference.records.arrivals import RemoteAsk, Spacing
from inference.records.errors import InputError, TokenByTokenError
from inference.records.options import Sampling
from inference.remote.growing import EndpointOrder
from inference.remote.load_plans import LoadChoice, plan_name, plans_for
from inference.remote.messages import SILENCE_S
from visuals.charts.units import counted
from visuals.live.hub import Hub
from visuals.live.load_runs import LoadRun, LoadRuns
from visuals.live.watching import ONLY_WATCHING
from visuals.pages.endpoint_source import ChosenEndpoint
from visuals.pages.examples import ASSETS
from visuals.pages.inputs import LoadKind, PromptsFrom
from visuals.pages.markdown import escaped, quoted
from visuals.pages.page_states import ServingPageState
from visuals.pages.session import bound, session, value_of
from visuals.pages.widget_keys import LOAD_FILES
from visuals.words import serving as words

POLL_S = 1.0
MOST_PROMPTS, MOST_PROMPT_TOKENS = 1000, 8000
MOST_PAGE_REQUESTS, MOST_NEW_TOKENS = 2000, 2048
SPACINGS = {
    LoadKind.CLOSED: Spacing.CLOSED,
    LoadKind.POISSON: Spacing.POISSON,
    LoadKind.CONSTANT: Spacing.CONSTANT,
}
AT_A_TIME, A_SECOND = "Requests at a time", "Requests a second"


def load_section(
    hub: Hub, loads: LoadRuns, chosen: ChosenEndpoint | None, *, is_watching: bool
) -> None:
    """Draw what is sent, the button that sends it, and how far the load has come.

    Args:
        hub: Its model's tokenizer counts lengths.
        loads: The server's one load.
        chosen: The engine it goes to; None where none was asked yet.
        is_watching: The visitor may only watch.
    """
    if is_watching:  # no widget is there whose press could change anything
        st.info(f"No load can be sent: {ONLY_WATCHING}.")
        return
    state = session().serving_page
    latest = loads.latest
    is_going = latest is not None and not latest.state.is_final
    if latest is not None:  # above what is chosen, where it is seen without scrolling
        _progress(latest)
    _prompts(hub.codec(), state)
    _loop()
    _requests()
    where = "" if chosen is None else f" to {quoted(chosen.endpoint.address)}"
    st.button(
        "Send the load",
        key="load-start",
        type="primary",
        icon=":material/send:",
        disabled=chosen is None or is_going,
        on_click=_start,
        args=(hub, loads, chosen, state),
        help=words.STARTS if chosen is not None else words.NOT_ASKED,
    )
    st.caption(
        f"Sends{where} what is chosen above, one step after another. {words.CLOSED_TAB}"
        if chosen is not None
        else words.NOT_ASKED
    )
    if state.sentence:
        st.error(escaped(state.sentence), icon=":material/error:")


def _prompts(codec: TextCodec | None, state: ServingPageState) -> None:
    st.segmented_control("Prompts", list(PromptsFrom), **bound("load-prompts"), required=True)
    if session().serving.prompts is PromptsFrom.MADE:
        left, right = st.columns(2)
        left.number_input("Number of prompts", 1, MOST_PROMPTS, **bound("load-count"))
        right.number_input("Tokens of each", 1, MOST_PROMPT_TOKENS, **bound("load-tokens"))
        st.caption(words.COUNTED_HERE if codec is not None else words.ESTIMATED)
        return
    st.file_uploader(
        f"Prompt files, {MAX_BYTES >> 20} MB each at most",
        type=list(SUFFIXES),
        accept_multiple_files=True,
        key=LOAD_FILES,
        on_change=_take_files,
        args=(state,),
        help="The files that Compare reads: text, Markdown, CSV, TSV, Parquet, JSON, JSON Lines.",
    )
    uploads = _read(state.files)
    if state.files:
        st.caption(f"{counted(len(uploads.prompts), 'prompt')} read, taken in turn.")
    for note in uploads.notes:
        st.info(escaped(note), icon=":material/info:")
    for place, reason, count in grouped(uploads.left_out):
        times = f" ({count:,} times)" if count > 1 else ""
        st.caption(f"Left out: {escaped(place)}: {escaped(reason)}{times}")


def _take_files(state: ServingPageState) -> None:
    files = value_of(LOAD_FILES) or ()
    state.files = tuple(Upload(name=file.name, content=file.getvalue()) for file in files)


@st.cache_data(max_entries=8, show_spinner="Reading the prompts …")
def _read(files: tuple[Upload, ...]) -> Uploads:
    return read_uploads(files, UploadSettings())


def _loop() -> None:
    st.segmented_control(
        "How they follow one another", list(LoadKind), **bound("load-kind"), required=True
    )
    if session().serving.kind is LoadKind.CLOSED:
        st.text_input(AT_A_TIME, **bound("load-concurrency"), help=words.CLOSED_LOOP)
    else:
        st.text_input(A_SECOND, **bound("load-rates"), help=words.OPEN_LOOP)


def _requests() -> None:
    left, right = st.columns(2)
    left.number_input(
        "Measured requests of each step", 1, MOST_PAGE_REQUESTS, **bound("load-requests")
    )
    right.number_input("New tokens of each request", 1, MOST_NEW_TOKENS, **bound("load-new-tokens"))
    st.toggle("Words of its own in front of each prompt", **bound("load-cold"), help=words.COLD)


def _start(
    hub: Hub,
    loads: LoadRuns,
    chosen: ChosenEndpoint | None,
    state: ServingPageState,
) -> None:
    state.sentence = ""
    try:
        if chosen is None:
            raise InputError(words.NOT_ASKED)
        plans = plans_for(_choice())
        load = loads.start(chosen.endpoint, _order(hub.codec(), chosen, state), plans)
    except TokenByTokenError as error:
        state.sentence = str(error)
        return
    state.shown = load.key


def _choice() -> LoadChoice:
    asked = session().serving
    is_closed = asked.kind is LoadKind.CLOSED
    return LoadChoice(
        spacing=SPACINGS[asked.kind],
        numbers=asked.concurrency if is_closed else asked.rates,
        name=AT_A_TIME if is_closed else A_SECOND,
        requests=int(asked.requests),
        is_cold=asked.is_cold,
    )


def _order(
    codec: TextCodec | None, chosen: ChosenEndpoint, state: ServingPageState
) -> EndpointOrder:
    """Return the prompts as requests.

    Raises:
        InputError: There is none.
    """
    asked = session().serving
    if asked.prompts is PromptsFrom.MADE:
        texts = made_prompts(
            (ASSETS / "long_prompt.txt").read_text(encoding="utf-8"),
            prompts=int(asked.count),
            tokens=int(asked.tokens),
            length=_length(codec),
        )
        prompts = [(text, ()) for text in texts]
    else:
        prompts = [(one.text, one.turns) for one in _read(state.files).prompts]
    if not prompts:
        raise InputError(words.NO_PROMPT)
    asks = tuple(
        RemoteAsk(
            model_id=chosen.model,
            prompt_text=text,
            turns=turns,
            max_new_tokens=int(asked.new_tokens),
            sampling=Sampling(),
            seed=0,
        )
        for text, turns in prompts
    )
    return EndpointOrder(asks=asks, model=chosen.model, silence_s=SILENCE_S)


def _length(codec: TextCodec | None) -> Callable[[str], int]:
    if codec is None:
        return estimated_tokens
    return lambda text: len(codec.encode(text, is_raw=True))


def _progress(load: LoadRun) -> None:
    """Draw how far a load has come, again every second while it goes."""
    is_final = load.state.is_final

    @st.fragment(run_every=None if is_final else POLL_S)
    def progress() -> None:
        load.touch()
        if load.state.is_final and not is_final:
            st.rerun()
        if load.problem:
            st.error(escaped(load.problem), icon=":material/error:")
        if load.state.is_final:
            if load.message:
                st.warning(f"The last load: {escaped(load.message)}.", icon=":material/flag:")
            return
        _going(load)

    progress()


def _going(load: LoadRun) -> None:
    plan, ended = load.plan, load.ended
    if plan is None or load.sending_since is None:
        st.progress(0.0, text=f"Asking {quoted(load.address)} what it takes …")
    else:
        whole = plan.requests + plan.warm_up
        step = f"step {len(load.runs) + 1} of {len(load.plans)}, {plan_name(plan)}"
        st.progress(
            min(1.0, ended / whole),
            text=f"{ended:,} of {whole:,} requests ended ({step}), to {quoted(load.address)}",
        )
    st.button("Stop", key="load-stop", icon=":material/stop:", on_click=load.stop)
