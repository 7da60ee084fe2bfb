"""The subcommands of ``python -m inference``, one file each.

Each has ``add_parser(subparsers)``, which sets ``run`` as the parser's default, and ``run(args)``,
which returns the exit code. ``progress`` is the line that all of them show on standard error.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Protocol

INTERRUPTED = 130  # the exit code of what Ctrl-C ended


class Subparsers(Protocol):
    """What ``ArgumentParser.add_subparsers`` returns, as far as a command needs it."""

    def add_parser(self, name: str, *, help: str) -> ArgumentParser:
        """Add one command and return its parser."""
        ...


def add_model_argument(parser: ArgumentParser) -> None:
    """Add ``--model``."""
    parser.add_argument(
        "--model", default="default", help="default, a catalogue or hub id, a folder, a .gguf file"
    )


def add_device_arguments(parser: ArgumentParser) -> None:
    """Add ``--dtype`` and ``--device``."""
    parser.add_argument("--dtype", default="auto", help="auto, float32, bfloat16, float16, float64")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N, cuda:all, mps")
