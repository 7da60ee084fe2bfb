"""``python -m inference export``: a run that is over as one HTML page that plays it.

The page is made in a process of its own (``visuals/panel/player_file.py``), named here by its
module only, since nothing in this package may import what draws.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from inference.commands import Subparsers, write_stdout
from inference.records.errors import InputError
from inference.storage.named_files import check_named_file, write_named_file

if TYPE_CHECKING:
    from inference.records.run import RunTrace

MODULE = "visuals.panel.player_file"
ROOT = Path(__file__).resolve().parents[2]
STDOUT = "-"
SUFFIXES = (".html", ".htm")


def add_parser(subparsers: Subparsers) -> None:
    """Add the ``export`` command."""
    parser = subparsers.add_parser(
        "export", help="make one HTML page of a run that plays it offline in any browser"
    )
    parser.add_argument("name", metavar="RUN", help="a run file, or the id of a run that is kept")
    parser.add_argument(
        "--to", required=True, help="HTML file to write; - for standard output", metavar="FILE"
    )
    parser.add_argument(
        "--number", type=int, help="which run, 1 for the first, of a file that holds several"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the page, and say on standard error what it does not show."""
    if args.to != STDOUT:
        if not args.to.lower().endswith(SUFFIXES):
            msg = f"{args.to} is not the name of an HTML page; end it in .html"
            raise InputError(msg)
        check_named_file(Path(args.to))
    content = page_of(chosen(args.name, args.number))
    if args.to == STDOUT:
        write_stdout(content.decode())
        return 0
    try:
        write_named_file(Path(args.to), content)
    except OSError as error:
        msg = f"{args.to} cannot be written: {error.strerror or error}; free some room or choose "
        msg += "another folder"
        raise InputError(msg) from error
    return 0


def chosen(name: str, number: int | None) -> RunTrace:
    """Return the run that is meant.

    Args:
        name: Of a run file, or the id of a run that is kept.
        number: Which run of the file, from 1; needed where it holds several.

    Raises:
        RunFileError: There is no such file or run, or it is damaged.
        InputError: It holds several, or fewer than the number says.
    """
    from inference.runs.run_file import read  # noqa: PLC0415  not on every GPU machine
    from inference.runs.store import RUN_KEY, RunStore  # noqa: PLC0415  as above

    is_key = not Path(name).exists() and RUN_KEY.fullmatch(name) is not None
    traces = (RunStore().open(name),) if is_key else read(Path(name))
    if not traces:
        msg = f"{name} holds no run"
        raise InputError(msg)
    if number is None and len(traces) > 1:
        msg = f"{name} holds {len(traces)} runs; choose one with --number 1 to {len(traces)}"
        raise InputError(msg)
    number = 1 if number is None else number
    if not 1 <= number <= len(traces):
        msg = f"{name} has no run number {number}; it holds {len(traces)}"
        raise InputError(msg)
    return traces[number - 1]


def page_of(trace: RunTrace) -> bytes:
    """Return the page of a run; what it does not show is said on standard error.

    Raises:
        InputError: It could not be made.
    """
    from inference.runs.run_file import to_json  # noqa: PLC0415  as above

    made = subprocess.run(
        (sys.executable, "-m", MODULE),
        cwd=ROOT,
        input=to_json((trace,)).encode(),
        capture_output=True,
        check=False,
    )
    said = made.stderr.decode(errors="replace")
    if made.returncode != 0:
        lines = said.strip().splitlines()
        reason = lines[-1] if lines else f"it ended with code {made.returncode}"
        msg = f"the page could not be made: {reason}"
        raise InputError(msg)
    sys.stderr.write(said)
    return made.stdout
