"""Products of 16-bit matrices as float32, against float64, in one tile and in several."""

from __future__ import annotations

import pytest
import torch

from inference.kernels import install as installing
from inference.kernels import wide_products
from inference.kernels.install import install
from inference.kernels.wide_products import is_widened, wide_product
from tests.families import kernel_model

DTYPES = [torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("tile_bytes", [4, 1000, 4 << 20])
@pytest.mark.parametrize("has_bias", [False, True])
def test_a_wide_product_is_that_of_float64(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, tile_bytes: int, *, has_bias: bool
) -> None:
    monkeypatch.setattr(wide_products, "TILE_BYTES", tile_bytes)
    generator = torch.Generator().manual_seed(7)
    given = torch.randn(2, 5, 33, generator=generator).to(dtype)
    weight = torch.randn(41, 33, generator=generator).to(dtype)
    bias = torch.randn(41, generator=generator).to(dtype) if has_bias else None

    found = wide_product(given, weight, bias)

    expected = given.double() @ weight.double().T
    if bias is not None:
        expected += bias.double()
    assert found.dtype is torch.float32
    assert float((found - expected).norm() / expected.norm()) < 1e-6


def test_float32_is_never_widened() -> None:
    assert not is_widened(torch.float32)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("is_slow", [False, True])
def test_prefill_is_widened_where_the_librarys_products_are_slow(
    monkeypatch: pytest.MonkeyPatch, *, is_slow: bool
) -> None:
    monkeypatch.setattr(installing, "is_widened", lambda _dtype: is_slow)
    calls: list[torch.Size] = []

    def counted(given: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        calls.append(given.shape)
        return wide_product(given, *weights)

    monkeypatch.setattr(installing, "wide_product", counted)
    model = kernel_model().to(torch.bfloat16)  # pyright: ignore[reportArgumentType]  transformers types it for devices
    ids = torch.arange(2, 42)[None]
    with torch.inference_mode():
        own = model(ids, logits_to_keep=20).logits

    report = install(model)
    with torch.inference_mode():
        found = model(ids, logits_to_keep=20).logits

    assert len(calls) == (22 if is_slow else 0)
    assert ("widen weights to float32" in report.text) == is_slow
    assert found.dtype is torch.bfloat16
    assert float((found.float() - own.float()).norm() / own.float().norm()) < 2e-2
