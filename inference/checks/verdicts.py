"""Two results put side by side: each function makes one ``Check`` of them. Pure but for torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from inference.checks.feeding import EngineRun
from inference.records.attention import AttentionMap
from inference.records.checks import Check, CheckKind, CheckOutcome
from inference.records.model import LayerType, ModelShape

# Source: our own choice. The three clocks are read one within the other, microseconds apart.
CLOCK_TOLERANCE = 0.02


@dataclass(frozen=True, slots=True)
class Words:
    """What a kind of check compares, and with what."""

    compared: str
    reference: str


WORDS = {
    CheckKind.IDS: Words(
        "The tokens that a short greedy run selects", "the library's generate on the same weights"
    ),
    CheckKind.CLOCK: Words(
        "The sum of the step times of that run",
        "the wall clock around the same steps, and around their forward passes alone",
    ),
    CheckKind.CACHE: Words(
        "The bytes in the tensors of its K/V cache, and those that the run reports",
        "the bytes counted from the model's shape",
    ),
    CheckKind.LOGITS: Words(
        "The logits of each last position, from a prefill and cached decode steps",
        "one forward pass of the library over all tokens, without a cache",
    ),
    CheckKind.KERNELS: Words(
        "The logits of prefill and decode steps with this program's kernels",
        "the same steps with the library's code",
    ),
    CheckKind.ATTENTION: Words(
        "The captured attention rows of a prompt's last token and of a decode step",
        "the weights that the library's eager attention returns",
    ),
}


def ids_check(
    run: EngineRun, expected: Sequence[int], below: Sequence[float], most: float
) -> Check:
    """Compare the ids of a run with those of the library.

    Args:
        run: The engine's.
        expected: The library's.
        below: How far each selected id lies below the best one of the library's own uncached
            scores, as a share of their norm.
        most: Largest share that rounding explains: after a tie two runs differ for good.
    """
    total = len(expected)
    same = sum(ours == theirs for ours, theirs in zip(run.ids, expected, strict=True))
    is_tie = same < total and all(share <= most for share in below)
    found = f"{same} of {total} ids are the same"
    reason = "After a tie, which rounding decides, both went on with other tokens." * is_tie
    return _check(
        CheckKind.IDS,
        is_passed=same == total or is_tie,
        found=found,
        error=float(total - same),
        tolerance=0.0,
        allowed="all the same; a tie within rounding may go either way",
        reason=reason,
    )


def clock_check(run: EngineRun) -> Check:
    """Tell whether the step times lie between the wall time inside and outside of them."""
    outside_s = max(run.steps_s - run.wall_s, run.forwards_s - run.steps_s, 0.0)
    error = outside_s / run.wall_s if run.wall_s > 0 else 0.0
    found = (
        f"{run.steps_s * 1e3:.4g} ms; forward passes alone {run.forwards_s * 1e3:.4g} ms, with "
        f"what the engine notes after each step {run.wall_s * 1e3:.4g} ms"
    )
    return _check(
        CheckKind.CLOCK,
        is_passed=error <= CLOCK_TOLERANCE,
        found=found,
        error=error,
        tolerance=CLOCK_TOLERANCE,
        allowed=f"between the two, within {CLOCK_TOLERANCE:.0%}",
    )


def cache_check(run: EngineRun, shape: ModelShape) -> Check:
    """Compare the bytes of the cache with the counted ones."""
    counted = counted_kv_bytes(shape, run.context_tokens)
    if counted is None:
        reason = "how this model lays out its keys and values in each layer is not known"
        return impossible(CheckKind.CACHE, reason)
    if counted == 0:
        reason = "this model keeps states of a fixed size, and no keys and values"
        return impossible(CheckKind.CACHE, reason)
    error = max(abs(run.stored_bytes - counted), abs(run.reported_bytes - counted))
    found = (
        f"{run.stored_bytes:,} bytes in the tensors, {run.reported_bytes:,} reported, "
        f"{counted:,} counted for {run.context_tokens} tokens"
    )
    return _check(
        CheckKind.CACHE,
        is_passed=error == 0,
        found=found,
        error=float(error),
        tolerance=0.0,
        allowed="the same to the byte",
    )


def counted_kv_bytes(shape: ModelShape, context_tokens: int) -> int | None:
    """Return the K/V bytes of one sequence in a cache that grows; None where that is not known.

    The next token of a window's layer reads one stored token less than the window holds, itself
    being the last of it, so such a layer keeps no more.
    """
    sizes, windows = shape.kv_row_bytes_per_layer, shape.windows_per_layer
    kinds = shape.layer_types
    if not len(sizes) == len(windows) == len(kinds):
        return None
    without = (LayerType.RECURRENT, LayerType.NONE)
    return sum(
        size * (context_tokens if window is None else min(context_tokens, window - 1))
        for size, window, kind in zip(sizes, windows, kinds, strict=True)
        if kind not in without
    )


def logits_check(kind: CheckKind, computed: Tensor, expected: Tensor, most: float) -> Check:
    """Compare [step, vocab] with [step, vocab] by the norm of the difference at each step."""
    error = relative_error(computed, expected)
    steps = len(expected)
    return _check(
        kind,
        is_passed=error <= most,
        found=f"largest relative difference {error:.1e} over {steps} steps",
        error=error,
        tolerance=most,
        allowed=f"{most:.0e} of the norm, for this dtype",
    )


def relative_error(computed: Tensor, expected: Tensor) -> float:
    """Return the largest norm of a row's difference over the norm of the row."""
    least = torch.finfo(torch.float32).tiny  # zeros agree with zeros
    norms = expected.norm(dim=-1).clamp(min=least)
    errors = (computed.to(expected.device) - expected).norm(dim=-1) / norms
    return float(errors.nan_to_num(nan=float("inf")).amax())


def attention_check(
    maps: Sequence[AttentionMap | None], eager: Tensor, layer: int, most: float
) -> Check:
    """Compare the newest row of each map with the same row of the library's weights.

    Args:
        maps: Captured, all heads, one a forward pass.
        eager: [head, query, kv] of one pass over all tokens.
        layer: Which layer.
        most: Largest difference of two weights.
    """
    errors: list[float] = []
    for seen in maps:
        if seen is None or seen.weights is None:
            reason = seen.reason if seen is not None else ""
            return impossible(CheckKind.ATTENTION, reason or "no attention was captured")
        if seen.query_bin * seen.kv_bin != 1:
            return impossible(CheckKind.ATTENTION, "this model has too many heads for exact rows")
        query = seen.query_start + seen.query_tokens - 1
        keys = slice(seen.kv_start, seen.kv_start + seen.kv_tokens)
        row = eager[:, query, keys].cpu().numpy()
        errors.append(float(np.nan_to_num(abs(seen.weights[:, -1, :] - row), nan=np.inf).max()))
    error = max(errors)
    return _check(
        CheckKind.ATTENTION,
        is_passed=error <= most,
        found=f"largest difference of two weights {error:.1e}, layer {layer}, all "
        f"{len(eager)} heads",
        error=error,
        tolerance=most,
        allowed=f"{most:.0e} of a weight, for this dtype",
    )


def impossible(kind: CheckKind, reason: str, *, is_late: bool = False) -> Check:
    """Return a check that cannot be made here."""
    words = WORDS[kind]
    return Check(
        kind=kind,
        outcome=CheckOutcome.IMPOSSIBLE,
        compared=words.compared,
        reference=words.reference,
        reason=reason,
        is_late=is_late,
    )


def failed(kind: CheckKind, reason: str) -> Check:
    """Return a check in which this program computed nothing where the library does."""
    words = WORDS[kind]
    return Check(
        kind=kind,
        outcome=CheckOutcome.DIFFERS,
        compared=words.compared,
        reference=words.reference,
        reason=reason,
    )


def _check(  # noqa: PLR0913  each is a field of the record
    kind: CheckKind,
    *,
    is_passed: bool,
    found: str,
    error: float,
    tolerance: float,
    allowed: str,
    reason: str = "",
) -> Check:
    words = WORDS[kind]
    return Check(
        kind=kind,
        outcome=CheckOutcome.PASSED if is_passed else CheckOutcome.DIFFERS,
        compared=words.compared,
        reference=words.reference,
        found=found,
        error=error,
        tolerance=tolerance,
        allowed=allowed,
        reason=reason,
    )
