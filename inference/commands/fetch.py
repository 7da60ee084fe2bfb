"""``python -m inference fetch``: bring the default model onto this machine, once."""

from __future__ import annotations

import argparse

from inference.commands import Subparsers, write_stdout
from inference.commands.progress import ProgressLine
from inference.models.catalog import DEFAULT_MODEL


def add_parser(subparsers: Subparsers) -> None:
    """Add the ``fetch`` command."""
    parser = subparsers.add_parser("fetch", help=f"fetch the default model, {DEFAULT_MODEL.id}")
    parser.add_argument(
        "--verify",
        action="store_true",
        help="compare every byte of a model that is here with the record of its check",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Fetch the default model unless it is there, and print its folder."""
    # A machine that is given its model as a folder may lack the packages to fetch with.
    from inference.models.fetch import fetch_default  # noqa: PLC0415  see above

    with ProgressLine() as progress:
        folder = fetch_default(progress.show, reads_all=args.verify)
    write_stdout(f"{folder}\n")
    return 0
