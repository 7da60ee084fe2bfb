"""Run files written with the standard library alone, for machines that have little else.

The same JSON that run_file.py writes, without its checks; run_file.py reads it. No torch.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any

from inference.records.run import SCHEMA_VERSION, RunTrace
from inference.storage.named_files import write_named_file


def plain(value: Any) -> Any:  # noqa: ANN401  any record, any JSON value
    """Return a record as JSON values; what is none already is written as text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value.value if isinstance(value, Enum) else value
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return _text(value)


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return str(value)


def write_run_file(traces: Sequence[RunTrace], path: Path) -> None:
    """Write runs as one compressed run file, a list where there are several.

    Raises:
        InputError: It is no file that can be written.
        OSError: There is no room, or the folder may not be written.
        ValueError: A number in a run is not finite.
    """
    runs = [{"schema_version": SCHEMA_VERSION, **plain(trace)} for trace in traces]
    text = json.dumps(
        runs[0] if len(runs) == 1 else runs,
        allow_nan=False,
        ensure_ascii=False,
        separators=(",", ":"),
    )
    write_named_file(path, gzip.compress(text.encode(), mtime=0))
