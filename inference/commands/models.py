"""``python -m inference models``: the catalogue, and which of it is on this machine."""

from __future__ import annotations

import argparse
import json
from typing import TypedDict

from inference.commands import Subparsers, write_stdout
from inference.models.catalog import CATALOG, CatalogEntry
from inference.models.local_models import local_folder


class ModelRow(TypedDict):
    """One model of the catalogue as the command prints it."""

    id: str
    licence: str
    cached: bool
    path: str | None


def add_parser(subparsers: Subparsers) -> None:
    """Add the ``models`` command."""
    parser = subparsers.add_parser(
        "models", help="list the catalogue, and which models are on this machine"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print one line a model, or with ``--json`` one list."""
    rows = model_rows()
    write_stdout(f"{json.dumps(rows, indent=2) if args.json else _table(rows)}\n")
    return 0


def model_rows() -> list[ModelRow]:
    """Return every model of the catalogue, with the folder of each that was fetched."""
    return [_row(entry) for entry in CATALOG]


def _row(entry: CatalogEntry) -> ModelRow:
    folder = local_folder(entry)
    return ModelRow(
        id=entry.id,
        licence=entry.licence,
        cached=folder is not None,
        path=str(folder) if folder else None,
    )


def _table(rows: list[ModelRow]) -> str:
    width = max(len(row["id"]) for row in rows)
    licence_width = max(len(row["licence"]) for row in rows)
    return "\n".join(
        f"{row['id']:<{width}}  {row['licence']:<{licence_width}}  {row['path'] or 'not fetched'}"
        for row in rows
    )
