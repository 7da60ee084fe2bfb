"""``python -m inference prompts``: what would be read from prompt files, and what left out."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from inference.commands import Subparsers, write_stdout
from inference.records.errors import InputError
from inference.records.prompts import Upload, UploadedPrompt, Uploads, UploadSettings

LONGEST_SHOWN = 72
WHOLE_FILE = "the file"
STRUCTURED = frozenset({"csv", "tsv", "parquet", "json", "jsonl"})


def add_parser(subparsers: Subparsers) -> None:
    """Add the ``prompts`` command."""
    parser = subparsers.add_parser(
        "prompts", help="show what would be read from prompt files, and what is left out"
    )
    parser.add_argument("files", nargs="+", type=Path, help="text, tables, or JSON")
    parser.add_argument("--column", default="", help="the column or key that holds the prompts")
    parser.add_argument("--separator", default="", help="what separates prompts in a text file")
    parser.add_argument("--no-header", action="store_true", help="a table's first line is a prompt")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


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
    return 0


def _has_lines(path: Path, read: Uploads) -> bool:
    """Return whether a text file was read as one prompt of several lines."""
    return path.suffix.lower().removeprefix(".") not in STRUCTURED and any(
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
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror or error}; check the path"
        raise InputError(msg) from error
    return Upload(name=path.name, content=content)


def read_prompts(path: Path) -> tuple[UploadedPrompt, ...]:
    """Return what ``run --prompts`` takes of a file, conversations too.

    A text file has a prompt a line; any other is read as the page's Compare reads it. What is left
    out is said on standard error.

    Raises:
        InputError: The file cannot be read, or holds no prompt.
    """
    from inference.prompts.prompt_files import line_prompts, read_uploads  # noqa: PLC0415  as above

    upload = upload_of(path)
    is_structured = upload.suffix in STRUCTURED
    read = read_uploads((upload,), UploadSettings()) if is_structured else line_prompts(upload)
    refused = next((one.reason for one in read.left_out if one.place == WHOLE_FILE), None)
    if refused is not None:
        msg = f"{path}: {refused}"
        raise InputError(msg)
    for line in _remarks(read):
        sys.stderr.write(f"{line}\n")
    if not read.prompts:
        wanted = " that could be read" if is_structured else "; write one on each line"
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
    counts = f"{len(read.prompts):,} prompts, {len(read.left_out):,} left out"
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
