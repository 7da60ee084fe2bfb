"""``python -m inference serve-info``: which engine is at an address, and what it tells."""

from __future__ import annotations

import argparse
import asyncio
import json

from inference.commands import Subparsers, write_stdout
from inference.commands.endpoint_arguments import (
    add_key_argument,
    add_silence_argument,
    check_silence,
    endpoint_of,
    gauge_lines,
    info_lines,
)
from inference.records.endpoints import EndpointInfo, EngineGauges
from inference.remote.address import Endpoint
from inference.runs.plain_run_file import plain


def add_parser(subparsers: Subparsers) -> None:
    """Add the ``serve-info`` command."""
    parser = subparsers.add_parser(
        "serve-info", help="say which engine is at an address, what it serves and what it tells"
    )
    parser.add_argument("address", help="such as http://127.0.0.1:8000")
    add_key_argument(parser)
    parser.add_argument(
        "--try",
        dest="is_tried",
        action="store_true",
        help="find out what it takes with requests of two tokens; else nothing is generated",
    )
    parser.add_argument("--model", help="the model to try; the only one on the list if not given")
    parser.add_argument("--raw", action="store_true", help="try prompts without a chat template")
    add_silence_argument(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print what the server says of itself."""
    check_silence(args.silence)
    info, gauges = asyncio.run(_info(endpoint_of(args.address, args.key_env), args))
    both = plain(info) | {"gauges": plain(gauges)}
    lines = [*info_lines(info), *gauge_lines(gauges)]
    text = json.dumps(both, indent=2) if args.json else "\n".join(lines)
    write_stdout(f"{text}\n")
    return 0


async def _info(
    endpoint: Endpoint, args: argparse.Namespace
) -> tuple[EndpointInfo, EngineGauges | None]:
    from inference.remote.connection import Wire  # noqa: PLC0415  not on every GPU machine
    from inference.remote.gauges import read_gauges  # noqa: PLC0415
    from inference.remote.identify import chosen_model, identify  # noqa: PLC0415
    from inference.remote.tries import tried  # noqa: PLC0415

    async with Wire(endpoint) as wire:
        info = await identify(wire)
        if args.is_tried:
            model = chosen_model(info, args.model)
            info = await tried(wire, info, model, is_raw=args.raw, silence_s=args.silence)
        return info, await read_gauges(wire)
