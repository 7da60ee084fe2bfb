"""Runs as tables: a row for each step of each request, and a row for each subject compared.

CSV cells that a spreadsheet would take for a formula get an apostrophe in front, and those that are
longer than it can hold are cut with a mark; Parquet keeps the text as it is. Of one request,
``step_time_s`` and ``wait_s`` add up to its end-to-end time. No torch.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from inference.figures.disturbance import is_disturbed
from inference.records.run import RunTrace
from inference.records.steps import RowStep, StepEvent
from inference.runs.comparisons import FigureSpread, SubjectFigures
from inference.runs.subject_keys import settings_in_words

CellValue: TypeAlias = str | int | float | bool | None
TableRow: TypeAlias = dict[str, CellValue]

SPREADS = ("ttft_s", "itl_p50_s", "itl_p95_s", "tpot_s", "tokens_per_s", "batch_tokens_per_s")
# Source: Microsoft, "Excel specifications and limits": characters that a cell can contain.
MOST_CELL_CHARACTERS = 32_767
BYTE_ORDER_MARK = "\ufeff"  # without it Excel reads a CSV as ANSI and spoils every accent
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
_TEXT, _COUNT, _SECONDS, _FLAG = pa.string(), pa.int64(), pa.float64(), pa.bool_()
STEP_SCHEMA = pa.schema(
    [
        ("run_id", _TEXT),
        ("request_id", _TEXT),
        ("step", _COUNT),
        ("phase", _TEXT),
        ("query_tokens", _COUNT),
        ("context_tokens", _COUNT),
        ("token_id", _COUNT),
        ("token_text", _TEXT),
        ("logprob", _SECONDS),
        ("finish", _TEXT),
        ("started_s", _SECONDS),
        ("step_time_s", _SECONDS),
        ("wait_s", _SECONDS),
        ("observed", _FLAG),
        ("cold", _FLAG),
        ("run_delay_s", _SECONDS),
        ("disturbed", _FLAG),
        ("kv_used_bytes", _COUNT),
        ("kv_allocated_bytes", _COUNT),
        ("model_id", _TEXT),
        ("device", _TEXT),
        ("dtype", _TEXT),
    ]
)


def step_rows(traces: Iterable[RunTrace]) -> list[TableRow]:
    """Return a row for each step of each request, run after run.

    ``step_time_s`` is shared by all rows of a step; ``wait_s`` is the time of the steps before it
    that did nothing for this request. A sum over several requests counts a batch's steps more than
    once.
    """
    return [row for trace in traces for row in _run_rows(trace)]


def steps_csv(traces: Iterable[RunTrace]) -> str:
    """Return the steps of runs as CSV."""
    return to_csv(step_rows(traces), STEP_SCHEMA.names)


def steps_parquet(traces: Sequence[RunTrace]) -> bytes:
    """Return the steps of runs as Parquet."""
    table = pa.Table.from_pylist(step_rows(traces), schema=STEP_SCHEMA)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def figure_rows(figures: Iterable[SubjectFigures]) -> list[TableRow]:
    """Return a row for each subject: medians over the repeats, and both ends of each spread."""
    rows: list[TableRow] = []
    for subject_figures in figures:
        words = settings_in_words(subject_figures.subject.key)
        row: TableRow = {
            "label": subject_figures.subject.label,
            "title": subject_figures.subject.title,
            **{name.replace(" ", "_"): value for name, value in words.items()},
            "repeats": len(subject_figures.subject.samples),
            "prompt_tokens": subject_figures.prompt_tokens,
            "output_tokens": subject_figures.output_tokens,
        }
        for name in SPREADS:
            row |= _spread_cells(name, getattr(subject_figures, name))
        row |= {
            "kv_bytes": subject_figures.kv_bytes,
            "finish": subject_figures.finish,
            "cold": subject_figures.is_cold,
            "disturbed_steps": subject_figures.disturbance.disturbed,
            "steps_known": subject_figures.disturbance.steps,
            "disturbed_ttfts": subject_figures.disturbed_ttfts,
        }
        rows.append(row)
    return rows


def figures_csv(figures: Iterable[SubjectFigures]) -> str:
    """Return the subjects' figures as CSV."""
    rows = figure_rows(figures)
    return to_csv(rows, list(rows[0]) if rows else ["label"])


def to_csv(rows: Iterable[TableRow], columns: Sequence[str]) -> str:
    """Return rows as CSV with a header; what is not known is an empty cell."""
    sheet = io.StringIO(newline="")
    writer = csv.writer(sheet, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([_csv_cell(row.get(name)) for name in columns] for row in rows)
    return sheet.getvalue()


def csv_file(text: str) -> bytes:
    """Return CSV as a file that spreadsheets open with its letters right."""
    return f"{BYTE_ORDER_MARK}{text}".encode(errors="replace")


def safe_text(text: str) -> str:
    """Return text that no spreadsheet takes for a formula.

    Source:
        OWASP, "CSV Injection": cells that begin with one of these characters.
    """
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def _csv_cell(cell: CellValue) -> str | int | float:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return _fitted(safe_text(cell)) if isinstance(cell, str) else cell


def _fitted(text: str) -> str:
    """Return text that fits into a cell of a spreadsheet; what is cut is said in its place."""
    if len(text) <= MOST_CELL_CHARACTERS:
        return text
    mark = f"\u2026 [cut here: {len(text):,} characters, the run file has all of them]"
    return text[: MOST_CELL_CHARACTERS - len(mark)] + mark


def _run_rows(trace: RunTrace) -> list[TableRow]:
    texts = {piece.token_id: piece.raw.decode("utf-8", "replace") for piece in trace.pieces}
    waits_s = {request.request_id: 0.0 for request in trace.requests}
    rows: list[TableRow] = []
    for event in trace.events:
        fed = {row.request_id for row in event.rows}
        for row in event.rows:
            rows.append(_step_row(trace, event, row, texts))
            rows[-1]["wait_s"] = waits_s[row.request_id]
            waits_s[row.request_id] = 0.0
        for request_id in waits_s.keys() - fed:
            waits_s[request_id] += event.duration_s
    return rows


def _step_row(trace: RunTrace, event: StepEvent, row: RowStep, texts: dict[int, str]) -> TableRow:
    info = trace.info
    return {
        "run_id": info.run_id,
        "request_id": row.request_id,
        "step": event.index,
        "phase": event.phase.value,
        "query_tokens": row.query_tokens,
        "context_tokens": row.context_tokens,
        "token_id": row.token_id,
        "token_text": None if row.token_id is None else texts.get(row.token_id),
        "logprob": row.logprob,
        "finish": None if row.finish is None else row.finish.value,
        "started_s": event.started_s,
        "step_time_s": event.duration_s,
        "wait_s": 0.0,
        "observed": event.observed,
        "cold": event.cold,
        "run_delay_s": event.run_delay_s,
        "disturbed": None if event.run_delay_s is None else is_disturbed(event),
        "kv_used_bytes": event.cache.used_bytes,
        "kv_allocated_bytes": event.cache.allocated_bytes,
        "model_id": info.model_id,
        "device": info.device.name,
        "dtype": info.device.dtype,
    }


def _spread_cells(name: str, spread: FigureSpread) -> TableRow:
    return {name: spread.middle, f"{name}_low": spread.low, f"{name}_high": spread.high}
