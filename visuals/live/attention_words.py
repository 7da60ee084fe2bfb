"""What is said where attention weights are on their way, or cannot be shown. No torch."""

from __future__ import annotations

from inference.process.messages import ModelReady
from inference.records.attention import AttentionChoice
from inference.records.run import RunInfo

OFF = "Capturing attention is switched off in Settings."
FROM_NEXT_STEP = (
    "This layer is captured from the next step on; the earlier rows can be computed once the run "
    "is over."
)
SHARED_ROWS = (
    "Several requests take the same row of this batch one after another, so their weights are "
    "computed once the run is over."
)
NOT_FED = "nothing of this request was fed"


def computing(choice: AttentionChoice) -> str:
    """Return what is said while a layer is captured after the run."""
    return f"Computing {layer_words(choice)} from the run's tokens\u2026"


def refused(choice: AttentionChoice, obstacle: str) -> str:
    """Return why a choice cannot be shown."""
    words = layer_words(choice)
    return f"{words[0].upper()}{words[1:]} cannot be shown: {obstacle}."


def incomplete(obstacle: str) -> str:
    """Return why some rows are missing."""
    return (
        f"Only some rows were captured during the run. The others cannot be computed: {obstacle}."
    )


def layer_words(choice: AttentionChoice) -> str:
    """Return a choice in words."""
    if choice.is_all_heads:
        return f"layer {choice.layer}, all heads"
    return f"layer {choice.layer}" + ("" if choice.head is None else f", head {choice.head}")


def why_not(info: RunInfo, ready: ModelReady | None) -> str:
    """Return why a run's attention cannot be computed on the model held; empty when it can.

    Whether the weights are the same, too, shows when its tokens are fed.
    """
    made_with = f"{info.model_id} in {info.device.dtype}"
    if ready is None:
        return f"it was not captured, and no model is loaded; the run was made with {made_with}"
    if (ready.model_id, ready.device.dtype) != (info.model_id, info.device.dtype):
        held = f"{ready.model_id} in {ready.device.dtype}"
        return f"it was not captured; the run was made with {made_with}, and {held} is loaded"
    ours, theirs = ready.shape, info.shape
    sizes = [
        (one.vocab_size, one.hidden_size, one.num_hidden_layers, one.weight_bytes)
        for one in (ours, theirs)
    ]
    if sizes[0] != sizes[1]:
        return f"it was not captured, and the {info.model_id} that is loaded has other sizes"
    return ""
