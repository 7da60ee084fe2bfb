"""The subcommands of `python -m inference`, one file each.

Each has ``add_parser(subparsers)``, which sets ``run`` as the parser's default, and ``run(args)``,
which returns the exit code.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Protocol


class Subparsers(Protocol):
    """What ``ArgumentParser.add_subparsers`` returns, as far as a command needs it."""

    def add_parser(self, name: str, *, help: str) -> ArgumentParser:
        """Add one command and return its parser."""
        ...
