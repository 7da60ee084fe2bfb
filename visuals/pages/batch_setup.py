"""Several prompts at once: which, in how many slots, under which policy, and when each comes in."""

from __future__ import annotations

import re
from dataclasses import replace

import streamlit as st

from inference.counting.costs import kv_stored_bytes
from inference.engine.scheduler import (
    MAX_ROWS,
    check_arrivals,
    largest_contexts,
    rows_that_fit,
)
from inference.process.messages import ModelReady
from inference.process.orders import RunOrder, build_requests
from inference.records.errors import InputError, TokenByTokenError
from inference.records.options import BatchPlan, Padding, Policy
from visuals.charts.units import amount, counted, gibibytes
from visuals.live.hub import Hub
from visuals.pages.composer import current_order
from visuals.pages.examples import example_prompts

ONE = "one prompt"
SAME = "the same prompt"
EXAMPLES = "the examples"
TYPED = "typed, parted by ---"
POLICIES = {
    Policy.STATIC: "static: until all are done",
    Policy.CONTINUOUS: "continuous: refill at once",
}
MARK = "---"
MOST_GAP_S = 60.0


def batch_tools(hub: Hub) -> None:
    """Draw the choice of a batch and how it is run."""
    label = "Batch" if _source() == ONE else f"Batch: {len(batch_prompts())}"
    with st.popover(label, icon=":material/stacks:", key="batch"):
        st.selectbox(
            "Run together",
            [ONE, SAME, EXAMPLES, TYPED],
            key="batch_source",
            help=f"Several prompts at once. Typed: write them in the prompt box, with a line of "
            f"{MARK} between two.",
        )
        if _source() == ONE:
            return
        _how_many()
        _how()
        _estimate(hub)


def batched(order: RunOrder) -> RunOrder:
    """Return the order with all prompts of the batch and its plan; one prompt stays as it is.

    Raises:
        InputError: The arrival times typed are not one a prompt.
    """
    if _source() == ONE:
        return order
    state = st.session_state
    prompts = batch_prompts()
    chunk = int(state.get("batch_chunk", 0))
    return replace(
        order,
        prompts=prompts,
        plan=BatchPlan(
            policy=state.get("batch_policy", Policy.STATIC),
            slots=int(state.get("batch_slots", 0)) or None,
            padding=state.get("batch_padding", Padding.LEFT),
        ),
        arrivals_s=_arrivals_s(len(prompts)),
        chunk_tokens=chunk or order.chunk_tokens,
    )


def batch_prompts() -> tuple[str, ...]:
    """Return the prompts of the batch as chosen at this moment."""
    state = st.session_state
    typed = str(state.get("prompt", ""))
    wanted = int(state.get("batch_count", 4))
    if _source() == SAME:
        return (typed,) * wanted
    if _source() == EXAMPLES:
        examples = [example.prompt for example in example_prompts()]
        return tuple(examples[number % len(examples)] for number in range(wanted))
    if _source() == TYPED:
        return split_prompts(typed)
    return (typed,)


def split_prompts(text: str) -> tuple[str, ...]:
    """Return the prompts between lines that hold the mark alone; empty ones are left out."""
    prompts: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.strip() == MARK:
            prompts.append([])
        else:
            prompts[-1].append(line)
    joined = ("\n".join(lines).strip() for lines in prompts)
    return tuple(prompt for prompt in joined if prompt)


def _arrivals_s(prompts: int) -> tuple[float, ...]:
    """Return when each prompt comes in: as typed, or at even intervals.

    Raises:
        InputError: What was typed are not as many numbers as there are prompts.
    """
    state = st.session_state
    typed = [part for part in re.split(r"[\s,;]+", state.get("batch_arrivals", "")) if part]
    if not typed:
        gap_s = float(state.get("batch_gap", 0.0))
        return tuple(gap_s * number for number in range(prompts))
    try:
        arrivals_s = tuple(float(part) for part in typed)
    except ValueError as error:
        msg = f"arrival times are numbers of seconds such as 0, 0, 2.5; one of {typed} is none"
        raise InputError(msg) from error
    if len(arrivals_s) != prompts:
        given = counted(len(arrivals_s), "arrival time")
        msg = f"{given} for {counted(prompts, 'prompt')}; give one each, or none for even intervals"
        raise InputError(msg)
    check_arrivals(arrivals_s)
    return arrivals_s


def _source() -> str:
    return st.session_state.get("batch_source", ONE)


def _how_many() -> None:
    if _source() == TYPED:
        st.caption(f"{counted(len(batch_prompts()), 'prompt')} in the prompt box.")
        return
    st.number_input("Prompts", 2, MAX_ROWS, 4, key="batch_count")


def _how() -> None:
    st.selectbox(
        "When a slot takes the next prompt",
        list(POLICIES),
        format_func=POLICIES.__getitem__,
        key="batch_policy",
        help="Static: a batch is fed together, padded to its longest prompt, and the next batch "
        "begins when all its rows are done. Continuous: a free slot takes the next prompt before "
        "the next decode step; its prefill is a step of its own.",
    )
    left, right = st.columns(2)
    left.number_input(
        "Slots (0: all)",
        0,
        MAX_ROWS,
        0,
        key="batch_slots",
        help="Rows that may run together; the other prompts wait.",
    )
    right.number_input(
        "Seconds between arrivals",
        0.0,
        MOST_GAP_S,
        0.0,
        0.5,
        key="batch_gap",
        help="On the run's own time: step times and idle waits. Pausing holds it.",
    )
    st.text_input(
        "Arrival times, s: one for each prompt",
        key="batch_arrivals",
        placeholder="even intervals; or for example 0, 0, 2.5, 4",
        help="Seconds of the run's own time, in the order of the prompts, with commas between "
        "them. They take the place of the even intervals.",
    )
    left, right = st.columns(2)
    left.number_input(
        "Prefill chunk (0: at once)",
        0,
        1 << 16,
        0,
        key="batch_chunk",
        help="Tokens of a prompt fed in one step; other rows decode between two chunks of a "
        "continuous batch, so that they wait less.",
    )
    right.selectbox(
        "Padding of a static batch",
        list(Padding),
        format_func=lambda side: f"on the {side}",
        key="batch_padding",
        help="Shorter prompts are filled up on this side. The tokens chosen are the same.",
    )


def _estimate(hub: Hub) -> None:
    """Say what the batch's keys and values take, and how many rows fit."""
    ready, codec = hub.engine_status().ready, hub.codec()
    if ready is None or codec is None:
        st.caption("The memory can be counted once the model is loaded.")
        return
    try:
        order = batched(current_order(is_paused=False, steps_per_s=None))
        requests = build_requests(order, codec, ready.context_limit)
    except TokenByTokenError as error:
        st.error(str(error))
        return
    contexts = largest_contexts(requests, order.plan, ready.context_limit)
    st.caption(_estimate_text(ready, contexts))


def _estimate_text(ready: ModelReady, contexts: list[int]) -> str:
    needed = len(contexts) * kv_stored_bytes(ready.shape, max(contexts))
    text = (
        f"{counted(len(contexts), 'row')} of up to {max(contexts):,} tokens: "
        f"{amount(gibibytes(needed), 'GiB')} of keys and values beside "
        f"{amount(gibibytes(ready.shape.weight_bytes), 'GiB')} of weights, counted."
    )
    total = ready.device.memory_bytes
    if total is None:
        return text
    room = max(0, total - ready.shape.weight_bytes)
    fitting = rows_that_fit(ready.shape, contexts, room)
    verdict = "all fit" if fitting == len(contexts) else f"**{fitting} of them fit**"
    return (
        f"{text} In {amount(gibibytes(total), 'GiB')} of memory {verdict}; what other programs "
        "take is looked at when the run begins."
    )
