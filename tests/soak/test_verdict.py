"""The verdict of a soak: what grew, what was gained, what was lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.soak.chart import soak_chart
from tests.soak.verdict import Finding, Reading, RunEnd, Sample, verdict

ROOM = 10_000_000
WELL = RunEnd(minute=1.0, is_as_meant=True, words="done")


def reading(process_id: int, memory: float, descriptors: int = 40, threads: int = 20) -> Reading:
    return Reading(
        process_id=process_id,
        memory_bytes=int(memory),
        descriptors=descriptors,
        threads=threads,
        processor_s=1.0,
    )


def steady(minutes: int = 60) -> list[Sample]:
    """Return an hour in which only the first minutes grow, with an engine killed after 30."""
    return [
        Sample(
            minute=float(minute),
            app=reading(1, 4e8 + 1e7 * min(minute, 8)),
            engine=reading(2 if minute < minutes / 2 else 3, 9e8),
            model="default" if minute % 4 < 2 else "tiny",
            disk_bytes=9_000_000,
        )
        for minute in range(minutes)
    ]


def bad(samples: list[Sample], *complaints: str, runs: tuple[RunEnd, ...] = (WELL,)) -> list[str]:
    found = verdict(samples, runs, complaints, ROOM)
    return [one.name for one in found if not one.is_good]


def test_an_hour_without_growth_is_passed() -> None:
    found = verdict(steady(), [WELL], [], ROOM)

    assert [one for one in found if not one.is_good] == []
    assert Finding("app memory", "458 MiB, then 458 (+0.0%)", is_good=True) in found
    assert {"engine 1 memory", "engine 2 memory", "disk", "runs"} <= {one.name for one in found}


def test_memory_that_grows_after_ten_minutes_is_found_in_each_process() -> None:
    app = [
        replace(one, app=replace(one.app, memory_bytes=int(4e8 + 1e6 * one.minute)))
        for one in steady()
    ]
    engine = [
        replace(one, engine=reading(2, 9e8 + 3e6 * one.minute)) if one.engine else one
        for one in steady()
    ]

    assert bad(app) == ["app memory"]
    assert bad(engine) == ["engine memory"]


def test_a_model_that_takes_more_while_it_is_held_is_no_growth() -> None:
    samples = [
        replace(one, engine=reading(2, 9e8 if one.model == "default" else 3e8)) for one in steady()
    ]

    assert bad(samples) == []


@pytest.mark.parametrize("kind", ["descriptors", "threads"])
def test_what_is_gained_is_found_and_what_comes_and_goes_is_not(kind: str) -> None:
    def with_count(sample: Sample, count: int) -> Sample:
        return replace(sample, app=replace(sample.app, **{kind: count}))

    gained = [with_count(one, 20 + int(one.minute) // 20) for one in steady()]
    pulsing = [with_count(one, 20 + int(one.minute) % 3) for one in steady()]

    assert bad(gained) == [f"app {kind}"]
    assert bad(pulsing) == []


def test_lost_runs_full_disks_and_complaints_are_found() -> None:
    lost = RunEnd(minute=3.0, is_as_meant=False, words="not kept")
    full = [replace(one, disk_bytes=ROOM + 1) for one in steady()]

    assert bad(steady(), runs=(WELL, lost)) == ["runs"]
    assert bad(steady(), runs=()) == ["runs"]
    assert bad(full) == ["disk"]
    assert bad(steady(), "an exception") == ["complaints"]


def test_too_short_a_soak_is_not_passed() -> None:
    assert "app" in bad(steady(minutes=15))
    assert "app" in [one.name for one in verdict([], [WELL], [], ROOM) if not one.is_good]


def test_the_chart_has_a_line_for_each_life_and_a_mark_for_each_kill() -> None:
    drawn = soak_chart(steady(), [30.0], "a machine, a day").to_dict()

    assert len(drawn["vconcat"]) == 4
    memory = drawn["vconcat"][0]["layer"]
    assert {row["life"] for row in memory[0]["data"]["values"]} == {1, 2, 3}
    assert memory[1]["data"]["values"] == [{"minute": 30.0}]
