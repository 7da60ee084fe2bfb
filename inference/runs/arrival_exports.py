"""Remote runs as a table: a row for each arrival. No torch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from inference.figures.arrivals import token_counts
from inference.records.arrivals import Arrival, RemoteRequest, RemoteRun
from inference.runs.exports import TableRow, to_csv

_TEXT, _COUNT, _NUMBER = pa.string(), pa.int64(), pa.float64()
ARRIVAL_SCHEMA = pa.schema(
    [
        ("run_id", _TEXT),
        ("request_id", _TEXT),
        ("arrival", _COUNT),
        ("read", _COUNT),
        ("at_s", _NUMBER),
        ("since_sent_s", _NUMBER),
        ("kind", _TEXT),
        ("channel", _TEXT),
        ("text", _TEXT),
        ("bytes", _TEXT),
        ("tokens", _COUNT),
        ("tokens_from", _TEXT),
        ("token_ids", _TEXT),
        ("named_tokens", _TEXT),
        ("logprobs", _TEXT),
        ("prompt_fed", _COUNT),
        ("model_id", _TEXT),
        ("engine", _TEXT),
        ("address", _TEXT),
    ]
)


def arrival_rows(runs: Iterable[RemoteRun]) -> list[TableRow]:
    """Return a row for each arrival, request after request.

    ``tokens`` is how many came since the arrival before, counted from what ``tokens_from`` says.
    Of several tokens in one arrival, ids, texts and log-probabilities are separated by spaces, the
    texts as hexadecimal bytes.
    """
    return [row for run in runs for request in run.requests for row in _request_rows(run, request)]


def arrivals_csv(runs: Iterable[RemoteRun]) -> str:
    """Return the arrivals of runs as CSV."""
    return to_csv(arrival_rows(runs), ARRIVAL_SCHEMA.names)


def arrivals_parquet(runs: Sequence[RemoteRun]) -> bytes:
    """Return the arrivals of runs as Parquet."""
    table = pa.Table.from_pylist(arrival_rows(runs), schema=ARRIVAL_SCHEMA)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def _request_rows(run: RemoteRun, request: RemoteRequest) -> Iterable[TableRow]:
    counts = token_counts(request)
    shared: TableRow = {
        "run_id": run.run_id,
        "request_id": request.request_id,
        "tokens_from": counts.source.value,
        "model_id": request.ask.model_id,
        "engine": run.endpoint.engine.value,
        "address": run.endpoint.address,
    }
    for index, one in enumerate(request.arrivals):
        sent_s = request.marks.sent_s
        yield {
            **shared,
            **_arrival_cells(one),
            "arrival": index,
            "since_sent_s": None if sent_s is None else one.at_s - sent_s,
            "tokens": counts.per_arrival[index],
        }


def _arrival_cells(one: Arrival) -> TableRow:
    return {
        "read": one.read,
        "at_s": one.at_s,
        "kind": one.kind.value,
        "channel": one.channel.value if one.raw else None,
        "text": one.raw.decode("utf-8", "replace"),
        "bytes": one.raw.hex(),
        "token_ids": " ".join(map(str, one.token_ids)),
        "named_tokens": " ".join(token.raw.hex() for token in one.tokens),
        "logprobs": " ".join(
            "" if token.logprob is None else f"{token.logprob:.6g}" for token in one.tokens
        ),
        "prompt_fed": one.prompt_fed,
    }
