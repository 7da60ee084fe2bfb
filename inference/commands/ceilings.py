"""``python -m inference ceilings``: measure this device's two roofs and print them as JSON."""

from __future__ import annotations

import argparse
import sys

from inference.commands import Subparsers, add_device_arguments, write_stdout
from inference.commands.progress import ProgressLine


def add_parser(subparsers: Subparsers) -> None:
    """Add the ``ceilings`` command."""
    parser = subparsers.add_parser(
        "ceilings", help="measure memory bandwidth and matrix-product rate of this device"
    )
    add_device_arguments(parser)
    parser.add_argument(
        "--fresh", action="store_true", help="measure again, whatever an earlier call measured"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print both roofs, kept from an earlier call unless ``--fresh``."""
    from inference.calibration.ceilings_store import ceilings_for, ceilings_json  # noqa: PLC0415  torch is slow
    from inference.models.devices import choose_device  # noqa: PLC0415

    device, dtype = choose_device(args.device, args.dtype)
    with ProgressLine() as progress:
        measured = ceilings_for(device, dtype, progress.show_ratio, is_fresh=args.fresh)
    if measured is not None:
        write_stdout(f"{ceilings_json(measured)}\n")
        if measured.is_disturbed:
            sys.stderr.write(
                "other programs disturbed these roofs each time they were measured, so they may be "
                "too low; measure again with --fresh once the machine is idle\n"
            )
    return 0
