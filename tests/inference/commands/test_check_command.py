"""`python -m inference check` on a tiny model: the table, the JSON and the exit status."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from inference.__main__ import main
from inference.commands.check import check_table, status_of
from inference.records.checks import CheckKind, CheckOutcome, SelfCheck
from tests import checks
from tests.builders import TINY_DEVICE

SUBJECT = replace(checks.SUBJECT, kernels="the library's own: as asked")
PASSED = replace(checks.WRONG, outcome=CheckOutcome.PASSED, found="8 of 8 ids are the same")
CHECK = SelfCheck(
    subject=SUBJECT,
    checked_at=datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
    took_s=1.5,
    checks=(PASSED,),
    is_whole=True,
)


def test_the_json_holds_every_check_of_the_model(
    tiny_model_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TOKEN_BY_TOKEN_CACHE", str(tmp_path))

    code = main(["check", "--model", str(tiny_model_folder), "--dtype", "float64", "--json"])

    made = json.loads(capsys.readouterr().out)
    outcomes = {one["kind"]: one["outcome"] for one in made["checks"]}
    assert code == 0
    assert outcomes == {kind.value: "passed" for kind in CheckKind} | {
        "kernels": "not possible here"
    }
    assert made["subject"]["device"]["dtype"] == "float64"
    assert made["warning"] == ""
    assert len(list((tmp_path / "checks").iterdir())) == 1


def test_the_table_says_what_was_compared_with_what_and_what_came_of_it() -> None:
    table = check_table(CHECK)

    assert table.splitlines() == [
        f"tiny in {TINY_DEVICE.dtype} on a machine",
        "torch 2.13.0; 2026-01-02 03:04 UTC, 1.5 s",
        "attention: sdpa; computed with the library's own: as asked",
        "",
        "ids        passed",
        "    The ids, compared with those of generate.",
        "    Found: 8 of 8 ids are the same.",
        "    Tolerance: all the same.",
        "",
        "1 passed",
    ]


def test_the_exit_status_is_one_when_something_differs() -> None:
    differs = replace(PASSED, outcome=CheckOutcome.DIFFERS)

    assert status_of(CHECK) == 0
    assert status_of(replace(CHECK, checks=(PASSED, differs))) == 1


def test_a_model_that_is_not_there_is_one_line_and_two(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["check", "--model", "/no/such/folder"])

    said = capsys.readouterr()
    assert (code, said.out) == (2, "")
    assert "Traceback" not in said.err
