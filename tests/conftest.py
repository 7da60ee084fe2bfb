"""Fixtures that several tests share. Nothing here needs a network but the default model's fetch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inference.records.status import LoadStage

os.environ["HF_HUB_OFFLINE"] = "1"


@pytest.fixture(scope="session")
def default_model_folder() -> Path:
    """Folder of the default model, fetched the first time it is asked for."""
    from inference.models.fetch import fetch_default  # noqa: PLC0415  not on every GPU machine

    stages: list[LoadStage] = []
    return fetch_default(stages.append)


@pytest.fixture(scope="session")
def tiny_model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a two-layer random Llama in float64, with grouped heads and a tokenizer."""
    from tests.tiny_model import save_tiny_model  # noqa: PLC0415  torch, only where it is needed

    return save_tiny_model(tmp_path_factory.mktemp("models") / "tiny-llama")
