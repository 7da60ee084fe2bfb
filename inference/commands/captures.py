"""``--capture``: whose attention weights a run file keeps."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from inference.records.attention import AttentionChoice
from inference.records.errors import InputError
from inference.records.model import ModelShape


def add_capture_argument(parser: argparse.ArgumentParser) -> None:
    """Add what says which layers are captured."""
    parser.add_argument(
        "--capture",
        action="append",
        default=[],
        metavar="LAYER[:HEAD]",
        help="keep a layer's attention weights in the run file, captured after the last step from "
        "the run's tokens: the mean over the heads, one head, or each with :all; may be repeated, "
        "and the first is shown first",
    )


def parsed_capture(text: str) -> AttentionChoice:
    """Return the layer and head of ``15``, ``15:3`` or ``15:all``.

    Raises:
        InputError: It is none of these.
    """
    layer, _, head = text.partition(":")
    if layer.isdecimal() and (head in ("", "all") or head.isdecimal()):
        return AttentionChoice(
            layer=int(layer),
            head=int(head) if head.isdecimal() else None,
            is_all_heads=head == "all",
        )
    msg = f"{text[:40]!r} names no layer; give LAYER, LAYER:HEAD or LAYER:all, such as 15:all"
    raise InputError(msg)


def check_captures(captures: Sequence[AttentionChoice], shape: ModelShape) -> None:
    """Raise InputError where the model has no such layer or head."""
    layers, heads = shape.num_hidden_layers, shape.num_attention_heads
    for one in captures:
        if one.layer >= layers:
            msg = f"there is no layer {one.layer}; this model has layers 0 to {layers - 1}"
            raise InputError(msg)
        if one.head is not None and one.head >= heads:
            msg = f"there is no head {one.head}; this model has heads 0 to {heads - 1}"
            raise InputError(msg)
