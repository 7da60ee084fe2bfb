"""What the scores of all tokens come to, against float64."""

from __future__ import annotations

import ctypes

import pytest
import torch

from inference.kernels.description import describe_scores, disagreement

pytestmark = pytest.mark.usefixtures("library")


@pytest.mark.parametrize("width", [1, 7, 8, 97, 255, 256, 1000, 49_152])
def test_what_the_scores_come_to_is_that_of_float64(variant: ctypes.CDLL, width: int) -> None:
    scores = torch.randn((3, width), generator=torch.Generator().manual_seed(width)) * 6
    scores[1, ::3] = -torch.inf  # tokens that are ruled out
    scores[1, -1] = 4.0

    totals, best, ids = describe_scores(variant, scores, min(5, width))

    exact = scores.double()
    entropies = torch.special.entr(exact.softmax(-1)).sum(-1)
    torch.testing.assert_close(totals[:, 0].double(), exact.logsumexp(-1), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(totals[:, 1].double(), entropies, rtol=1e-5, atol=1e-6)
    assert torch.equal(best, scores.topk(min(5, width)).values)
    assert torch.equal(scores.gather(1, ids), best)


def test_of_equal_scores_the_first_come_first(variant: ctypes.CDLL) -> None:
    scores = torch.zeros((1, 600))
    scores[0, [500, 400, 30]] = 1.0

    _, _, ids = describe_scores(variant, scores, 4)

    assert ids[0].tolist() == [30, 400, 500, 0]


def test_rows_that_lie_apart_are_described_as_themselves(library: ctypes.CDLL) -> None:
    scores = torch.randn((300, 4), generator=torch.Generator().manual_seed(0)).T

    totals, best, _ = describe_scores(library, scores, 1)

    torch.testing.assert_close(totals[:, 0], scores.logsumexp(-1))
    assert torch.equal(best[:, 0], scores.amax(-1))


def test_the_description_as_compiled_here_agrees_with_torch(variant: ctypes.CDLL) -> None:
    assert disagreement(variant) == ""
