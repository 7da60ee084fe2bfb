"""Self-checks of the tiny model for tests of what draws and prints them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from inference.records.checks import Check, CheckKind, CheckOutcome, CheckSubject, SelfCheck
from tests.builders import TINY_DEVICE

SUBJECT = CheckSubject(
    model_id="tiny",
    device=TINY_DEVICE,
    attention="sdpa",
    kernels="",
    machine="a machine",
    versions=(("torch", "2.13.0"),),
    program="p",
    weights="w",
)
BEGUN = SelfCheck(subject=SUBJECT, checked_at=datetime(2026, 1, 2, tzinfo=UTC))
WRONG = Check(
    kind=CheckKind.IDS,
    outcome=CheckOutcome.DIFFERS,
    compared="The ids",
    reference="those of generate",
    found="3 of 8 ids are the same",
    allowed="all the same",
)
FAILED = replace(BEGUN, checks=(WRONG,), is_whole=True)
PASSED = replace(FAILED, checks=(replace(WRONG, outcome=CheckOutcome.PASSED),))
