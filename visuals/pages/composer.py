"""The prompt, its settings, and a view of exactly what the model is fed."""

from __future__ import annotations

import streamlit as st

from inference.models.tokenization import TextCodec
from inference.process.orders import RunOrder
from inference.records.block_formats import BlockFormat
from inference.records.errors import TokenByTokenError
from inference.records.options import AttentionKind, DecodeMode
from visuals.charts.units import counted
from visuals.live.hub import Hub
from visuals.pages.capture_settings import cache_settings
from visuals.pages.examples import example_prompts
from visuals.pages.markdown import escaped
from visuals.pages.model_choice import model_setting
from visuals.pages.panels import shows_parts
from visuals.pages.run_settings import AUTO, Decoding, Split
from visuals.pages.session import (
    bound,
    change,
    chosen_capture,
    clear_choice,
    session,
    take_settings,
    value_of,
)
from visuals.pages.settings_of_runs import as_by_default, changed_from_default
from visuals.pages.widget_keys import EXAMPLE

PROMPT_HEIGHT = 88
MAX_NEW_TOKENS = 4096
DECODES = {
    DecodeMode.EAGER: "eager: operation by operation",
    DecodeMode.GRAPH: "graph: one recorded CUDA graph",
    DecodeMode.COMPILED: "compiled: torch.compile",
}
ATTENTIONS = {
    AttentionKind.AUTO: "auto: the library's choice",
    AttentionKind.SDPA: "sdpa: torch's fused function",
    AttentionKind.EAGER: "eager: one operation after another",
    AttentionKind.FLASH: "flash_attention_2: the flash-attn package",
}
DTYPES = (AUTO, "float32", "bfloat16", "float16", *map(str, BlockFormat))


def prompt_box() -> None:
    """Draw the prompt box."""
    st.text_area(
        "Prompt",
        **bound("prompt"),
        height=PROMPT_HEIGHT,
        label_visibility="collapsed",
        placeholder="Type a prompt, or pick an example",
    )


def prompt_tools(hub: Hub) -> None:
    """Draw the examples, the settings and the exact input."""
    st.selectbox(
        "Example prompts",
        [example.name for example in example_prompts()],
        index=None,
        key=EXAMPLE,
        width=146,
        placeholder="Pick an example …",
        label_visibility="collapsed",
        on_change=_take_example,
    )
    with st.popover("Settings", icon=":material/tune:", key="settings"):
        _reset()
        run_settings(hub)
        device_settings(hub)
        cache_settings(hub)
        _split_setting()
    with st.popover("Exact input", icon=":material/data_object:", key="exact"):
        _exact_input(hub)


def _reset() -> None:
    """Say how many settings are not as by default, and offer to make them so."""
    changed = len(changed_from_default(session().run))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        verb = "differs" if changed == 1 else "differ"
        differ = f"{counted(changed, 'setting')} {verb} from the defaults."
        st.caption(differ if changed else "All settings are at their defaults.")
        st.button(
            "Reset",
            key="reset-settings",
            icon=":material/restart_alt:",
            disabled=not changed,
            on_click=_reset_settings,
            help="Set everything here and under Batch to its default; the prompt stays.",
        )


def _reset_settings() -> None:
    take_settings(as_by_default(session().run))


def current_order(*, is_paused: bool) -> RunOrder:
    """Return what the settings ask for at this moment."""
    return session().run.order(
        is_paused=is_paused, shows_parts=shows_parts(), capture=chosen_capture()
    )


def _take_example() -> None:
    chosen = value_of(EXAMPLE)
    for example in example_prompts():
        if example.name == chosen:
            change(prompt=example.prompt)
    clear_choice(EXAMPLE)  # the box offers examples; the prompt is the user's


def run_settings(hub: Hub) -> None:
    """Draw the settings of a run other than the prompt."""
    st.number_input(
        "Maximum new tokens",
        1,
        MAX_NEW_TOKENS,
        **bound("max_new_tokens"),
        help="Generation ends here, or earlier when the model selects its end-of-text token.",
    )
    st.segmented_control(
        "Decoding",
        list(Decoding),
        **bound("choice"),
        required=True,
        help="Greedy always takes the likeliest token, so a run can be repeated exactly. Sampling "
        "draws one at random.",
    )
    if session().run.decoding is Decoding.SAMPLING:
        _sampling_settings()
    st.toggle(
        "Use the model's chat template",
        **bound("template"),
        help="On: the prompt is wrapped in the markers that the model was trained to answer. "
        "Off: the model continues the prompt as it stands.",
    )
    model_setting()
    st.selectbox(
        "Number format (dtype)",
        DTYPES,
        **bound("dtype"),
        help="auto: float32 on a CPU, bfloat16 on a GPU that supports it. q8_0, q4_0 and q4_1 keep "
        "weights in blocks of 32 numbers of 8 or 4 bits with a scale, on a CPU only; decode then "
        "reads fewer bytes, and the answers differ a little from those of float32.",
    )
    _attention_setting(hub)


def _sampling_settings() -> None:
    st.slider(
        "Temperature",
        0.05,
        2.0,
        step=0.05,
        **bound("temperature"),
        help="Scores are divided by this: below 1 sharpens the choice, above 1 flattens it.",
    )
    st.number_input(
        "Top-k (0 keeps all)",
        0,
        1000,
        **bound("top_k"),
        help="Only the k likeliest tokens may be drawn.",
    )
    st.slider(
        "Top-p (1 keeps all)",
        0.05,
        1.0,
        step=0.05,
        **bound("top_p"),
        help="Only the likeliest tokens that together reach this probability may be drawn.",
    )
    st.number_input(
        "Seed",
        0,
        2**31 - 1,
        **bound("seed"),
        help="The same seed draws the same tokens again.",
    )


def attention_kinds(hub: Hub) -> tuple[AttentionKind, ...]:
    """Return the implementations of attention on offer: flash-attn only where it is available."""
    ready = hub.engine_status().ready
    available = {option.kind for option in ready.attentions if not option.reason} if ready else ()
    return tuple(k for k in AttentionKind if k is not AttentionKind.FLASH or k in available)


def _attention_setting(hub: Hub) -> None:
    """Offer the implementations of attention; say which the loaded model does not support."""
    kinds = attention_kinds(hub)
    chosen = st.selectbox(
        "Attention implementation",
        kinds,
        **bound("attention", kinds),
        format_func=lambda kind: ATTENTIONS[kind],
        help="auto: SDPA where the architecture supports it, and on a CPU this program's own "
        "kernels in decode steps. Any other choice computes every step. A change reloads the "
        "model.",
    )
    ready = hub.engine_status().ready
    reasons = {option.kind: option.reason for option in ready.attentions} if ready else {}
    if reason := reasons.get(chosen, ""):
        st.caption(
            f"Not available for the loaded model: {escaped(reason)}. A run with it is refused."
        )


def _split_setting() -> None:
    st.selectbox(
        "Time linear operations and attention separately",
        list(Split),
        **bound("split"),
        help="For the roofline of each. A step timed this way takes longer, is marked as observed, "
        "and is left out of the figures between tokens. While the roofline shows the "
        "parts, the prefill is timed this way too; steps launched as a graph or compiled are timed "
        "this way only then.",
    )


def device_settings(hub: Hub) -> None:
    """Draw on which device a run is made and how its decode steps are launched."""
    ready = hub.engine_status().ready
    labels = {option.name: option.label for option in ready.devices} if ready is not None else {}
    st.selectbox(
        "Device",
        [AUTO, *labels],
        **bound("device", [AUTO, *labels] if ready is not None else None),
        format_func=lambda name: labels.get(name) or str(name),
        help="auto: an NVIDIA GPU, else Apple's, else the CPU; a model larger than one GPU is "
        "spread over all of them. A change reloads the model.",
    )
    if ready is not None and ready.device_note:
        st.caption(escaped(ready.device_note))
    reasons = {option.mode: option.reason for option in ready.decodes} if ready is not None else {}
    chosen = st.selectbox(
        "Decode steps are launched as",
        list(DecodeMode),
        **bound("decode"),
        format_func=lambda mode: DECODES[mode],
        help="A GPU step of a small model is hundreds of short operations, and launching each "
        "costs more than computing it. A recorded step is launched at once, on a static cache. "
        "A step whose attention is captured, or that is timed in parts, is eager.",
    )
    if reason := reasons.get(chosen, ""):
        st.caption(f"Not available here: {escaped(reason)}. The run will be eager and say so.")


def _exact_input(hub: Hub) -> None:
    """Show the templated text and its length once a model, and with it a tokenizer, is loaded."""
    codec = hub.codec()
    if codec is None:
        st.caption("The tokenizer comes with the model, which is still loading.")
        return
    settings = session().run
    _show_input(codec, settings.prompt, is_raw=not settings.has_template)


def _show_input(codec: TextCodec, prompt: str, *, is_raw: bool) -> None:
    try:
        ids = codec.encode(prompt, is_raw=is_raw)
        text = prompt if is_raw else codec.templated(prompt)
    except TokenByTokenError as error:
        st.error(escaped(str(error)))
        return
    st.caption(
        f"{counted(len(ids), 'token')}, by the loaded model's own tokenizer. "
        + ("As typed, no template." if is_raw else "The model's chat template is applied.")
    )
    if note := codec.remarks([prompt], ids):
        st.warning(escaped(note))
    st.code(text, language=None, wrap_lines=True, height=260)
