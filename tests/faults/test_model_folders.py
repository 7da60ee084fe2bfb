"""Model folders whose config states sizes that no model has."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from inference.models.loading import load_model
from inference.records.errors import UnsupportedModelError


@pytest.mark.parametrize(
    ("name", "size"),
    [("num_hidden_layers", 10**12), ("num_hidden_layers", 10**5), ("hidden_size", 10**9)],
)
def test_sizes_that_no_model_has_are_refused_before_a_class_sees_them(
    tiny_model_folder: Path, tmp_path: Path, name: str, size: int
) -> None:
    """The class made a list as long as the number of layers, which did not end."""
    folder = shutil.copytree(tiny_model_folder, tmp_path / "copied")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, name: size}))

    with pytest.raises(UnsupportedModelError, match=f"config's {name} is {size:,}"):
        load_model(str(folder), device="cpu", on_stage=lambda _stage: None)
