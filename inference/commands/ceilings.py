"""``python -m inference ceilings``: measure this device's two roofs and print them as JSON."""

from __future__ import annotations

import argparse
import sys

from inference.commands import Subparsers
from inference.commands.fetch import ProgressLine
from inference.records.status import LoadStage


def add_parser(subparsers: Subparsers) -> None:
    """Add the ``ceilings`` command."""
    parser = subparsers.add_parser(
        "ceilings", help="measure memory bandwidth and matrix-product rate of this device"
    )
    parser.add_argument("--dtype", default="auto", help="auto, float32, bfloat16, float16, float64")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N, mps")
    parser.add_argument("--fresh", action="store_true", help="measure again even if known")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print both roofs, kept from an earlier call unless ``--fresh``."""
    from inference.calibration.ceilings_store import ceilings_for, ceilings_json  # noqa: PLC0415  torch is slow
    from inference.models.devices import choose_device  # noqa: PLC0415

    device, dtype = choose_device(args.device, args.dtype)
    progress = ProgressLine(sys.stderr)

    def tell(ratio: float, text: str) -> None:
        progress.show(LoadStage(stage=text, ratio=ratio))

    try:
        measured = ceilings_for(device, dtype, tell, is_fresh=args.fresh)
    finally:
        progress.close()
    if measured is not None:
        sys.stdout.write(f"{ceilings_json(measured)}\n")
    return 0
