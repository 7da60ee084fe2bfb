"""How much the GPU report measures, chosen from the time of one step, and what each part may take.

Pure: times in, sizes and times out. No torch, no clock. Each estimate is an upper one, so that a
part that begins is over in time; a part for which there is no time left is left out and said to be.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from inference.bench.gpu_sizes import Sizes
from inference.records.options import DecodeMode

# Source: the promise of three minutes on a card whose eager step takes 10 to 12 ms (H100) and four
# where it takes 25 to 30 (T4), less some seconds for torch's import and for what is written.
FAST_STEP_S = 0.015
FAST_BUDGET_S = 165.0
SLOW_BUDGET_S = 220.0
COMPILING_S = 300.0  # more, where torch.compile was asked for
# Source: our choice. Busy time is of up to a second before it is read, and the energy counter moves
# ten times a second or so: 5 s of decode leave both with a few per cent of doubt.
LEAST_DECODE_S = 5.0
DECODE_S = 5.5
LEAST_NEW_TOKENS = 8
WALL_S = 2.0  # of steps in a tight loop
# Source: our estimates, not measured on a GPU: a capture with its warm-up, and all sweeps of the
# roofs on a T4.
CAPTURE_S = 3.0
ROOFS_S = 12.0
# Source: our estimate. A recorded step of a small model takes a fraction of an eager one.
RECORDED_SHARE = 0.6
# Rows that double the time of a step; small models are bound by launches well beyond.
DOUBLING_ROWS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What a model takes on a device, one row, eager.

    Attributes:
        load_s: To load it.
        prefill_s: One prompt.
        step_s: From one decode step to the next.
    """

    load_s: float
    prefill_s: float
    step_s: float


# Of a T4, where the first steps could not be timed.
UNKNOWN_PACE = Pace(load_s=10.0, prefill_s=0.2, step_s=0.03)


@dataclass(frozen=True, slots=True)
class _Level:
    """How far the sizes are cut: repeats, tokens compared with eager ones, rows of batches."""

    repeats: int
    replayed_tokens: int
    most_rows: int


LEVELS = (
    _Level(2, 256, 64),
    _Level(2, 128, 64),
    _Level(1, 128, 32),
    _Level(1, 64, 8),
    _Level(1, 24, 1),
)


def budget_s(pace: Pace | None, *, has_compiled: bool) -> float:
    """Return how long all of it may take, from the top."""
    is_fast = pace is not None and pace.step_s <= FAST_STEP_S
    return (FAST_BUDGET_S if is_fast else SLOW_BUDGET_S) + COMPILING_S * has_compiled


def sized(full: Sizes, pace: Pace, left_s: float, room_tokens: int | None) -> Sizes:
    """Return the largest sizes whose estimate is within the time that is left.

    Args:
        full: What is measured where there is time.
        pace: The model's.
        left_s: Time for all of it.
        room_tokens: Most new tokens that the model's context has room for; None for any.
    """
    wanted = max(LEAST_NEW_TOKENS, ceil(DECODE_S / pace.step_s))
    new_tokens = wanted if room_tokens is None else max(1, min(wanted, room_tokens))
    levels = [
        replace(
            full,
            new_tokens=new_tokens,
            wall_steps=max(LEAST_NEW_TOKENS, min(full.wall_steps, round(WALL_S / pace.step_s))),
            warm_tokens=min(full.warm_tokens, new_tokens),
            repeats=level.repeats,
            replayed_tokens=min(level.replayed_tokens, room_tokens or level.replayed_tokens),
            batches=tuple(rows for rows in full.batches if rows <= level.most_rows),
        )
        for level in LEVELS
    ]
    return next((sizes for sizes in levels if whole_s(pace, sizes) <= left_s), levels[-1])


def reductions(full: Sizes, sizes: Sizes) -> tuple[str, ...]:
    """Return what the chosen sizes leave out, each in a few words."""
    cuts: list[str] = []
    if sizes.repeats < full.repeats:
        cuts.append(f"{sizes.repeats} timed run of each way to decode instead of {full.repeats}")
    if sizes.replayed_tokens < full.replayed_tokens:
        cuts.append(
            f"{sizes.replayed_tokens} tokens compared with eager ones instead of "
            f"{full.replayed_tokens}"
        )
    left_out = [str(rows) for rows in full.batches if rows not in sizes.batches]
    if left_out:
        cuts.append(f"no batches of {', '.join(left_out)} rows")
    return tuple(cuts)


def whole_s(pace: Pace, sizes: Sizes) -> float:
    """Return what everything after the first timed step may take."""
    ways = 3 * speed_s(pace, sizes, DecodeMode.EAGER) + speed_s(pace, sizes, DecodeMode.GRAPH)
    checks = wall_s(pace, sizes) + 2 * replay_s(pace, sizes) + ROOFS_S
    batches = sum(batch_s(pace, sizes, rows) for rows in sizes.batches)
    return ways + checks + batches + float32_load_s(pace) + host_s(pace)


def wall_s(pace: Pace, sizes: Sizes) -> float:
    """Return what steps in a tight loop may take."""
    return 2 * pace.prefill_s + sizes.wall_steps * pace.step_s


def replay_s(pace: Pace, sizes: Sizes) -> float:
    """Return what comparing the ids of two batches of recorded steps with eager ones may take."""
    steps = sizes.replayed_tokens * (1 + RECORDED_SHARE) * pace.step_s
    return 2 * (steps + 2 * pace.prefill_s + CAPTURE_S)


def speed_s(pace: Pace, sizes: Sizes, mode: DecodeMode) -> float:
    """Return what the timed runs of one way to decode may take."""
    if mode is DecodeMode.EAGER:
        steps = sizes.repeats * sizes.new_tokens + sizes.warm_tokens
        return (sizes.repeats + 1) * pace.prefill_s + steps * pace.step_s
    steps = (sizes.repeats + 1) * sizes.new_tokens * RECORDED_SHARE
    long_run_s = 2 * DECODE_S
    return (sizes.repeats + 2) * pace.prefill_s + steps * pace.step_s + long_run_s + 2 * CAPTURE_S


def batch_s(pace: Pace, sizes: Sizes, rows: int) -> float:
    """Return what one batch of the sweep may take."""
    longer = 1 + rows / DOUBLING_ROWS
    return longer * (sizes.batch_tokens * pace.step_s * RECORDED_SHARE + pace.prefill_s) + CAPTURE_S


def float32_load_s(pace: Pace) -> float:
    """Return what loading the model in float32 may take: twice the bytes of the usual dtype."""
    return 2 * pace.load_s


def host_s(pace: Pace) -> float:
    """Return what loading it on the CPU and the first step there may take."""
    return 2 * pace.load_s + CAPTURE_S
