"""Several prompts at once: which, in how many slots, under which policy, and when each arrives."""

from __future__ import annotations

import re
from dataclasses import replace

import streamlit as st

from inference.counting.costs import kv_stored_bytes
from inference.counting.what_if import as_stored
from inference.engine.scheduler import (
    MAX_ROWS,
    check_arrivals,
    largest_contexts,
    rows_that_fit,
)
from inference.process.messages import ModelReady
from inference.process.orders import RunOrder, build_requests
from inference.records.errors import InputError, TokenByTokenError
from inference.records.options import BatchPlan, CacheKind, Padding, Policy
from visuals.charts.units import capacity, counted
from visuals.live.hub import Hub
from visuals.pages.composer import current_order
from visuals.pages.examples import example_prompts
from visuals.pages.markdown import escaped
from visuals.pages.run_settings import MARK, BatchSource
from visuals.pages.session import bound, session

POLICIES = {
    Policy.STATIC: "static: until all are done",
    Policy.CONTINUOUS: "continuous: refill at once",
}
MOST_GAP_S = 60.0


def batch_tools(hub: Hub) -> None:
    """Draw the choice of a batch and how it is run."""
    label = "Batch" if _source() is BatchSource.ONE else f"Batch: {len(batch_prompts())}"
    with st.popover(label, icon=":material/stacks:", key="batch"):
        st.selectbox(
            "Run together",
            list(BatchSource),
            **bound("batch_source"),
            help="Several prompts at once. Typed: write them in the prompt box, separated by lines "
            f"of {MARK}.",
        )
        if _source() is BatchSource.ONE:
            return
        _how_many()
        _how()
        _estimate(hub)


def batched(order: RunOrder) -> RunOrder:
    """Return the order with all prompts of the batch and its plan; one prompt stays as it is.

    Raises:
        InputError: The arrival times typed are not one for each prompt.
    """
    settings = session().run
    if settings.batch_source is BatchSource.ONE:
        return order
    prompts = batch_prompts()
    return replace(
        order,
        prompts=prompts,
        plan=BatchPlan(
            policy=settings.batch_policy,
            slots=settings.batch_slots or None,
            padding=settings.batch_padding,
        ),
        arrivals_s=_arrivals_s(len(prompts)),
        chunk_tokens=settings.batch_chunk_tokens or order.chunk_tokens,
    )


def batch_prompts() -> tuple[str, ...]:
    """Return the prompts of the batch as chosen at this moment."""
    settings = session().run
    match settings.batch_source:
        case BatchSource.SAME:
            return (settings.prompt,) * settings.batch_count
        case BatchSource.EXAMPLES:
            examples = [example.prompt for example in example_prompts()]
            return tuple(examples[i % len(examples)] for i in range(settings.batch_count))
        case BatchSource.TYPED:
            return split_prompts(settings.prompt)
        case BatchSource.ONE:
            return (settings.prompt,)


def split_prompts(text: str) -> tuple[str, ...]:
    """Return the prompts between lines of the mark alone; empty ones are left out."""
    prompts: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.strip() == MARK:
            prompts.append([])
        else:
            prompts[-1].append(line)
    joined = ("\n".join(lines).strip() for lines in prompts)
    return tuple(prompt for prompt in joined if prompt)


def _arrivals_s(prompts: int) -> tuple[float, ...]:
    """Return when each prompt arrives: as typed, or at even intervals.

    Raises:
        InputError: What was typed is not one number for each prompt.
    """
    settings = session().run
    typed = [part for part in re.split(r"[\s,;]+", settings.batch_arrivals) if part]
    if not typed:
        return tuple(settings.batch_gap_s * number for number in range(prompts))
    try:
        arrivals_s = tuple(float(part) for part in typed)
    except ValueError as error:
        msg = f"arrival times are numbers of seconds such as 0, 0, 2.5; one of {typed} is not"
        raise InputError(msg) from error
    if len(arrivals_s) != prompts:
        given = counted(len(arrivals_s), "arrival time")
        msg = f"{given} for {counted(prompts, 'prompt')}; give one each, or none for even intervals"
        raise InputError(msg)
    check_arrivals(arrivals_s)
    return arrivals_s


def _source() -> BatchSource:
    return session().run.batch_source


def _how_many() -> None:
    if _source() is BatchSource.TYPED:
        st.caption(f"{counted(len(batch_prompts()), 'prompt')} in the prompt box.")
        return
    st.number_input("Prompts", 2, MAX_ROWS, **bound("batch_count"))


def _how() -> None:
    st.selectbox(
        "When a slot takes the next prompt",
        list(POLICIES),
        format_func=POLICIES.__getitem__,
        **bound("batch_policy"),
        help="Static: a batch is fed together, padded to its longest prompt, and the next batch "
        "begins when all its rows are done. Continuous: a free slot takes the next prompt before "
        "the next decode step; its prefill is a step of its own.",
    )
    left, right = st.columns(2)
    left.number_input(
        "Slots (0 = all)",
        0,
        MAX_ROWS,
        **bound("batch_slots"),
        help="Rows that may run together; the other prompts wait.",
    )
    right.number_input(
        "Seconds between arrivals",
        0.0,
        MOST_GAP_S,
        step=0.5,
        **bound("batch_gap"),
        help="In the run's own time: step times and idle waits. A pause stops that clock.",
    )
    st.text_input(
        "Arrival times in seconds, one for each prompt",
        **bound("batch_arrivals"),
        placeholder="at even intervals; or, for example, 0, 0, 2.5, 4",
        help="Seconds of the run's own time, in the order of the prompts, separated by commas. "
        "They replace the even intervals.",
    )
    left, right = st.columns(2)
    left.number_input(
        "Prefill chunk (0 = at once)",
        0,
        1 << 16,
        **bound("batch_chunk"),
        help="Tokens of a prompt fed in one step; other rows decode between two chunks of a "
        "continuous batch, so they wait less.",
    )
    right.selectbox(
        "Padding of a static batch",
        list(Padding),
        format_func=lambda side: f"on the {side}",
        **bound("batch_padding"),
        help="Shorter prompts are padded on this side. The tokens chosen are the same.",
    )


def _estimate(hub: Hub) -> None:
    """Say how much memory the batch's keys and values take, and how many rows fit."""
    ready, codec = hub.engine_status().ready, hub.codec()
    if ready is None or codec is None:
        st.caption("The memory can be counted once the model is loaded.")
        return
    try:
        order = batched(current_order(is_paused=False))
        requests = build_requests(order, codec, ready.context_limit)
    except TokenByTokenError as error:
        st.error(escaped(str(error)))
        return
    contexts = largest_contexts(requests, order.plan, ready.context_limit)
    st.caption(_estimate_text(ready, contexts, order.cache))


def _estimate_text(ready: ModelReady, contexts: list[int], cache: CacheKind) -> str:
    shape = as_stored(ready.shape, cache)
    needed = len(contexts) * kv_stored_bytes(shape, max(contexts))
    text = (
        f"{counted(len(contexts), 'row')} of up to {max(contexts):,} tokens: "
        f"{capacity(needed)} of keys and values beside "
        f"{capacity(ready.shape.weight_bytes)} of weights, counted."
    )
    total = ready.device.memory_bytes
    if total is None:
        return text
    room = max(0, total - ready.shape.weight_bytes)
    fitting = rows_that_fit(shape, contexts, room)
    verdict = "all fit" if fitting == len(contexts) else f"**{fitting} of them fit**"
    return (
        f"{text} In {capacity(total)} of memory {verdict}; what other programs "
        "take is checked when the run begins."
    )
