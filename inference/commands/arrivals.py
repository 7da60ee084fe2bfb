"""``python -m inference arrivals``: a remote run's figures, and its arrivals as a table."""

from __future__ import annotations

import argparse
from pathlib import Path

from inference.commands import Subparsers, write_stdout
from inference.commands.figure_lines import figure_lines
from inference.records.errors import InputError
from inference.storage.named_files import check_named_file, write_named_file

CSV, PARQUET = ".csv", ".parquet"


def add_parser(subparsers: Subparsers) -> None:
    """Add the ``arrivals`` command."""
    parser = subparsers.add_parser(
        "arrivals", help="show what came, and when, of a run of `run --endpoint` or of a load"
    )
    parser.add_argument("file", type=Path, help="a run file of `run --endpoint` or of `load`")
    parser.add_argument(
        "--out", type=Path, help="write a row for each arrival, as .csv or .parquet"
    )
    parser.add_argument(
        "--requests", action="store_true", help="with --out: a row for each request instead"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the figures of each request, and write the table."""
    out: Path | None = args.out
    if out is not None:
        if out.suffix not in {CSV, PARQUET}:
            msg = f"{out} is neither {CSV} nor {PARQUET}; give a name that ends so"
            raise InputError(msg)
        check_named_file(out)
    from inference.runs import arrival_exports as tables  # noqa: PLC0415  after bad input
    from inference.runs.exports import csv_file  # noqa: PLC0415
    from inference.runs.remote_file import read  # noqa: PLC0415

    runs = read(args.file)
    lines = [
        f"{run.run_id} {line}" for run in runs for one in run.requests for line in figure_lines(one)
    ]
    write_stdout("\n".join(lines) + "\n")
    if out is not None:
        to_csv = tables.requests_csv if args.requests else tables.arrivals_csv
        to_parquet = tables.requests_parquet if args.requests else tables.arrivals_parquet
        _write(out, csv_file(to_csv(runs)) if out.suffix == CSV else to_parquet(runs))
    return 0


def _write(out: Path, table: bytes) -> None:
    try:
        write_named_file(out, table)
    except OSError as error:
        msg = f"{out} cannot be written: {error.strerror or error}; free some room"
        raise InputError(msg) from error
