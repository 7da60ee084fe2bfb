"""Figures of arrivals on a clock written down; every number is worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inference.figures.arrivals import (
    CountSource,
    TtftPart,
    answer_text,
    arrival_figures,
    token_counts,
    ttft_parts,
)
from inference.records.arrivals import Channel, EngineTimes, SaidToken, Usage
from inference.remote.chunks import Chunk
from tests.inference.remote.requests import recorded

pytestmark = pytest.mark.golden
ROLE = Chunk()
STOP = Chunk(finish="stop")
LENGTH = Chunk(finish="length")


def text(letters: str, **others: object) -> Chunk:
    return Chunk(texts=((Channel.ANSWER, letters),), **others)


def used(tokens: int) -> Chunk:
    return Chunk(usage=Usage(prompt_tokens=4, output_tokens=tokens), has_choice=False)


def test_tpot_leaves_out_the_tokens_of_the_first_read() -> None:
    """Dividing by one token less than all gave 8.72 ms where a token took 3.20."""
    request = recorded(
        (1.0, [text("abc", running_tokens=3)]),
        (1.4, [text("d", running_tokens=4)]),
        (2.0, [text("efg", running_tokens=7), LENGTH]),
        sent_s=0.5,
    )

    figures = arrival_figures(request)

    assert figures.ttft_s == 0.5
    assert figures.ttft_planned_s == 1.0
    assert figures.gaps_s == pytest.approx((0.4, 0.6))
    assert figures.tpot_s == pytest.approx(1.0 / 4)
    assert not figures.is_tpot_at_least
    assert figures.e2e_s == 1.5
    assert figures.tokens_per_read == 3
    assert not figures.is_token_by_token


def test_tokens_of_two_events_in_one_read_came_together() -> None:
    request = recorded(
        (1.0, [text("a", token_ids=(1,)), text("b", token_ids=(2,))]),
        (1.6, [text("c", token_ids=(3,)), LENGTH]),
    )

    figures = arrival_figures(request)

    assert figures.gaps_s == pytest.approx((0.6,))
    assert figures.tpot_s == pytest.approx(0.6)


def test_without_a_count_of_each_chunk_tpot_is_at_least() -> None:
    request = recorded((1.0, [ROLE, text("ab")]), (2.0, [text("c")]), (2.0, [LENGTH, used(5)]))

    figures = arrival_figures(request)

    assert figures.counts.source is CountSource.UNKNOWN
    assert figures.tpot_s == pytest.approx(1.0 / 4)
    assert figures.is_tpot_at_least
    assert figures.tokens_per_read is None


def test_an_end_of_its_own_stands_for_the_token_without_a_text() -> None:
    """The last of the engine's three tokens ended the answer half a second after its text."""
    request = recorded((1.0, [text("a")]), (1.5, [text("b")]), (2.0, [STOP]), (9.0, [used(3)]))

    figures = arrival_figures(request)

    assert figures.tpot_s == pytest.approx(1.0 / 2)
    assert figures.e2e_s == 2.0


def test_counts_alone_do_not_move_the_end() -> None:
    request = recorded((1.0, [text("a")]), (1.5, [text("b"), LENGTH]), (9.0, [used(2)]))

    assert arrival_figures(request).e2e_s == 1.5


def test_one_token_each_time_makes_gaps_latencies_between_tokens() -> None:
    request = recorded(
        *((float(at), [text("a", token_ids=(at,))]) for at in range(1, 5)), (4.0, [LENGTH])
    )

    figures = arrival_figures(request)

    assert figures.is_token_by_token
    assert (figures.gap_p50_s, figures.gap_max_s, figures.tpot_s) == (1.0, 1.0, 1.0)


def test_a_stall_is_seen_in_the_largest_gap() -> None:
    moments = (1.0, 1.1, 1.2, 4.2, 4.3)
    request = recorded(*((at, [text("a")]) for at in moments), (4.3, [LENGTH, used(5)]))

    figures = arrival_figures(request)

    assert figures.gap_max_s == pytest.approx(3.0)
    assert figures.gap_p50_s == pytest.approx(0.1)


def test_tokens_that_a_parser_kept_are_counted_as_hidden() -> None:
    """A count went from 1 to 17 without an event between, and it looked like a stall."""
    request = recorded(
        (1.0, [text("a", running_tokens=1)]),
        (2.0, [Chunk(running_tokens=16)]),
        (3.0, [text("b", running_tokens=17), LENGTH]),
    )

    figures = arrival_figures(request)

    assert figures.hidden_tokens == 15
    assert figures.counts.per_arrival == (1, 15, 1, 0)
    assert figures.gaps_s == pytest.approx((1.0, 1.0))


def test_a_final_count_that_differs_is_said() -> None:
    request = recorded((1.0, [text("a", tokens=(SaidToken(raw=b"a"),))]), (2.0, [STOP, used(3)]))

    counts = token_counts(request)

    assert counts.source is CountSource.ENTRIES
    assert counts.note == "the engine counted 3 tokens, and 1 came"


def test_reads_that_bring_many_tokens_are_called_bursts() -> None:
    ids = tuple(range(16))
    request = recorded((1.0, [text("a", token_ids=ids)]), (2.0, [text("b", token_ids=ids), LENGTH]))

    assert arrival_figures(request).is_in_bursts


@pytest.mark.parametrize("chunks", [[], [ROLE], [ROLE, STOP]], ids=["none", "role", "empty"])
def test_an_answer_without_a_token_has_no_latency(chunks: list[Chunk]) -> None:
    figures = arrival_figures(recorded((1.0, chunks)))

    assert (figures.ttft_s, figures.tpot_s, figures.gaps_s) == (None, None, ())
    assert ttft_parts(recorded((1.0, chunks))) == ()


def test_ttft_is_cut_as_far_as_the_engine_says() -> None:
    request = recorded((1.0, [text("a"), LENGTH]))
    marks = replace(request.marks, connected_s=0.125)
    times = EngineTimes(queue_s=0.25, prefill_s=0.5)

    silent = ttft_parts(replace(request, marks=marks))
    told = ttft_parts(replace(request, marks=marks, times=times))
    too_much = ttft_parts(replace(request, times=EngineTimes(prefill_s=1.5)))

    assert [part.duration_s for part in silent] == [0.125, 0.875]
    assert "does not say" in silent[1].name
    assert [(part.name, part.duration_s) for part in told[:3]] == [
        ("connect", 0.125),
        ("queue", 0.25),
        ("prefill", 0.5),
    ]
    assert told[3].duration_s == 0.125
    assert [part.is_ours for part in told] == [True, False, False, False]
    assert too_much == (TtftPart(name="prefill", duration_s=1.5, is_ours=False),)


def test_reasoning_is_the_first_token_and_the_answer_has_a_moment_of_its_own() -> None:
    """TTFT without reasoning came out as 184 s where the first token took 1.2."""
    thought = Chunk(texts=((Channel.REASONING, "hm"),))
    request = recorded((1.0, [thought]), (3.0, [text("yes"), STOP]), sent_s=0.5)

    figures = arrival_figures(request)

    assert (figures.ttft_s, figures.answer_s) == (0.5, 2.5)


def test_texts_are_told_apart_by_channel() -> None:
    thought = Chunk(texts=((Channel.REASONING, "hm"), (Channel.ANSWER, "yes")))
    request = recorded((1.0, [thought, STOP]))

    assert answer_text(request) == "yes"
    assert answer_text(request, Channel.REASONING) == "hm"
