"""Remote runs as tables: a row for each arrival, or for each request. No torch."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.parquet as pq

from inference.figures.arrivals import arrival_figures, token_counts
from inference.records.arrivals import Arrival, EngineTimes, RemoteRequest, RemoteRun, Usage
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


REQUEST_SCHEMA = pa.schema(
    [
        ("run_id", _TEXT),
        ("request_id", _TEXT),
        ("concurrency", _COUNT),
        ("rate_per_s", _NUMBER),
        ("warm_up", pa.bool_()),
        ("state", _TEXT),
        ("planned_s", _NUMBER),
        ("sent_s", _NUMBER),
        ("connected_s", _NUMBER),
        ("first_byte_s", _NUMBER),
        ("first_token_s", _NUMBER),
        ("last_token_s", _NUMBER),
        ("ended_s", _NUMBER),
        ("ttft_s", _NUMBER),
        ("tpot_s", _NUMBER),
        ("tpot_at_least", pa.bool_()),
        ("prompt_tokens", _COUNT),
        ("cached_tokens", _COUNT),
        ("output_tokens", _COUNT),
        ("engine_queue_s", _NUMBER),
        ("engine_prefill_s", _NUMBER),
        ("engine_decode_s", _NUMBER),
        ("message", _TEXT),
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


def request_rows(runs: Iterable[RemoteRun]) -> list[TableRow]:
    """Return a row for each request, in the order sent; moments are on the run's zero."""
    return [_request_row(run, request) for run in runs for request in run.requests]


def arrivals_csv(runs: Iterable[RemoteRun]) -> str:
    """Return the arrivals of runs as CSV."""
    return to_csv(arrival_rows(runs), ARRIVAL_SCHEMA.names)


def requests_csv(runs: Iterable[RemoteRun]) -> str:
    """Return the requests of runs as CSV."""
    return to_csv(request_rows(runs), REQUEST_SCHEMA.names)


def arrivals_parquet(runs: Iterable[RemoteRun]) -> bytes:
    """Return the arrivals of runs as Parquet."""
    return _parquet(arrival_rows(runs))


def requests_parquet(runs: Iterable[RemoteRun]) -> bytes:
    """Return the requests of runs as Parquet."""
    return _parquet(request_rows(runs), is_of_requests=True)


def _parquet(rows: list[TableRow], *, is_of_requests: bool = False) -> bytes:
    schema = REQUEST_SCHEMA if is_of_requests else ARRIVAL_SCHEMA
    table = pa.Table.from_pylist(rows, schema=schema)
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


def _request_row(run: RemoteRun, request: RemoteRequest) -> TableRow:
    figures, marks = arrival_figures(request), request.marks
    usage, times = request.usage or Usage(), request.times or EngineTimes()
    sent_s = marks.sent_s
    return {
        "run_id": run.run_id,
        "request_id": request.request_id,
        "concurrency": None if run.load is None else run.load.concurrency,
        "rate_per_s": None if run.load is None else run.load.rate_per_s,
        "warm_up": request.is_warm_up,
        "state": request.state.value,
        "planned_s": marks.planned_s,
        "sent_s": sent_s,
        "connected_s": marks.connected_s,
        "first_byte_s": marks.first_byte_s,
        "first_token_s": _sum(sent_s, figures.ttft_s),
        "last_token_s": _sum(sent_s, figures.e2e_s),
        "ended_s": marks.ended_s,
        "ttft_s": figures.ttft_s,
        "tpot_s": figures.tpot_s,
        "tpot_at_least": None if figures.tpot_s is None else figures.is_tpot_at_least,
        "prompt_tokens": usage.prompt_tokens,
        "cached_tokens": usage.cached_tokens,
        "output_tokens": figures.counts.total,
        "engine_queue_s": times.queue_s,
        "engine_prefill_s": times.prefill_s,
        "engine_decode_s": times.decode_s,
        "message": request.message,
        "model_id": request.ask.model_id,
        "engine": run.endpoint.engine.value,
        "address": run.endpoint.address,
    }


def _sum(start_s: float | None, duration_s: float | None) -> float | None:
    return None if start_s is None or duration_s is None else start_s + duration_s
