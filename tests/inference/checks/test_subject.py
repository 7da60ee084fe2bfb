"""What a check holds for, and how it is kept: reread for the same, unknown for anything else."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import torch

from inference.checks.job import CheckLimits, check_model
from inference.checks.subject import subject_of, weights_digest
from inference.records.checks import CheckKind, CheckOutcome, SelfCheck
from inference.runs.kept_checks import save_check, saved_check
from tests.families import fresh_model, loaded_model, tiny_model


def test_a_whole_check_is_reread_for_the_same_subject_and_no_other(tmp_path: Path) -> None:
    *_, check = check_model(loaded_model(), CheckLimits())

    assert save_check(check, tmp_path)

    subject = subject_of(loaded_model())
    assert saved_check(subject, tmp_path) == check
    changed = (
        replace(subject, program="another"),
        replace(subject, versions=(("torch", "9"),)),
        replace(subject, weights="others"),
        replace(subject, kernels="others"),
        replace(subject, machine="another"),
    )
    assert [saved_check(one, tmp_path) for one in changed] == [None] * len(changed)


def test_what_is_not_whole_or_not_readable_is_done_again(tmp_path: Path) -> None:
    subject = subject_of(loaded_model())
    check = SelfCheck(subject=subject, checked_at=datetime(2026, 1, 2, tzinfo=UTC))

    assert save_check(check, tmp_path)
    assert saved_check(subject, tmp_path) is None
    [path] = tmp_path.iterdir()
    path.write_text("{")
    assert saved_check(subject, tmp_path) is None


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.write_text("")
    check = SelfCheck(
        subject=subject_of(loaded_model()), checked_at=datetime(2026, 1, 2, tzinfo=UTC)
    )

    assert not save_check(check, taken)


def test_other_weights_or_settings_have_another_digest() -> None:
    model = tiny_model("llama")
    changed = fresh_model(model.config, torch.float64)
    same = weights_digest(changed)
    changed.get_output_embeddings().weight.data[0, 0] += 1.0

    assert weights_digest(model) == same
    assert weights_digest(changed) != same
    assert weights_digest(tiny_model("qwen2")) != same


def test_the_warning_names_what_differs_and_by_how_much() -> None:
    *_, check = check_model(loaded_model(), CheckLimits())
    [ids] = [one for one in check.checks if one.kind is CheckKind.IDS]
    wrong = replace(ids, outcome=CheckOutcome.DIFFERS, found="3 of 8 ids are the same")

    warning = replace(check, checks=(*check.checks[:2], wrong, *check.checks[3:])).warning

    assert warning == (
        "The self-check of this model on this machine differs: ids (3 of 8 ids are the same)."
    )
