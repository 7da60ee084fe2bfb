"""``python -m inference gpu``: check the device's figures and record runs on it."""

from __future__ import annotations

import argparse
from pathlib import Path

from inference.commands import Subparsers, write_stdout
from inference.commands.progress import ProgressLine
from inference.records.errors import InputError

FAILED = 1


def add_parser(subparsers: Subparsers) -> None:
    """Add the ``gpu`` command."""
    parser = subparsers.add_parser("gpu", help="check a GPU's figures and record runs on it")
    parser.add_argument("--model", default="default", help="a model folder, or default")
    parser.add_argument("--out", required=True, type=Path, help="folder for the report and runs")
    parser.add_argument("--device", default="auto", help="auto, cuda:N, mps, cpu")
    parser.add_argument(
        "--dry", action="store_true", help="go through every stage in tiny sizes, on any device"
    )
    parser.add_argument(
        "--compiled", action="store_true", help="measure torch.compile too, up to 5 minutes more"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the report, print it, and return 1 when a check failed or ended in an error."""
    from inference.bench.gpu_report import make_report  # noqa: PLC0415
    from inference.bench.gpu_report_text import ReportRequest, report_text  # noqa: PLC0415
    from inference.bench.gpu_sizes import DRY, FULL  # noqa: PLC0415
    from inference.models.devices import choose_device  # noqa: PLC0415  torch takes seconds to import

    if args.out.exists() and not args.out.is_dir():
        msg = f"{args.out} is a file; give a folder for the report and the runs"
        raise InputError(msg)
    device, _ = choose_device(args.device, "auto")
    if device.type == "cpu" and not args.dry:
        msg = "torch finds no GPU here; add --dry to go through it on the CPU in tiny sizes"
        raise InputError(msg)
    subject = ReportRequest(
        model=args.model, device=args.device, is_dry=args.dry, has_compiled=args.compiled
    )
    with ProgressLine() as progress:
        report = make_report(subject, DRY if args.dry else FULL, args.out, progress.show)
    write_stdout(report_text(report))
    return 0 if report.is_good else FAILED
