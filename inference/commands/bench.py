"""``python -m inference bench``: side-by-side figures as JSON or a table."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from time import perf_counter

from inference.commands import Subparsers, add_device_arguments, add_model_argument, write_stdout
from inference.commands.progress import ProgressLine
from inference.records.errors import InputError
from inference.records.finite import finite


def add_parser(subparsers: Subparsers) -> None:
    """Add the ``bench`` command."""
    parser = subparsers.add_parser(
        "bench", help="measure decode side by side with the library's generate and a bare loop"
    )
    add_model_argument(parser)
    add_device_arguments(parser)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, no 8,192 tokens")
    parser.add_argument("--rounds", type=int, help="turns of each subject")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--llama-bench", type=Path, help="llama.cpp's llama-bench, to compare with")
    parser.add_argument("--gguf", type=Path, help="the same weights for llama-bench")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure everything and print it."""
    check_arguments(args)
    began_s = perf_counter()  # importing torch takes seconds; how many is one of the figures
    from inference.bench.report import BenchRequest, as_json, measure  # noqa: PLC0415  see above
    from inference.bench.tables import as_table  # noqa: PLC0415

    import_s = perf_counter() - began_s
    request = BenchRequest(
        model=args.model,
        dtype=args.dtype,
        device=args.device,
        is_quick=args.quick,
        rounds=args.rounds,
        llama=None if args.llama_bench is None else (args.llama_bench, args.gguf),
    )
    with ProgressLine() as progress:
        report = measure(request, import_s, progress.show)
    is_json = args.json
    text = (
        json.dumps(finite(as_json(report)), indent=2, ensure_ascii=False, allow_nan=False)
        if is_json
        else as_table(report)
    )
    write_stdout(f"{text}\n")
    return 0


def check_arguments(args: argparse.Namespace) -> None:
    """Raise InputError where an argument is missing or out of range."""
    if args.rounds is not None and args.rounds < 1:
        msg = f"{args.rounds} rounds; give 1 or more"
        raise InputError(msg)
    if (args.llama_bench is None) != (args.gguf is None):
        msg = "give both --llama-bench and --gguf, or neither"
        raise InputError(msg)
    for path in (args.llama_bench, args.gguf):
        if path is not None and not path.is_file():
            msg = f"there is no file {path}; check the path"
            raise InputError(msg)
