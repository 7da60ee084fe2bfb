"""The default model, loaded once for the files that leave it as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from inference.models.loading import LoadedModel, load_model


@pytest.fixture(scope="session")
def loaded(default_model_folder: Path) -> LoadedModel:
    """The default model in float32 on the processor, with the kernels that the loader installs."""
    return load_model(
        str(default_model_folder), dtype="float32", device="cpu", on_stage=lambda _stage: None
    )
