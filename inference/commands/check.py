"""``python -m inference check``: the self-check of a model on this machine."""

from __future__ import annotations

import argparse
import json
import textwrap

from inference.commands import Subparsers, add_device_arguments, add_model_argument, write_stdout
from inference.commands.progress import ProgressLine
from inference.records.checks import Check, CheckKind, CheckOutcome, SelfCheck
from inference.records.finite import finite
from inference.records.options import AttentionKind
from inference.records.status import LoadStage

DIFFERS = 1  # the exit code when something differs
WIDTH = 96


def add_parser(subparsers: Subparsers) -> None:
    """Add the ``check`` command."""
    parser = subparsers.add_parser(
        "check", help="compare a model as it runs here with the library's own computation"
    )
    add_model_argument(parser)
    add_device_arguments(parser)
    parser.add_argument(
        "--plain", action="store_true", help="check the library's own code, without the kernels"
    )
    parser.add_argument(
        "--attention",
        choices=[kind.value for kind in AttentionKind],
        default=AttentionKind.AUTO.value,
        help="which implementation computes attention",
    )
    parser.add_argument("--json", action="store_true", help="print the check as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Check the model, keep the result and print it; 1 when something differs."""
    from inference.checks.job import CheckLimits, check_model  # noqa: PLC0415  torch is slow
    from inference.models.loading import load_model  # noqa: PLC0415
    from inference.runs.kept_checks import save_check  # noqa: PLC0415

    with ProgressLine() as progress:
        loaded = load_model(
            args.model,
            dtype=args.dtype,
            device=args.device,
            is_plain=args.plain,
            attention=AttentionKind(args.attention),
            on_stage=progress.show,
        )
    check: SelfCheck | None = None
    with ProgressLine() as progress:
        for check in check_model(loaded, CheckLimits()):
            done = len(check.checks)
            progress.show(LoadStage(stage="checking", ratio=done / len(CheckKind)))
    if check is None:
        return 0
    save_check(check)
    write_stdout(f"{check_json(check) if args.json else check_table(check)}\n")
    return status_of(check)


def status_of(check: SelfCheck) -> int:
    """Return the exit code: 1 when something differs."""
    return DIFFERS if check.of(CheckOutcome.DIFFERS) else 0


def check_json(check: SelfCheck) -> str:
    """Return the check as JSON, field for field."""
    from pydantic import TypeAdapter  # noqa: PLC0415  only here

    fields = TypeAdapter(SelfCheck).dump_python(check, mode="json")
    plain = finite({**fields, "warning": check.warning})
    return json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False)


def check_table(check: SelfCheck) -> str:
    """Return the check for a terminal: one block a comparison, what was checked above them."""
    subject = check.subject
    versions = ", ".join(f"{name} {version}" for name, version in subject.versions)
    head = [
        f"{subject.model_id} in {subject.device.dtype} on {subject.machine}",
        f"{versions}; {check.checked_at:%Y-%m-%d %H:%M} UTC, {check.took_s:.1f} s",
        f"attention: {subject.attention}; computed with {subject.kernels}",
        "",
    ]
    return "\n".join([*head, *(line for one in check.checks for line in _lines(one)), _sum(check)])


def _lines(check: Check) -> list[str]:
    """Return one comparison: its outcome, what was compared with what, and the result."""
    facts = [f"{check.compared}, compared with {check.reference}."]
    if check.found:
        facts.append(f"Found: {check.found}.")
    if check.allowed:
        facts.append(f"Tolerance: {check.allowed}.")
    if check.reason:
        facts.append(f"{check.reason[:1].upper()}{check.reason[1:].rstrip('.')}.")
    wrapped = [line for fact in facts for line in textwrap.wrap(fact, WIDTH - 4)]
    return [f"{check.kind.value:<10} {check.outcome.value}", *(f"    {one}" for one in wrapped), ""]


def _sum(check: SelfCheck) -> str:
    counts = ((outcome, len(check.of(outcome))) for outcome in CheckOutcome)
    return ", ".join(f"{count} {outcome.value}" for outcome, count in counts if count)
