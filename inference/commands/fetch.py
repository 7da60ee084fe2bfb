"""``python -m inference fetch``: bring the default model onto this machine, once."""

from __future__ import annotations

import argparse
import sys
from typing import TextIO

from inference.commands import Subparsers
from inference.models.catalog import DEFAULT_MODEL
from inference.records.status import LoadStage

BAR_CELLS = 30


class ProgressLine:
    """One line that is drawn over on a terminal; elsewhere one line a stage."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._stage = ""

    def show(self, progress: LoadStage) -> None:
        """Draw the stage and, on a terminal, how far it is."""
        is_next = progress.stage != self._stage
        if self._is_terminal:
            start = "\n" if is_next and self._stage else "\r"
            self._stream.write(f"{start}{progress_text(progress)}")
        elif is_next:
            self._stream.write(f"{progress.stage}\n")
        self._stage = progress.stage
        self._stream.flush()

    def close(self) -> None:
        """End the line that was drawn over."""
        if self._is_terminal and self._stage:
            self._stream.write("\n")


def progress_text(progress: LoadStage) -> str:
    """Return a bar with its percentage before the stage, or the stage alone."""
    if progress.ratio is None:
        return f"{progress.stage} …"
    filled = round(progress.ratio * BAR_CELLS)
    return f"[{'#' * filled:<{BAR_CELLS}}] {progress.ratio:4.0%}  {progress.stage}"


def add_parser(subparsers: Subparsers) -> None:
    """Add the ``fetch`` command."""
    parser = subparsers.add_parser("fetch", help=f"fetch the default model, {DEFAULT_MODEL.id}")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:  # noqa: ARG001  every command takes its arguments
    """Fetch the default model unless it is there, and print its folder."""
    # Other commands need the line above only, on machines that have nothing to fetch with.
    from inference.models.fetch import fetch_default  # noqa: PLC0415  see above

    progress = ProgressLine(sys.stderr)
    try:
        folder = fetch_default(progress.show)
    finally:
        progress.close()
    sys.stdout.write(f"{folder}\n")
    return 0
