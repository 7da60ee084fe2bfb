"""The what-if section: any published model on any device, all of it counted."""

from __future__ import annotations

import streamlit as st

from inference.counting.block_shapes import in_blocks
from inference.counting.config_files import read_config_fields
from inference.counting.public_configs import public_config_names
from inference.counting.public_shapes import STORED_DTYPES, public_shape
from inference.counting.published_weights import as_published
from inference.counting.shape_jobs import ShapeJobs
from inference.counting.what_if import what_if, with_kv_bytes
from inference.records.block_formats import BlockFormat
from inference.records.errors import TokenByTokenError
from inference.records.model import ModelShape
from inference.records.rooflines import Workload
from visuals.charts.units import capacity
from visuals.charts.what_if import (
    batch_rows,
    batch_times,
    does_not_fit,
    results,
    turns,
    whatif_roofline,
)
from visuals.live.hub import Hub
from visuals.pages.device_choice import ChosenDevice, device_choice
from visuals.pages.drawn import draw_chart
from visuals.pages.markdown import escaped
from visuals.pages.roofs import roofs_caption
from visuals.pages.session import bound, session, value_of
from visuals.pages.widget_keys import CONFIG_FILE

OWN_CONFIG = "a config.json of my own \u2026"
KV_BYTES = {"as the weights": None, "float32": 4, "bfloat16": 2, "float16": 2, "float8": 1}
POLL_S = 0.5
CHART_HEIGHT = 300
LONGEST = 1 << 22


def whatif_section(hub: Hub, jobs: ShapeJobs) -> None:
    """Draw the questions on the left and the counted answers on the right."""
    left, right = st.columns([4, 8], gap="medium")
    with left:
        model, device = st.container(), st.container()
        dtype = _choice("Number format of the weights (dtype)", list(STORED_DTYPES), "wi-dtype")
        with model:
            shape = _model(jobs, dtype)
        with device:
            chosen = device_choice(hub, dtype, "wi")
        if shape is not None:
            with model:
                shape = stored_shape(shape, dtype)
        workload = _workload()
        kv_bytes = KV_BYTES[_choice("Number format of the K/V", list(KV_BYTES), "wi-kv")]
    with right:
        if shape is None or chosen is None:
            st.info("Choose a model and a device. Every figure here is counted, none is measured.")
            return
        if kv_bytes is not None:
            shape = with_kv_bytes(shape, kv_bytes)
        _answers(shape, chosen, workload)


def _model(jobs: ShapeJobs, dtype: str) -> ModelShape | None:
    """Return the shape asked for; None while there is none, and the page says why."""
    names = [*public_config_names(), OWN_CONFIG]
    name = _choice("Model", names, "wi-model")
    if name != OWN_CONFIG:
        return public_shape(name, dtype)
    ours = session()
    st.file_uploader(
        "config.json",
        type=["json"],
        key=CONFIG_FILE,
        on_change=_take_config,
        help="As published with a model. No weights are needed and none of its code is run.",
    )
    if ours.config is None:
        return None
    if value_of(CONFIG_FILE) is None:  # the page was left, the uploader is empty
        st.caption("The file chosen before is still used.")
    try:
        answer = jobs.answer(read_config_fields(ours.config), dtype)
    except TokenByTokenError as error:
        st.error(escaped(str(error)))
        return None
    if answer.is_working:
        _waiting(jobs, ours.config, dtype)
    elif answer.shape is None:
        st.error(escaped(answer.sentence))
    return answer.shape


def stored_shape(shape: ModelShape, dtype: str) -> ModelShape:
    """Return the shape with its weights stored as chosen: published, in the dtype, or in blocks."""
    shapes = {f"{dtype}, {capacity(shape.weight_bytes)}": shape}
    if shape.published_weight_bytes is not None:
        size = capacity(shape.published_weight_bytes)
        shapes = {f"as published: {shape.published_format}, {size}": as_published(shape)} | shapes
    for block_format in BlockFormat:
        kept = in_blocks(shape, block_format)
        what = f"{block_format}, blocks of 32 with a scale"
        shapes[f"{what}, {capacity(kept.weight_bytes)}"] = kept
    return shapes[_choice("Weights are stored", list(shapes), "wi-stored")]


def _take_config() -> None:
    upload = value_of(CONFIG_FILE)
    session().config = upload.getvalue() if upload is not None else None


def _waiting(jobs: ShapeJobs, content: bytes, dtype: str) -> None:
    """Say that the config is being counted, and run the page again when it is."""

    @st.fragment(run_every=POLL_S)
    def waiting_line() -> None:
        st.info("Counting the model's matrices; this takes about ten seconds \u2026")
        if not jobs.answer(read_config_fields(content), dtype).is_working:
            st.rerun()

    waiting_line()


def _workload() -> Workload:
    batch = st.number_input("Sequences in the batch (B)", 1, 1 << 16, **bound("wi-batch"))
    prompt = st.number_input("Tokens per prompt (T)", 1, LONGEST, **bound("wi-prompt"))
    context = st.number_input("Context during decode (L)", 1, LONGEST, **bound("wi-context"))
    return Workload(batch=int(batch), prompt_tokens=int(prompt), context_tokens=int(context))


def _answers(shape: ModelShape, device: ChosenDevice, workload: Workload) -> None:
    """Show the figures, where the bottleneck changes, and both charts."""
    ceilings, memory_bytes = device.ceilings, device.memory_bytes
    answer = what_if(shape, ceilings, workload, memory_bytes)
    st.caption(f"{roofs_caption(ceilings)} Everything below is **counted**, a calculated minimum.")
    boxes = st.columns(3) + st.columns(3)
    for box, result in zip(boxes, results(answer, workload, memory_bytes), strict=True):
        box.metric(
            result.label,
            result.value,
            delta=result.note or None,
            delta_color="off",
            delta_arrow="off",
            help=f"Counted. {result.help}",
        )
    if sentence := does_not_fit(answer, memory_bytes):
        st.warning(sentence)
    st.markdown("  \n".join(turns(answer)))
    for sentence in shape.uncounted:
        st.warning(f"How this was counted: {escaped(sentence)}")
    one, other = st.columns(2)
    with one:
        draw_chart(
            whatif_roofline(answer).properties(height=CHART_HEIGHT),
            key="wi-roofline",
        )
    if not batch_rows(shape, ceilings, workload.context_tokens, memory_bytes):
        return  # not even one sequence fits
    with other:
        draw_chart(
            batch_times(shape, ceilings, workload.context_tokens, memory_bytes).properties(
                height=CHART_HEIGHT
            ),
            key="wi-batches",
        )


def _choice(label: str, options: list[str], key: str) -> str:
    return st.selectbox(label, options, **bound(key, options)) or options[0]
