"""``python -m inference record``: make the recordings that come with the program anew."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from inference.commands import Subparsers, write_stdout
from inference.commands.progress import ProgressLine
from inference.records.errors import InputError

TRIES = 10


def add_parser(subparsers: Subparsers) -> None:
    """Add the ``record`` command."""
    parser = subparsers.add_parser(
        "record", help="make anew what the pages show before anything was made or measured here"
    )
    parser.add_argument(
        "--model", default="default", help="which model; the default one if not given"
    )
    parser.add_argument(
        "--out", type=Path, help="folder for the recordings; the program's own if not given"
    )
    parser.add_argument(
        "--tries",
        type=int,
        default=TRIES,
        help=f"how often a run or the roofs are made again while something disturbs them ({TRIES})",
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="make this recording and no other, and of the measurements only the roofs that it "
        "carries; may be repeated",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Make all recordings and say on standard error how quiet they were."""
    if args.tries < 1:
        msg = f"{args.tries} tries; give 1 or more"
        raise InputError(msg)
    from inference.models.loading import load_model  # noqa: PLC0415  torch is slow
    from inference.process.recording import Recorder  # noqa: PLC0415
    from inference.process.recording_plans import check_recordings  # noqa: PLC0415
    from inference.runs.recordings import FOLDER  # noqa: PLC0415

    check_recordings(args.only)
    folder = args.out or FOLDER
    with ProgressLine() as progress:
        loaded = load_model(args.model, dtype="float32", on_stage=progress.show)
    Recorder(loaded, _say, args.tries).record(folder, args.only)
    write_stdout(f"{folder}\n")
    return 0


def _say(words: str) -> None:
    sys.stderr.write(f"{words}\n")
