"""Where this user's files go."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from inference.records.errors import InputError
from inference.storage.folders import CACHE_VARIABLE, DATA_VARIABLE, cache_folder, data_folder


def models() -> Path:
    return cache_folder("models")


@pytest.mark.parametrize(
    ("variable", "folder", "moved"),
    [
        pytest.param(CACHE_VARIABLE, models, "elsewhere/models", id="cache"),
        pytest.param(DATA_VARIABLE, data_folder, "elsewhere", id="data"),
    ],
)
def test_a_folder_is_the_users_own_unless_it_is_moved(
    monkeypatch: pytest.MonkeyPatch, variable: str, folder: Callable[[], Path], moved: str
) -> None:
    monkeypatch.delenv(variable, raising=False)
    assert "token-by-token" in folder().parts

    monkeypatch.setenv(variable, "")
    assert "token-by-token" in folder().parts

    monkeypatch.setenv(variable, "~/elsewhere")
    assert folder() == Path.home() / moved


@pytest.mark.parametrize(
    ("variable", "folder"),
    [
        pytest.param(CACHE_VARIABLE, models, id="cache"),
        pytest.param(DATA_VARIABLE, data_folder, id="data"),
    ],
)
def test_a_machine_without_platformdirs_is_told_which_variable_to_set(
    monkeypatch: pytest.MonkeyPatch, variable: str, folder: Callable[[], Path]
) -> None:
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(InputError, match=f"set {variable}, or install platformdirs"):
        folder()

    monkeypatch.setenv(variable, "/elsewhere")
    assert folder().is_relative_to("/elsewhere")
