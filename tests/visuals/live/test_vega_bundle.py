"""Where the chart library is kept, and what a failed write leaves."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from inference.storage.folders import CACHE_VARIABLE
from visuals.live.vega_bundle import bundle, cached_bundle

NAME = f"vega-{version('vl-convert-python')}.js"


def test_the_chart_library_is_kept_where_the_cache_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It used to be kept in the home folder whatever the variable said."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    (tmp_path / "js").mkdir()
    (tmp_path / "js" / NAME).write_bytes(b"kept")

    assert bundle.__wrapped__() == b"kept"


def test_a_library_that_cannot_be_kept_leaves_no_part_of_a_file_behind(tmp_path: Path) -> None:
    """The scratch file used to stay in the folder."""
    (tmp_path / NAME).mkdir()

    assert cached_bundle(tmp_path, lambda: b"made") == b"made"
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
