"""``python -m inference prompts``: what would be read from prompt files, and what left out."""

from __future__ import annotations

import argparse
import json
import stat
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from inference.commands import Subparsers, write_stdout
from inference.records.errors import InputError
from inference.records.prompts import Upload, UploadedPrompt, Uploads, UploadSettings

LONGEST_SHOWN = 72
WHOLE_FILE = "the file"


def add_parser(subparsers: Subparsers) -> None:
    """Add the ``prompts`` command."""
    parser = subparsers.add_parser(
        "prompts", help="show what would be read from prompt files, and what is left out"
    )
    parser.add_argument("files", nargs="+", type=Path, help="text, tables, or JSON")
    add_column_argument(parser)
    parser.add_argument("--separator", default="", help="what separates prompts in a text file")
    parser.add_argument("--no-header", action="store_true", help="a table's first line is a prompt")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def add_column_argument(parser: argparse.ArgumentParser) -> None:
    """Add the choice of what holds the prompts in a table or in JSON."""
    parser.add_argument("--column", default="", help="the column or key that holds the prompts")


def run(args: argparse.Namespace) -> int:
    """Print the prompts, what is left out and why, and what to know of how files were read."""
    settings = UploadSettings(
        separator=args.separator, column=args.column, has_header=not args.no_header
    )
    from inference.prompts.prompt_files import read_uploads  # noqa: PLC0415  not on every GPU machine

    read = read_uploads((upload_of(path) for path in args.files), settings)
    several = [path.name for path in args.files if _has_lines(path, read)]
    if several:
        note = f"{', '.join(several)}: one prompt here; `run --prompts` takes each line as a prompt"
        read = replace(read, notes=(*read.notes, note))
    text = json.dumps(prompt_fields(read), indent=2) if args.json else "\n".join(_lines(read))
    write_stdout(f"{text}\n")
    if read.prompts:
        return 0
    msg = "no prompt could be read; what is left out, and why, is on standard output"
    raise InputError(msg)


def _has_lines(path: Path, read: Uploads) -> bool:
    """Return whether a text file was read as one prompt of several lines."""
    return any(
        one.source == path.name and one.place == "whole" and "\n" in one.text
        for one in read.prompts
    )


def upload_of(path: Path) -> Upload:
    """Return a file as the page would get it; of one that is too large, enough to refuse it.

    Raises:
        InputError: It cannot be read.
    """
    from inference.prompts.prompt_files import MAX_BYTES  # noqa: PLC0415  not on every GPU machine

    try:
        if _is_named_pipe(path):
            msg = f"{path} is a named pipe; write what comes of it into a file, and give that"
            raise InputError(msg)
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror or error}; check the path"
        raise InputError(msg) from error
    return Upload(name=path.name, content=content)


def _is_named_pipe(path: Path) -> bool:
    """Return whether a path is a pipe that may have no writer; the shell's own ones have one."""
    return stat.S_ISFIFO(path.stat().st_mode) and path.parts[:2] != ("/", "dev")


def read_prompts(path: Path, *, column: str = "") -> tuple[UploadedPrompt, ...]:
    """Return what ``run --prompts`` takes of a file, conversations too.

    A text file has a prompt a line; any other is read as the page's Compare reads it. What is left
    out is said on standard error.

    Raises:
        InputError: The file cannot be read, or holds no prompt.
    """
    from inference.prompts.prompt_files import (  # noqa: PLC0415  as above
        is_of_lines,
        line_prompts,
        read_uploads,
    )

    upload = upload_of(path)
    has_lines = is_of_lines(upload)
    read = (
        line_prompts(upload)
        if has_lines
        else read_uploads((upload,), UploadSettings(column=column))
    )
    refused = next((one.reason for one in read.left_out if one.place == WHOLE_FILE), None)
    if refused is not None:
        msg = f"{path}: {refused}"
        raise InputError(msg)
    for line in _remarks(read):
        sys.stderr.write(f"{line}\n")
    if not read.prompts:
        wanted = "; write one on each line" if has_lines else " that could be read"
        msg = f"{path} holds no prompt{wanted}"
        raise InputError(msg)
    return read.prompts


def prompt_fields(read: Uploads) -> dict[str, object]:
    """Return what was read as the JSON object that the command prints."""
    return {
        "prompts": [
            {
                "text": one.text,
                "turns": [list(turn) for turn in one.turns],
                "source": one.source,
                "place": one.place,
            }
            for one in read.prompts
        ],
        "left_out": [
            {"place": f"{one.source}, {one.place}", "reason": one.reason} for one in read.left_out
        ],
        "notes": list(read.notes),
    }


def _lines(read: Uploads) -> Sequence[str]:
    prompts = "1 prompt" if len(read.prompts) == 1 else f"{len(read.prompts):,} prompts"
    counts = f"{prompts}, {len(read.left_out):,} left out"
    return [
        counts,
        *(f"{one.source}, {one.place}: {_shown(one.text)}" for one in read.prompts),
        *_remarks(read),
    ]


def _remarks(read: Uploads) -> Sequence[str]:
    return [
        *(f"left out: {one.source}, {one.place}: {one.reason}" for one in read.left_out),
        *(f"note: {note}" for note in read.notes),
    ]


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_SHOWN else f"{line[:LONGEST_SHOWN]}\u2026"
