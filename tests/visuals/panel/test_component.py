"""What the page passes to the live panel, and the chart library that it loads."""

from __future__ import annotations

import json
import re
from pathlib import Path

from visuals.live import vega_bundle
from visuals.panel.contents import chart_specs
from visuals.panel.modules import loader, modules


def test_the_components_script_is_a_module_and_not_a_path() -> None:
    script = loader()

    assert re.findall(r"^export default function", script, re.MULTILINE) == [
        "export default function"
    ]
    assert "\n" in script.strip()  # Streamlit takes a single line for the path of a file
    assert not re.search(r"^import ", script, re.MULTILINE)  # which a blob cannot resolve


def test_every_chart_of_the_panel_has_a_spec_without_rows() -> None:
    specs = chart_specs()
    scripts = b"\n".join(modules().values()).decode()

    assert {name for name in specs if f'"{name}"' not in scripts} == set()
    assert "datasets" not in json.dumps(specs)


def test_the_chart_library_is_made_once_and_then_read(tmp_path: Path) -> None:
    made: list[bytes] = []

    def make() -> bytes:
        made.append(b"script")
        return made[-1]

    first = vega_bundle.cached_bundle(tmp_path / "js", make)
    second = vega_bundle.cached_bundle(tmp_path / "js", make)

    assert first == second == b"script"
    assert len(made) == 1
    assert len(list((tmp_path / "js").iterdir())) == 1


def test_the_chart_library_sets_what_the_panel_calls() -> None:
    assert b"window.vegaEmbed" in vega_bundle.bundle()


def test_a_folder_that_cannot_be_written_is_no_bar(tmp_path: Path) -> None:
    (tmp_path / "js").write_text("a file where the folder should be")

    assert vega_bundle.cached_bundle(tmp_path / "js", lambda: b"made") == b"made"
