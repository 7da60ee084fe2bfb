"""A load's requests on their timeline, and the sweep's curve."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from inference.figures.loads import Limits
from inference.records.arrivals import (
    Arrival,
    ArrivalKind,
    LoadPlan,
    Marks,
    RemoteAsk,
    RemoteRequest,
    RemoteRun,
    Spacing,
    Usage,
)
from inference.records.endpoints import EndpointInfo, EngineKind
from inference.records.options import Sampling
from inference.records.serving import EngineReading, EngineRow
from inference.records.status import RunState
from visuals.charts.loads import (
    Figure,
    curve_rows,
    failed_rows,
    figure_rows,
    load_table,
    load_timeline,
    prompt_tokens,
    read_rows,
    request_figures,
    throughput_latency,
    timeline_rows,
    wait_rows,
)
from visuals.charts.serving import OwnRequests, own_rows

ASK = RemoteAsk(model_id="m", prompt_text="Hi", max_new_tokens=3, sampling=Sampling(), seed=0)
BEGIN = datetime(2026, 12, 1, tzinfo=UTC)
LIMITS = Limits(ttft_s=0.25, tpot_s=0.1)


def request(name: str, planned_s: float, sent_s: float, *reads_s: float) -> RemoteRequest:
    arrivals = tuple(
        Arrival(at_s=at_s, read=index, kind=ArrivalKind.TEXT, raw=b"a", token_ids=(1,))
        for index, at_s in enumerate(reads_s)
    )
    return RemoteRequest(
        request_id=name,
        ask=ASK,
        marks=Marks(planned_s=planned_s, sent_s=sent_s, ended_s=reads_s[-1] if reads_s else 3.0),
        arrivals=arrivals,
        usage=Usage(prompt_tokens=7, output_tokens=len(reads_s)) if reads_s else None,
        state=RunState.DONE if reads_s else RunState.FAILED,
        message="" if reads_s else "it answers 500",
        is_warm_up=name == "w0",
    )


def load(plan: LoadPlan) -> RemoteRun:
    return RemoteRun(
        run_id="x",
        endpoint=EndpointInfo(
            address="http://h:1", engine=EngineKind.VLLM, version="1", models=(), offers=()
        ),
        started_at=BEGIN,
        versions=(),
        requests=(
            request("w0", 0.0, 0.0, 0.1, 0.2),
            request("r0", 1.0, 1.1, 1.3, 1.35, 1.4),
            request("r1", 1.5, 1.5),
        ),
        load=plan,
    )


CLOSED = load(LoadPlan(spacing=Spacing.CLOSED, concurrency=2, requests=2, warm_up=1))
OPEN = load(LoadPlan(spacing=Spacing.CONSTANT, rate_per_s=2.0, requests=2, warm_up=1))


def test_each_request_has_its_parts_on_the_loads_clock() -> None:
    rows = timeline_rows(CLOSED)

    parts = [(row["request"], row["part"], row["begin"], row["end"]) for row in rows]
    assert parts == [
        ("w0", "to first token", 0.0, 0.1),
        ("w0", "tokens", 0.1, 0.2),
        ("r0", "waited here", 1.0, 1.1),
        ("r0", "to first token", 1.1, 1.3),
        ("r0", "tokens", 1.3, 1.4),
        ("r1", "to first token", 1.5, 3.0),
    ]
    assert len(read_rows(CLOSED)) == 5
    assert [row["outcome"] for row in failed_rows(CLOSED)] == ["it answers 500"]


def test_client_wait_is_in_the_ttft_of_an_open_loop_only() -> None:
    assert [row["ms"] for row in figure_rows(CLOSED, Figure.TTFT)] == [200.0]
    assert [row["ms"] for row in figure_rows(OPEN, Figure.TTFT)] == [300.0]
    assert [row["ms"] for row in figure_rows(OPEN, Figure.TPOT)] == [50.0]
    assert wait_rows((CLOSED,)) == []
    [wait] = wait_rows((OPEN,))
    assert (wait["Wanted"], wait["Waited on this side"]) == ("2.00\u00a0requests/s", "50 / 95 / 99")


def test_the_table_has_a_row_for_each_step() -> None:
    closed, opened = load_table((CLOSED, OPEN), LIMITS)

    assert (closed["Load"], opened["Load"]) == ("2 at a time", "2/s")
    assert closed["Finished"] == "1 of 2"
    assert "1 good" in str(closed["Goodput"])
    assert "0 good" in str(opened["Goodput"])
    assert prompt_tokens((CLOSED,)) == (7, 7)


def test_a_sweeps_curve_has_a_point_for_each_step() -> None:
    rows = curve_rows((CLOSED, OPEN), None)

    assert [row["label"] for row in rows] == ["2", "2/s"]
    assert [row["ms"] for row in rows] == [50.0, 50.0]


def test_charts_can_be_built() -> None:
    for chart in (
        load_timeline(CLOSED),
        request_figures(CLOSED, Figure.TTFT),
        throughput_latency((CLOSED, OPEN)),
    ):
        assert chart.to_dict()["description"]


def test_requests_sent_from_here_stand_on_the_engines_clock() -> None:
    readings = tuple(
        EngineReading(at=BEGIN + timedelta(seconds=at_s), whole=EngineRow(running=1))
        for at_s in (1, 5)
    )

    own = OwnRequests(runs=(CLOSED,), sending_since=BEGIN + timedelta(seconds=4))
    rows = own_rows(readings, own)

    assert [(row["s"], row["until"]) for row in rows] == [
        (-1.0, 0.0),
        (-5.0, -4.8),
        (-3.9, -3.6),
        (-3.5, -2.0),
    ]
