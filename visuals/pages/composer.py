"""The prompt, its settings, and a view of exactly what the model is fed."""

from __future__ import annotations

import streamlit as st

from inference.models.catalog import CATALOG
from inference.models.tokenization import TextCodec
from inference.process.messages import LoadModel
from inference.process.orders import RunOrder
from inference.records.errors import TokenByTokenError
from inference.records.options import AttentionKind, DecodeMode, Sampling
from visuals.charts.units import counted
from visuals.live.hub import WATCHED_SPLIT, Hub
from visuals.pages.capture_settings import attention_settings, captured_choice
from visuals.pages.examples import example_prompts
from visuals.pages.panels import PARTS

DEFAULT_EXAMPLE = 1
PROMPT_HEIGHT = 88
MAX_NEW_TOKENS = 4096
GREEDY = "greedy"
DRAWN = "drawn at random"
NEVER = "in no step"
AUTOMATIC = "while the roofline shows them"
SPLITS: dict[str, int | None] = {
    AUTOMATIC: WATCHED_SPLIT,
    "in every step": 1,
    NEVER: None,
}
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
DTYPES = ("auto", "float32", "bfloat16", "float16")


def prompt_box() -> None:
    """Draw the prompt box."""
    st.session_state.setdefault("prompt", example_prompts()[DEFAULT_EXAMPLE].prompt)
    st.text_area(
        "Prompt",
        key="prompt",
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
        key="example",
        width=146,
        placeholder="Pick an example …",
        label_visibility="collapsed",
        on_change=_take_example,
    )
    with st.popover("Settings", icon=":material/tune:", key="settings"):
        run_settings(hub)
        device_settings(hub)
        attention_settings(hub)
        _split_setting()
    with st.popover("Exact input", icon=":material/data_object:", key="exact"):
        _exact_input(hub)


def current_order(*, is_paused: bool, steps_per_s: float | None) -> RunOrder:
    """Return what the widgets ask for at this moment."""
    state = st.session_state
    is_greedy = state.get("choice", GREEDY) == GREEDY
    top_k, top_p = int(state.get("top_k", 0)), float(state.get("top_p", 1.0))
    sampling = Sampling(
        temperature=0.0 if is_greedy else float(state.get("temperature", 0.8)),
        top_k=top_k if not is_greedy and top_k > 0 else None,
        top_p=top_p if not is_greedy and top_p < 1 else None,
    )
    order = RunOrder(
        prompts=(state.get("prompt", ""),),
        max_new_tokens=int(state.get("max_new_tokens", 64)),
        sampling=sampling,
        seed=int(state.get("seed", 0)),
        is_raw=not state.get("template", True),
        load=LoadModel(
            model=(state.get("model") or "default").strip(),
            dtype=state.get("dtype", "auto"),
            device=state.get("device") or "auto",
            attention=AttentionKind(state.get("attention") or AttentionKind.AUTO),
        ),
        is_paused=is_paused,
        steps_per_s=steps_per_s,
        split_every=_split_every(),
        decode=DecodeMode(state.get("decode") or DecodeMode.EAGER),
    )
    return captured_choice(order)


def _take_example() -> None:
    chosen = st.session_state["example"]
    for example in example_prompts():
        if example.name == chosen:
            st.session_state["prompt"] = example.prompt
    st.session_state["example"] = None  # the box offers examples; the prompt is the user's


def run_settings(hub: Hub) -> None:
    """Draw the settings of a run, the prompt apart."""
    st.number_input(
        "Most new tokens",
        1,
        MAX_NEW_TOKENS,
        64,
        key="max_new_tokens",
        help="Generation ends here, or earlier when the model selects its end-of-text token.",
    )
    st.segmented_control(
        "Next token is",
        [GREEDY, DRAWN],
        default=GREEDY,
        key="choice",
        required=True,
        help="Greedy always takes the likeliest token, so a run can be repeated exactly.",
    )
    if st.session_state.get("choice") == DRAWN:
        st.slider(
            "Temperature",
            0.05,
            2.0,
            0.8,
            0.05,
            key="temperature",
            help="Scores are divided by this: below 1 sharpens the choice, above 1 flattens it.",
        )
        st.number_input(
            "Top-k (0 keeps all)",
            0,
            1000,
            0,
            key="top_k",
            help="Only the k likeliest tokens may be drawn.",
        )
        st.slider(
            "Top-p (1 keeps all)",
            0.05,
            1.0,
            1.0,
            0.05,
            key="top_p",
            help="Only the likeliest tokens that together reach this probability may be drawn.",
        )
        st.number_input(
            "Seed",
            0,
            2**31 - 1,
            0,
            key="seed",
            help="The same seed draws the same tokens again.",
        )
    st.toggle(
        "Use the model's chat template",
        value=True,
        key="template",
        help="On: the prompt is wrapped in the marks the model was trained to answer. "
        "Off: the model goes on from the prompt as it stands.",
    )
    st.selectbox(
        "Model",
        ["default", *(entry.id for entry in CATALOG)],
        key="model",
        accept_new_options=True,
        help="One of the list, another hub id, or a model folder on this machine. "
        "The first run with another model loads it.",
    )
    st.selectbox(
        "Number format (dtype)",
        DTYPES,
        key="dtype",
        help="auto: float32 on a CPU, bfloat16 on a GPU that has it.",
    )
    _attention_setting(hub)


def attention_kinds(hub: Hub) -> tuple[AttentionKind, ...]:
    """Return the implementations of attention on offer: flash-attn only where it can be had."""
    ready = hub.engine_status().ready
    can_have = {one.kind for one in ready.attentions if not one.reason} if ready else set()
    return tuple(k for k in AttentionKind if k is not AttentionKind.FLASH or k in can_have)


def _attention_setting(hub: Hub) -> None:
    """Offer the implementations of attention; say where the model held cannot have one."""
    chosen = st.selectbox(
        "Attention is computed by",
        attention_kinds(hub),
        key="attention",
        format_func=lambda kind: ATTENTIONS[kind],
        help="auto: sdpa where the architecture has it, and on a CPU this program's own kernels in "
        "decode steps. One that is named computes every step. Another loads the model anew.",
    )
    ready = hub.engine_status().ready
    reasons = {one.kind: one.reason for one in ready.attentions} if ready is not None else {}
    if reason := reasons.get(chosen, ""):
        st.caption(f"Not for the model that is loaded: {reason}. A run with it is refused.")


def _split_setting() -> None:
    st.selectbox(
        "Time linear operations and attention apart",
        list(SPLITS),
        key="split",
        help="For the roofline of each. Such a step takes longer, is marked as observed, and is "
        "left out of the figures between tokens.",
    )


def _split_every() -> int | None:
    """Return in how many steps one is to be timed in parts, from the prefill on."""
    chosen = st.session_state.get("split", NEVER)
    is_shown = st.session_state.get("panel", {}).get("part") in PARTS
    return None if chosen == AUTOMATIC and not is_shown else SPLITS[chosen]


def device_settings(hub: Hub) -> None:
    """Draw on which device a run is made and how its decode steps are handed over."""
    ready = hub.engine_status().ready
    labels = {option.name: option.label for option in ready.devices} if ready is not None else {}
    st.selectbox(
        "Device",
        ["auto", *labels],
        key="device",
        format_func=lambda name: labels.get(name) or str(name),
        help="auto: an NVIDIA GPU, else Apple's, else the CPU; a model larger than one GPU is "
        "spread over all of them. Another device loads the model anew.",
    )
    if ready is not None and ready.device_note:
        st.caption(ready.device_note)
    reasons = {one.mode: one.reason for one in ready.decodes} if ready is not None else {}
    chosen = st.selectbox(
        "Decode steps are",
        list(DecodeMode),
        key="decode",
        format_func=lambda mode: DECODES[mode],
        help="A GPU step of a small model is hundreds of short operations, and handing each over "
        "costs more than computing it. A recorded step is handed over at once, on a static cache. "
        "A step that is looked into (attention, parts) is eager for that step.",
    )
    if reason := reasons.get(chosen, ""):
        st.caption(f"Not available here: {reason}. The run will be eager and say so.")


def _exact_input(hub: Hub) -> None:
    """Show the templated text and its length, once a model and with it a tokenizer is there."""
    codec = hub.codec()
    if codec is None:
        st.caption("The tokenizer comes with the model, which is still loading.")
        return
    _show_input(
        codec, st.session_state["prompt"], is_raw=not st.session_state.get("template", True)
    )


def _show_input(codec: TextCodec, prompt: str, *, is_raw: bool) -> None:
    try:
        ids = codec.encode(prompt, is_raw=is_raw)
        text = prompt if is_raw else codec.templated(prompt)
    except TokenByTokenError as error:
        st.error(str(error))
        return
    st.caption(
        f"{counted(len(ids), 'token')}, counted with the loaded model's own tokenizer. "
        + ("As typed, no template." if is_raw else "The model's chat template is applied.")
    )
    st.code(text, language=None, wrap_lines=True, height=260)
