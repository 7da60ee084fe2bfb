"""What the whole GPU report takes and leaves out, on cards of three speeds and a scripted clock."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import fsum
from pathlib import Path

import pytest

from inference.bench.gpu_plan import DECODE_S, LEAST_DECODE_S, Pace, reductions, sized, whole_s
from inference.bench.gpu_report import make_report
from inference.bench.gpu_report_text import Report, ReportRequest, report_text
from inference.bench.gpu_session import Surroundings
from inference.bench.gpu_sizes import FULL
from inference.records.options import DecodeMode
from inference.records.steps import Phase
from tests.inference.bench.scripted_card import CONTEXT, NO_GRAPH, CardTimes, ScriptedCard

H100 = CardTimes(step_s=0.011, graph_s=0.0012, load_s=4.0, host_step_s=0.03, host_prefill_s=0.3)
T4 = CardTimes(step_s=0.028, graph_s=0.009, load_s=9.0, host_step_s=0.15, host_prefill_s=3.0)
# A model of some billions of parameters on a card without recorded steps.
SLOW = CardTimes(
    step_s=0.25, graph_s=None, load_s=25.0, prefill_s=1.0, host_step_s=5.0, host_prefill_s=40.0
)


def made(card: ScriptedCard, folder: Path) -> Report:
    return make_report(
        ReportRequest(model="scripted", device="cpu"),
        card.sizes,
        folder,
        lambda _stage: None,
        Surroundings(load=card.load, clock=card.clock),
    )


@dataclass(frozen=True, slots=True)
class Made:
    """A report, and the card that it was made on."""

    card: ScriptedCard
    times: CardTimes
    report: Report


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Made]:
    """Return a report of each card."""
    cards = {"H100": H100, "T4": T4, "slow": SLOW}
    found: dict[str, Made] = {}
    for name, times in cards.items():
        card = ScriptedCard(times)
        found[name] = Made(card, times, made(card, tmp_path_factory.mktemp(name)))
    return found


@pytest.mark.parametrize(("name", "most_s"), [("H100", 180.0), ("T4", 240.0), ("slow", 240.0)])
def test_all_of_it_ends_in_time_on_every_card(
    reports: dict[str, Made], name: str, most_s: float
) -> None:
    """The sizes were the same everywhere: 11 runs of 768 eager steps are 240 s on a T4 alone."""
    one = reports[name]

    assert one.report.is_good
    assert one.card.clock.time_s <= most_s
    assert one.report.seconds == pytest.approx(one.card.clock.time_s)
    assert one.report.pace is not None
    assert one.report.pace.step_s == pytest.approx(one.times.step_s + one.times.between_s)


@pytest.mark.parametrize("name", ["H100", "T4"])
def test_nothing_is_left_out_on_the_cards_it_is_made_for(
    reports: dict[str, Made], name: str
) -> None:
    report = reports[name].report

    assert not [one for one in report.checks if one.is_left_out]
    assert [batch.rows for batch in report.batches] == list(FULL.batches)
    assert all(batch.tokens_per_s for batch in report.batches)
    assert len(report.speeds) == 4


@pytest.mark.parametrize("name", ["H100", "T4"])
def test_decode_of_every_way_lasts_long_enough_for_its_energy_and_busy_time(
    reports: dict[str, Made], name: str
) -> None:
    """A recorded run of 768 steps takes an H100 a second, of which no energy can be told."""
    one = reports[name]

    ways = [speed for speed in one.report.speeds if not speed.name.startswith("the library")]
    assert [speed.busy_ratio for speed in ways] == pytest.approx([0.8] * 3)
    assert all(speed.joules_per_token for speed in ways)
    assert not [reason for speed in ways for reason in speed.unknown]
    recorded = [run for run in one.card.traces if run.info.decode is DecodeMode.GRAPH]
    longest_s = max(
        fsum(event.duration_s for event in run.events if event.phase is Phase.DECODE)
        for run in recorded
    )
    assert longest_s >= LEAST_DECODE_S


def test_a_slow_card_says_what_was_left_out(reports: dict[str, Made]) -> None:
    report = reports["slow"].report

    text = report_text(report)
    assert "Sized by one eager step of 251.5 ms for at most 220 s." in text
    assert "Less than where there is time: 1 timed run" in text
    assert f"not measured: {NO_GRAPH}" in text
    ids = next(one for one in report.checks if one.name.startswith("ids on the device"))
    assert ids.is_left_out
    assert "s are left" in ids.finding


def test_readings_that_miss_for_one_reason_are_one_line(reports: dict[str, Made]) -> None:
    unread = (("clock", "no driver"), ("power", "no driver"), ("fan", "none here"))

    text = report_text(replace(reports["slow"].report, unread=unread))

    assert "Not read: clock, power: no driver.\nNot read: fan: none here.\n" in text


def test_a_batch_without_room_is_a_row_that_says_so(tmp_path: Path) -> None:
    """The refusal used to end everything, and no report was written."""
    card = ScriptedCard(T4)
    card.refused_rows = 8

    report = made(card, tmp_path)

    assert [batch.rows for batch in report.batches] == [1, 2, 4, 8]
    assert report.batches[-1].note == "8 rows do not fit; 7 do; larger ones were left out"
    assert "| 8 | not measured: 8 rows do not fit; 7 do; larger ones" in report_text(report)


def test_a_batch_for_which_there_is_no_time_is_a_row_that_says_so(tmp_path: Path) -> None:
    card = ScriptedCard(replace(T4, capture_s=15.0))

    report = made(card, tmp_path)

    assert report.batches[-1].note == "left out for lack of time, as are larger ones"
    assert card.clock.time_s <= 240


@pytest.mark.parametrize("step_s", [0.005, 0.011, 0.03, 0.25, 2.0])
def test_sizes_fit_the_time_that_is_left_or_are_the_smallest(step_s: float) -> None:
    pace = Pace(load_s=5.0, prefill_s=0.1, step_s=step_s)

    chosen = sized(FULL, pace, 150.0, CONTEXT - FULL.prompt_tokens)

    assert chosen.new_tokens >= min(8, DECODE_S / step_s)
    assert chosen.new_tokens * step_s >= LEAST_DECODE_S
    is_smallest = chosen.repeats == 1 and chosen.batches == (1,)
    assert is_smallest or whole_s(pace, chosen) <= 150.0
    assert bool(reductions(FULL, chosen)) is (chosen.replayed_tokens < FULL.replayed_tokens)


def test_new_tokens_stay_within_the_models_context() -> None:
    pace = Pace(load_s=5.0, prefill_s=0.1, step_s=0.001)

    assert sized(FULL, pace, 150.0, 900).new_tokens == 900
