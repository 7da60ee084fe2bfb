"""The self-check in words, as a table and as the badge beside the model's name.

Records in, text and HTML out; whatever is not ours is escaped. No torch, no page.
"""

from __future__ import annotations

from html import escape

from inference.records.checks import Check, CheckKind, CheckOutcome, SelfCheck
from visuals.charts.units import date_text

NAMES = {
    CheckKind.IDS: "ids",
    CheckKind.CLOCK: "step times",
    CheckKind.CACHE: "cache",
    CheckKind.LOGITS: "logits",
    CheckKind.KERNELS: "kernels",
    CheckKind.ATTENTION: "attention",
}
WHY = {
    CheckKind.IDS: "A page that shows other tokens than the model's own shows another model.",
    CheckKind.CLOCK: "Every latency and rate here is a sum of step times. They must cover the "
    "forward passes and nothing beyond the step.",
    CheckKind.CACHE: "The K/V chart rests on these bytes, and so does what is counted for larger "
    "batches and contexts.",
    CheckKind.LOGITS: "Decode steps reuse stored keys and values. What they give must be what the "
    "model gives when it reads everything again.",
    CheckKind.KERNELS: "On a CPU, decode steps may run in kernels of this program's own. They must "
    "compute what the library's code computes.",
    CheckKind.ATTENTION: "The weights in the attention panel are formed beside the model. They "
    "must be those that the model itself attends by.",
}
SIGNS = {
    CheckOutcome.PASSED: "\u2713",
    CheckOutcome.DIFFERS: "\u2717",
    CheckOutcome.IMPOSSIBLE: "\u2013",
}
NOTHING = "\u2013"
LATE = "not done yet"
STYLE = """<style>
.self-check { width: 100%; border-collapse: collapse; font-size: 0.95rem; }
.self-check th, .self-check td { text-align: left; vertical-align: top; padding: 0.6rem 0.75rem;
  border-bottom: 1px solid rgba(128, 128, 128, 0.35); overflow-wrap: anywhere; }
.self-check thead th { font-weight: 600; white-space: nowrap; }
.self-check tbody th { font-weight: 600; white-space: nowrap; }
.self-check .outcome { white-space: nowrap; }
.self-check .differs { color: #c62f2f; font-weight: 700; }
.self-check .why { display: block; margin-top: 0.25rem; opacity: 0.8; }
@media (prefers-color-scheme: dark) { .self-check .differs { color: #ff8a80; } }
@media (max-width: 700px) {
  .self-check thead { position: absolute; left: -9999px; }
  .self-check tr { display: block; padding: 0.5rem 0;
    border-bottom: 1px solid rgba(128, 128, 128, 0.35); }
  .self-check th, .self-check td { display: block; border: 0; padding: 0.15rem 0; }
  .self-check td[data-label]::before { content: attr(data-label) ": "; font-weight: 600; }
}
</style>"""


def table_html(check: SelfCheck) -> str:
    """Return the checks as a table that becomes one block a check where it is narrow."""
    rows = "".join(_row(one) for one in check.checks)
    heads = "".join(
        f'<th scope="col">{name}</th>'
        for name in ("Check", "Result", "Compared", "Found", "Tolerance")
    )
    return (
        f'{STYLE}<table class="self-check"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _row(check: Check) -> str:
    outcome = check.outcome
    result = LATE if check.is_late else outcome.value
    kind = "differs" if outcome is CheckOutcome.DIFFERS else "outcome"
    reason = check.reason[:1].upper() + check.reason[1:].rstrip(".") + "." * bool(check.reason)
    found = " ".join(filter(None, (check.found and f"{check.found}.", reason)))
    return (
        f'<tr><th scope="row">{escape(NAMES[check.kind])}</th>'
        f'<td class="{kind}">{SIGNS[outcome]} {escape(result)}</td>'
        f'<td data-label="Compared">{escape(check.compared)}, with {escape(check.reference)}.'
        f'<span class="why">{escape(WHY[check.kind])}</span></td>'
        f'<td data-label="Found">{escape(found) or NOTHING}</td>'
        f'<td data-label="Tolerance">{escape(check.allowed) or NOTHING}</td></tr>'
    )


def made_words(check: SelfCheck) -> str:
    """Return when and where a check was made, and with what."""
    subject = check.subject
    versions = ", ".join(f"{name} {version}" for name, version in subject.versions)
    kept = f", attention {subject.attention}" if subject.attention else ""
    return (
        f"{subject.model_id} in {subject.device.dtype} on {subject.machine}; {versions}{kept}; "
        f"checked on {date_text(check.checked_at)} (UTC) in {check.took_s:.1f} s of quiet time. "
        f"Computed with {subject.kernels or 'the library alone'}."
    )


def named(check: SelfCheck, outcome: CheckOutcome) -> str:
    """Return the names of the checks with this outcome, those left out for want of time apart."""
    return ", ".join(NAMES[one.kind] for one in check.of(outcome) if not one.is_late)


def late_names(check: SelfCheck) -> str:
    """Return the names of the checks that were left out for want of time."""
    return ", ".join(NAMES[one.kind] for one in check.checks if one.is_late)


def badge(check: SelfCheck | None, sentence: str, *, is_going: bool) -> tuple[str, str]:
    """Return the badge's state and words.

    Args:
        check: As far as it is; None before the first result.
        sentence: Why it came to no end; empty when it did, or goes on.
        is_going: The engine checks in quiet moments.
    """
    if check is not None and (differing := named(check, CheckOutcome.DIFFERS)):
        return "differs", f"differs here: {differing}"
    if is_going:
        done = len(check.checks) if check is not None else 0
        return "going", f"being checked here, {done} of {len(CheckKind)}"
    if check is None or not check.is_whole:
        return ("failed", f"not checked here: {sentence}") if sentence else ("none", "")
    passed = named(check, CheckOutcome.PASSED)
    if check.is_cut_short:
        return "failed", f"not all checked here yet{f': only {passed}' if passed else ''}"
    return ("passed", f"checked here: {passed}") if passed else ("failed", "not checked here")
