"""Tests of inference/commands/export.py: a run file or a kept run to a page that plays it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inference.__main__ import main
from inference.runs.recordings import FOLDER
from inference.runs.run_file import write
from inference.runs.store import RunStore
from inference.storage.folders import DATA_VARIABLE
from tests.builders import run_info
from tests.visuals.traces import trace_of

SEVERAL = FOLDER / "three-prompts.json.gz"


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["export", *arguments]) == 2
    return capsys.readouterr().err.strip()


def test_a_run_file_becomes_a_page_and_what_it_lacks_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = [b"%d" % at for at in range(801)]
    run = replace(trace_of([b"why is it so"], texts), info=run_info("one"))
    write(run, tmp_path / "run.json.gz")
    page = tmp_path / "player.html"

    assert main(["export", str(tmp_path / "run.json.gz"), "--to", str(page)]) == 0

    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert '<h1 translate="no">why is it so</h1>' in text
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "All 801 steps are drawn, and the run can be held after every 3 of them.\n"


def test_a_kept_run_is_named_by_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    kept = RunStore().save(replace(trace_of([b"<why>"], [b"b"]), info=run_info("kept-one")))

    assert main(["export", kept.key, "--to", "-"]) == 0

    assert '<h1 translate="no">&lt;why&gt;</h1>' in capsys.readouterr().out


def test_of_several_runs_one_has_to_be_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = str(tmp_path / "player.html")

    said = refusal(capsys, str(SEVERAL), "--to", to)

    assert said == f"{SEVERAL} holds 6 runs; choose one with --number 1 to 6"
    for number in ("0", "7"):
        said = refusal(capsys, str(SEVERAL), "--to", to, "--number", number)
        assert said == f"{SEVERAL} has no run number {number}; it holds 6"


def test_what_is_no_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    to = str(tmp_path / "player.html")
    (tmp_path / "empty.json").write_text("[]")
    (tmp_path / "notes.txt").write_text("no run")

    assert "run gone is not kept here" in refusal(capsys, "gone", "--to", to)
    assert "cannot be read" in refusal(capsys, str(tmp_path / "gone.json"), "--to", to)
    assert refusal(capsys, str(tmp_path / "notes.txt"), "--to", to)
    assert refusal(capsys, str(tmp_path / "empty.json"), "--to", to)
    assert list(tmp_path.glob("*.html")) == []


def test_where_it_goes_is_checked_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(capsys, str(SEVERAL), "--to", str(tmp_path / "player.json"))
    assert said == f"{tmp_path / 'player.json'} is not the name of an HTML page; end it in .html"
    said = refusal(capsys, str(SEVERAL), "--to", str(tmp_path / "no" / "player.html"))
    assert said.startswith(f"the folder {tmp_path / 'no'} does not exist")
