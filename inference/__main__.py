"""The command line: ``python -m inference COMMAND``.

Exit code 0; 1 where a check finds a difference; 2 for bad input with one line that says what is
wrong and what to do. A user never sees a traceback.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from inference.commands import (
    INTERRUPTED,
    arrivals,
    bench,
    ceilings,
    check,
    cost,
    export,
    fetch,
    formats,
    gpu,
    load,
    models,
    prompts,
    record,
    run,
    serve_info,
)
from inference.records.errors import InputError, TokenByTokenError

COMMANDS = (
    run,
    serve_info,
    load,
    arrivals,
    check,
    cost,
    ceilings,
    formats,
    bench,
    gpu,
    models,
    fetch,
    prompts,
    export,
    record,
)
BAD_INPUT = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = OneLineParser(
        prog="python -m inference",
        description="Run a language model step by step, measure it, and count what it must do.",
    )
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_parser(subparsers)
    try:
        parsed = parser.parse_args(arguments)
        return parsed.run(parsed)
    except TokenByTokenError as error:
        sys.stderr.write(f"{one_line(str(error))}\n")
        return BAD_INPUT
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has enough; keep the interpreter from flushing into it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


class OneLineParser(argparse.ArgumentParser):
    """A parser whose complaint is one line, as every other complaint is."""

    def error(self, message: str) -> NoReturn:
        """Raise InputError with what is wrong and where to look."""
        msg = f"{message}; see `{self.prog} --help`"
        raise InputError(msg)


def one_line(sentence: str) -> str:
    """Return the sentence with line breaks made spaces."""
    return " ".join(sentence.split())


def take_terminations() -> None:
    """Have a SIGTERM do what Ctrl-C does: what was recorded until then is saved."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


if __name__ == "__main__":
    take_terminations()
    sys.exit(main())
