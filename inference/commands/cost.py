"""``python -m inference cost``: count the FLOPs and bytes of one step of any published config."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from inference.commands import Subparsers, write_stdout
from inference.counting.costs import step_cost
from inference.counting.datasheets import device_ceilings, device_memory_bytes
from inference.counting.public_configs import public_config, public_config_names
from inference.counting.published_weights import as_published
from inference.counting.roofline import bound_of, lower_bound_seconds
from inference.counting.what_if import check_positive, memory_needed_bytes, with_kv_bytes
from inference.records.costs import StepCost
from inference.records.errors import InputError
from inference.records.model import ModelShape
from inference.records.rooflines import roof_tag

if TYPE_CHECKING:
    from collections.abc import Mapping

KV_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "float8": 1}
DOES_NOT_FIT = (
    "Weights and K/V take more memory than the device has, so it cannot run this step: step_s is "
    "that of a device with these rates and enough memory."
)


def add_parser(subparsers: Subparsers) -> None:
    """Add the ``cost`` command."""
    parser = subparsers.add_parser(
        "cost", help="count the FLOPs and bytes of one step of any published model"
    )
    parser.add_argument(
        "--config",
        required=True,
        help=f"a config.json, its folder, or one of {', '.join(public_config_names())}",
    )
    parser.add_argument("--dtype", default="bfloat16", help="of the weights: bfloat16, float32, …")
    parser.add_argument(
        "--weights",
        choices=("published", "dtype"),
        default="published",
        help="count the weights as the config's quantization_config stores them, or in --dtype",
    )
    parser.add_argument("--kv-dtype", help=f"of keys and values, if another: {', '.join(KV_BYTES)}")
    parser.add_argument("--batch", default="1", help="sequences in the step")
    parser.add_argument("--query", default="1", help="tokens fed for each sequence (T)")
    parser.add_argument(
        "--context", help="tokens attended to, including those fed (L); those fed alone if left out"
    )
    parser.add_argument(
        "--attention",
        choices=("causal", "dense"),
        default="causal",
        help="count the pairs under the causal mask, or all of them",
    )
    parser.add_argument(
        "--device",
        help="a data sheet's name such as H100, or FLOP/s:bytes/s such as 989e12:3.35e12",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print what one step must compute and move, and with a device the least time it takes."""
    batch = _whole_number("batch", args.batch)
    query = _whole_number("query", args.query)
    context = query if args.context is None else _whole_number("context", args.context)
    check_positive(batch=batch, query=query, context=context)
    ceilings = device_ceilings(args.device, args.dtype) if args.device else None
    plain = _shape(args)
    shape = as_published(plain) if args.weights == "published" else plain
    is_published = shape is not plain
    if args.kv_dtype:
        shape = with_kv_bytes(shape, KV_BYTES[args.kv_dtype])
    cost = step_cost(shape, [(query, context)] * batch, attention=args.attention)
    fields = _cost_fields(cost)
    needed = memory_needed_bytes(shape, batch, context)
    if ceilings is not None:
        memory = device_memory_bytes(args.device)
        fits = None if memory is None else needed <= memory
        fields |= {
            "step_s": lower_bound_seconds(cost, ceilings),
            "bound": bound_of(cost, ceilings).value,
            "device": {
                "name": args.device,
                "flops_per_s": ceilings.flops_per_s,
                "bytes_per_s": ceilings.bytes_per_s,
                "ridge_flops_per_byte": ceilings.ridge_flops_per_byte,
                "memory_bytes": memory,
                "fits": fits,
                "note": DOES_NOT_FIT if fits is False else "",
                "source": roof_tag(ceilings),
                "method": ceilings.method,
            },
        }
    fields |= {
        "source": "counted",
        "attention": args.attention,
        "logit_rows": batch,
        "model_type": shape.model_type,
        "dtype": args.dtype,
        "batch": batch,
        "query_tokens": query,
        "context_tokens": context,
        "kv_bytes_per_token": shape.kv_bytes_per_token,
        "weights": plain.published_format if is_published else args.dtype,
        "resident_weight_bytes": shape.weight_bytes,
        "resident_weight_bytes_in_dtype": plain.weight_bytes,
        "resident_weight_bytes_published": plain.published_weight_bytes,
        "idle_weight_bytes": shape.idle_weight_bytes,
        "parameters": plain.parameters,
        "memory_needed_bytes": needed,
        "uncounted": list(shape.uncounted),
    }
    write_stdout(f"{json.dumps(fields, indent=2)}\n")
    return 0


def _cost_fields(cost: StepCost) -> dict[str, object]:
    return {
        "linear_flops": cost.linear_flops,
        "attention_flops": cost.attention_flops,
        "weight_bytes": cost.weight_bytes,
        "kv_read_bytes": cost.kv_read_bytes,
        "kv_write_bytes": cost.kv_write_bytes,
        "flops_per_byte": cost.flops_per_byte,
        "expansion_flops": cost.expansion_flops,
    }


def _shape(args: argparse.Namespace) -> ModelShape:
    if args.kv_dtype is not None and args.kv_dtype not in KV_BYTES:
        msg = f"kv dtype {args.kv_dtype} is not known; give one of {', '.join(KV_BYTES)}"
        raise InputError(msg)
    source = _source(args.config)
    from transformers.utils import logging  # noqa: PLC0415  torch takes seconds to import

    from inference.models.config_shapes import shape_of_config  # noqa: PLC0415

    logging.set_verbosity_error()  # a config's odd token ids are no concern of a count
    return shape_of_config(source, args.dtype)


def _source(config: str) -> Path | Mapping[str, object]:
    path = Path(config)
    is_path = path.exists() or path.suffix == ".json" or len(path.parts) > 1
    return path if is_path else public_config(config)


def _whole_number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        msg = f"{name} is {text!r}; give a whole number above zero"
        raise InputError(msg) from error
