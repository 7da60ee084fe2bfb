"""The live panel's script, specs and the chart library it loads."""

from __future__ import annotations

import json
from pathlib import Path

from visuals.live import vega_bundle
from visuals.panel.component import chart_specs, panel_script

FOLDER = Path(vega_bundle.__file__).parent


def test_the_script_is_one_module_with_one_entry() -> None:
    script = panel_script()

    assert script.count("export default") == 1
    assert "\n" in script


def test_prompts_never_become_markup() -> None:
    script = panel_script()

    assert not {
        word for word in ("innerHTML", "insertAdjacentHTML", "document.write") if word in script
    }


def test_nothing_is_fetched_from_another_host() -> None:
    for path in FOLDER.glob("panel*"):
        assert "http://" not in path.read_text()
        assert "https://" not in path.read_text()


def test_every_chart_of_the_panel_has_a_spec_without_rows() -> None:
    specs = chart_specs()

    for name in specs:
        assert f'"{name}"' in panel_script()
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
