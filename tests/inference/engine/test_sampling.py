"""Token choice against transformers' own warpers, and by hand."""

from __future__ import annotations

from math import inf, log, nan

import pytest
import torch
from torch import Tensor
from transformers import (
    LogitsProcessorList,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from inference.engine.sampling import (
    Sampler,
    choose_each,
    describe,
    describe_choices,
    read_choices,
    truncate,
)
from inference.records.errors import BackendError
from inference.records.options import Sampling
from inference.records.steps import Candidate

DRAWS = [
    pytest.param(Sampling(temperature=0.7), id="temperature"),
    pytest.param(Sampling(temperature=1.0, top_k=5), id="top-k"),
    pytest.param(Sampling(temperature=1.3, top_k=1), id="top-k of one"),
    pytest.param(Sampling(temperature=1.0, top_k=1000), id="top-k above the vocabulary"),
    pytest.param(Sampling(temperature=1.0, top_p=0.9), id="top-p"),
    pytest.param(Sampling(temperature=1.0, top_p=1e-9), id="top-p of one token"),
    pytest.param(Sampling(temperature=1.0, top_p=1.0), id="top-p of all"),
    pytest.param(Sampling(temperature=0.8, top_k=40, top_p=0.95), id="all three"),
]


def random_logits(rows: int = 4, vocab: int = 97) -> Tensor:
    """Return [rows, vocab] logits spread as a model's."""
    return torch.randn(rows, vocab, generator=torch.Generator().manual_seed(7)) * 3


def choose(logits: Tensor, samplers: list[Sampler]) -> Tensor:
    """Return the chosen ids, read to the host."""
    return read_choices(choose_each(logits, samplers))


def drawn(logits: Tensor, sampler: Sampler) -> Tensor:
    """Return what one random sequence draws for each row in turn."""
    return choose(logits, [sampler] * len(logits))


def warped(logits: Tensor, sampling: Sampling) -> Tensor:
    """Return the scores as transformers' generate would warp them."""
    warpers = LogitsProcessorList([TemperatureLogitsWarper(sampling.temperature)])
    if sampling.top_k is not None:
        warpers.append(TopKLogitsWarper(sampling.top_k))
    if sampling.top_p is not None:
        warpers.append(TopPLogitsWarper(sampling.top_p))
    return warpers(torch.zeros(len(logits), 1, dtype=torch.long), logits)


def test_greedy_takes_the_highest_logit_of_each_row() -> None:
    logits = torch.tensor([[0.0, 3.0, 1.0], [5.0, -1.0, 2.0]])

    assert drawn(logits, Sampler(Sampling(), seed=0)).tolist() == [1, 0]


def test_greedy_takes_what_argmax_takes_where_logits_are_equal() -> None:
    logits = torch.zeros(3, 50, dtype=torch.bfloat16)

    assert torch.equal(drawn(logits, Sampler(Sampling(), seed=0)), logits.float().argmax(-1))


@pytest.mark.golden
@pytest.mark.parametrize("sampling", DRAWS)
def test_truncation_keeps_the_tokens_and_scores_of_transformers(sampling: Sampling) -> None:
    logits = random_logits()

    assert torch.equal(truncate(logits, sampling), warped(logits, sampling))


@pytest.mark.golden
def test_truncation_keeps_ties_as_transformers_does() -> None:
    logits = torch.tensor([[2.0, 1.0, 1.0, 1.0, 0.0, -inf], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    sampling = Sampling(temperature=0.5, top_k=2, top_p=0.6)

    assert torch.equal(truncate(logits, sampling), warped(logits, sampling))


@pytest.mark.golden
@pytest.mark.parametrize("sampling", DRAWS)
def test_draws_are_those_of_transformers_scores_and_the_same_seed(sampling: Sampling) -> None:
    logits = random_logits()
    generator = torch.Generator().manual_seed(11)
    sampler = Sampler(sampling, seed=11)

    for _ in range(20):
        shares = warped(logits, sampling).softmax(dim=-1)
        each = [
            torch.multinomial(shares[row], num_samples=1, generator=generator)
            for row in range(len(shares))
        ]
        assert torch.equal(drawn(logits, sampler), torch.cat(each))


def test_the_same_seed_draws_the_same_tokens_again() -> None:
    logits = random_logits()
    runs = [Sampler(Sampling(temperature=1.5), seed=3) for _ in range(2)]

    first, second = ([drawn(logits, run).tolist() for _ in range(10)] for run in runs)

    assert first == second


def test_rows_of_several_settings_draw_what_each_draws_alone() -> None:
    logits = random_logits(rows=5)
    warm, cool = Sampling(temperature=1.5), Sampling(temperature=0.7, top_k=9, top_p=0.9)
    settings = [warm, Sampling(), cool, warm, cool]

    together = [Sampler(one, seed=seed) for seed, one in enumerate(settings)]
    alone = [Sampler(one, seed=seed) for seed, one in enumerate(settings)]

    for _ in range(8):
        ids = choose(logits, together)
        assert ids.tolist() == [
            drawn(logits[row : row + 1], sampler).item() for row, sampler in enumerate(alone)
        ]
    for one, other in zip(together, alone, strict=True):
        if one.drawn_from is None or other.drawn_from is None:
            assert one.sampling.is_greedy
        else:
            assert torch.equal(one.drawn_from, other.drawn_from)


def test_rows_of_equal_settings_are_computed_together() -> None:
    """One by one they draw the same tokens, at many times the launches."""
    warm, hot = Sampling(temperature=1.0, top_k=5), Sampling(temperature=1.5)
    samplers = [Sampler(one, seed=row) for row, one in enumerate([warm, hot, warm, hot, warm])]

    choose(random_logits(rows=5), samplers)

    rooms: list[int] = []
    for sampler in samplers:
        assert sampler.drawn_from is not None
        rooms.append(sampler.drawn_from.untyped_storage().data_ptr())
    assert rooms == [rooms[0], rooms[1]] * 2 + [rooms[0]]
    assert rooms[0] != rooms[1]


def test_another_seed_draws_other_tokens() -> None:
    logits = random_logits()
    runs = [Sampler(Sampling(temperature=1.5), seed=seed) for seed in (3, 4)]

    first, second = ([drawn(logits, run).tolist() for _ in range(10)] for run in runs)

    assert first != second


def test_drawing_leaves_torchs_own_random_sequence_alone() -> None:
    before = torch.get_rng_state()

    drawn(random_logits(), Sampler(Sampling(temperature=1.0), seed=0))

    assert torch.equal(torch.get_rng_state(), before)


def test_draws_follow_the_shares() -> None:
    logits = torch.tensor([[log(0.75), log(0.25)]]).expand(20_000, 2)

    ids = drawn(logits, Sampler(Sampling(temperature=1.0), seed=0))

    assert ids.float().mean().item() == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize("temperature", [0.0, 1.0], ids=["greedy", "drawn"])
@pytest.mark.parametrize("bad", [nan, inf], ids=["nan", "inf"])
def test_logits_that_are_not_numbers_are_an_error_of_the_model(
    temperature: float, bad: float
) -> None:
    logits = random_logits()
    logits[2, 5] = bad

    with pytest.raises(BackendError, match="not numbers"):
        drawn(logits, Sampler(Sampling(temperature=temperature), seed=0))


def test_a_row_that_allows_no_token_is_an_error_of_the_model() -> None:
    with pytest.raises(BackendError, match="no token can be chosen"):
        drawn(torch.full((1, 4), -inf), Sampler(Sampling(), seed=0))


def test_a_token_the_model_rules_out_is_never_drawn() -> None:
    logits = torch.zeros(500, 3)
    logits[:, 1] = -inf

    ids = drawn(logits, Sampler(Sampling(temperature=2.0), seed=0))

    assert set(ids.tolist()) == {0, 2}


def test_low_precision_logits_are_chosen_from_without_overflow() -> None:
    logits = torch.tensor([[60000.0, 59968.0]], dtype=torch.float16)

    ids = drawn(logits, Sampler(Sampling(temperature=1e-6), seed=0))

    assert ids.tolist() == [0]


@pytest.mark.golden
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_described_logprobs_are_those_of_log_softmax(dtype: torch.dtype) -> None:
    logits = random_logits().to(dtype)
    chosen = torch.tensor([1, 2, 3, 4])

    rows = describe(logits, chosen, candidates=6)

    expected = logits.double().log_softmax(dim=-1)
    best, ids = expected.topk(6)
    assert [logprob for logprob, _ in rows] == pytest.approx(
        expected.gather(-1, chosen[:, None])[:, 0].tolist(), abs=1e-5
    )
    for row, (_, candidates) in enumerate(rows):
        assert [c.logprob for c in candidates] == pytest.approx(best[row].tolist(), abs=1e-5)
        if dtype is not torch.bfloat16:  # equal logits may come in any order
            assert [c.token_id for c in candidates] == ids[row].tolist()


def test_candidates_are_likeliest_first_and_worked_by_hand() -> None:
    logits = torch.tensor([[log(1.0), log(4.0), log(2.0), log(1.0)]], dtype=torch.float64)

    ((logprob, candidates),) = describe(logits, torch.tensor([2]), candidates=2)

    assert logprob == pytest.approx(log(0.25), abs=1e-12)
    assert candidates == (
        Candidate(token_id=1, logprob=pytest.approx(log(0.5), abs=1e-12)),
        Candidate(token_id=2, logprob=pytest.approx(log(0.25), abs=1e-12)),
    )


def test_candidates_stop_at_the_vocabulary_and_at_what_the_model_allows() -> None:
    ((_, candidates),) = describe(torch.tensor([[0.0, -inf, 1.0]]), torch.tensor([0]), 5)

    assert [candidate.token_id for candidate in candidates] == [2, 0]


def test_entropy_is_that_of_the_whole_distribution_and_ignores_what_is_ruled_out() -> None:
    logits = torch.tensor([[0.0, 0.0, 0.0, 0.0], [1.0, -inf, -inf, -inf], [0.0, 0.0, -inf, -inf]])

    told = describe_choices(logits, torch.zeros(3, dtype=torch.int64), greedy_samplers(3))

    expected = [log(4), 0.0, log(2)]
    assert [one.entropy_nats for one in told] == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("sampling", DRAWS)
def test_candidates_carry_their_probability_after_temperature_and_truncation(
    sampling: Sampling,
) -> None:
    logits = random_logits(rows=1)
    sampler = Sampler(sampling, seed=1)
    chosen = drawn(logits, sampler)

    [told] = describe_choices(logits, chosen, [sampler])

    expected = warped(logits, sampling).log_softmax(dim=-1)[0]
    assert len(told.candidates) == 5
    for candidate in told.candidates:
        logprob = expected[candidate.token_id].item()
        if logprob == -inf:
            assert candidate.sampled_logprob is None
        else:
            assert candidate.sampled_logprob == pytest.approx(logprob, abs=1e-5)


def test_a_greedy_run_has_no_probability_after_temperature() -> None:
    logits = random_logits(rows=1)
    samplers = greedy_samplers(1)

    [told] = describe_choices(logits, choose(logits, samplers), samplers)

    assert [candidate.sampled_logprob for candidate in told.candidates] == [None] * 5


def greedy_samplers(rows: int) -> list[Sampler]:
    return [Sampler(Sampling(), seed=0) for _ in range(rows)]
