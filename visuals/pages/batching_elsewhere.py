"""The batch of any model on any device, counted: nothing of it is measured."""

from __future__ import annotations

import streamlit as st

from inference.counting.public_configs import public_config_names
from inference.counting.public_shapes import STORED_DTYPES, public_shape
from inference.counting.published_weights import as_published
from inference.process.messages import ModelReady
from inference.records.model import ModelShape
from visuals.charts.batching import BatchFacts, limit_sentences
from visuals.charts.units import capacity
from visuals.live.hub import Hub
from visuals.pages.batching_charts import show_charts
from visuals.pages.device_choice import device_choice
from visuals.pages.markdown import escaped
from visuals.pages.roofs import roofs_caption
from visuals.pages.session import bound

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
CONTEXTS = {"512": 512, "2,048": 2048, "8,192": 8192, "32,768": 32768, "131,072": 131072}
HELD = "the loaded model"


def elsewhere_section(hub: Hub, ready: ModelReady | None) -> None:
    """Draw the choice of model and device, and the counted charts."""
    left, right = st.columns([4, 8], gap="medium")
    with left:
        dtype = st.selectbox("Number format (dtype)", list(STORED_DTYPES), **bound("be-dtype"))
        shape = _shape(ready, dtype)
        device = device_choice(hub, dtype, "be")
        chosen = st.pills(
            "Context per row, in tokens",
            list(CONTEXTS),
            selection_mode="multi",
            **bound("be-contexts"),
        )
        if device is None:
            return
        ceilings = device.ceilings
        contexts = tuple(sorted(CONTEXTS[name] for name in chosen or ["2,048"]))
        facts = BatchFacts(
            shape=shape,
            batches=BATCHES,
            contexts=contexts,
            ceilings=ceilings,
            memory_bytes=device.memory_bytes,
        )
        st.markdown("**Where the benefit ends**, counted from these roofs:")
        st.markdown("\n".join(f"- {sentence}" for sentence in limit_sentences(facts)))
        st.caption(
            f"{roofs_caption(ceilings)} Everything here is **counted**, a calculated minimum."
        )
    with right:
        if facts.predictions:
            show_charts(facts, key="elsewhere")
        else:
            st.warning(
                f"Not even one row fits: the weights take {capacity(shape.weight_bytes)}, and the "
                f"device has {capacity(device.memory_bytes)}. No time or rate is given."
            )


def _shape(ready: ModelReady | None, dtype: str) -> ModelShape:
    names = [*public_config_names(), *([HELD] if ready is not None else [])]
    name = st.selectbox("Model", names, **bound("be-model", names))
    if name == HELD and ready is not None:
        st.caption(f"{escaped(ready.model_id)} as loaded, in {escaped(ready.device.dtype)}.")
        return ready.shape
    shape = public_shape(name, dtype)
    if shape.published_weight_bytes is not None:
        st.caption(f"Weights as published: {escaped(shape.published_format)}.")
    return as_published(shape)
