"""The subcommands of ``python -m inference``, one file each.

Each has ``add_parser(subparsers)``, which sets ``run`` as the parser's default, and ``run(args)``,
which returns the exit code. ``progress`` is the line that all of them show on standard error.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from typing import Protocol

from inference.records.errors import InputError

INTERRUPTED = 130  # the exit code of what Ctrl-C ended


class Subparsers(Protocol):
    """What ``ArgumentParser.add_subparsers`` returns, as far as a command needs it."""

    def add_parser(self, name: str, *, help: str) -> ArgumentParser:
        """Add one command and return its parser."""
        ...


def write_stdout(text: str) -> None:
    """Write a command's result to standard output, all of it, before the command ends.

    Raises:
        InputError: There is no room for it, or nothing takes it.
        BrokenPipeError: Whoever read it has enough.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # What the interpreter still holds would fail once more at exit, with a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        msg = f"standard output cannot be written: {error.strerror or error}; free some room or "
        msg += "write elsewhere"
        raise InputError(msg) from error


def add_model_argument(parser: ArgumentParser) -> None:
    """Add ``--model``."""
    parser.add_argument(
        "--model", default="default", help="default, a catalogue or hub id, a folder, a .gguf file"
    )


def add_device_arguments(parser: ArgumentParser) -> None:
    """Add ``--dtype`` and ``--device``."""
    parser.add_argument(
        "--dtype",
        default="auto",
        help="auto, float32, bfloat16, float16, float64; on a CPU q8_0, q4_0, q4_1",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N, cuda:all, mps")
