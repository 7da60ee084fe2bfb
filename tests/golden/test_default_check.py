"""The default model's self-check: all of it passes, the kernels where they are installed."""

from __future__ import annotations

import pytest

from inference.checks.job import CheckLimits, check_model
from inference.kernels.install import is_installed
from inference.models.loading import LoadedModel
from inference.records.checks import CheckKind, CheckOutcome

pytestmark = pytest.mark.golden


def test_the_default_model_passes_every_check(loaded: LoadedModel) -> None:
    *_, check = check_model(loaded, CheckLimits())

    without = set() if is_installed(loaded.model) else {CheckKind.KERNELS}
    assert check.is_whole
    assert {one.kind for one in check.of(CheckOutcome.PASSED)} == set(CheckKind) - without, (
        check.warning
    )
