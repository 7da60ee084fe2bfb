"""What must hold on a device, each with its finding in a sentence.

A check that does not apply, such as a graph without a GPU, is neither passed nor failed.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import fsum

import torch

from inference.bench.gpu_setup import Bench, decoding
from inference.bench.gpu_sizes import Sizes
from inference.counting.datasheets import datasheet_ceilings, find_datasheet
from inference.engine.loop import GenerationOptions
from inference.records.errors import InputError
from inference.records.options import CacheKind, DecodeMode
from inference.records.rooflines import MeasuredCeilings
from inference.records.run import RunTrace

# Source: our choice, after estimates and not measurements. GeForce sheets take a boost clock 8 to
# 20 % below what the cards run at, and a good product reaches most of that. A T4 held at its 70 W
# multiplies at 20 to 30 of its 65 TFLOP/s. Outside of these a GPU is another one, or in use, or was
# measured wrongly.
LEAST_OF_SHEET = 0.25
MOST_OF_SHEET = 1.15
# Source: our choice. Between two step times the loop below only calls the clock; the rest allows
# for a host that is interrupted once in a while.
LEAST_OF_WALL = 0.9
ALLOCATOR_BYTES = 512  # Source: PyTorch's notes on CUDA memory: blocks are multiples of 512 bytes.
OVERLAP_S = 0.001

Allocated = Callable[[], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that must hold.

    Attributes:
        name: In a few words.
        is_passed: None where it does not apply here.
        finding: What was found, as a sentence.
        is_left_out: There was no time or no room for it.
        is_broken: It ended in an error that nobody foresaw.
    """

    name: str
    is_passed: bool | None
    finding: str
    is_left_out: bool = False
    is_broken: bool = False


def same_ids(device: Bench, host: Bench, count: int) -> Check:
    """Check that the first tokens on the device are those of the CPU, both in float32."""
    requests = device.requests(2, count, is_uneven=True)
    ours, _ = device.selected(requests, GenerationOptions())
    theirs, _ = host.selected(requests, GenerationOptions())
    agreed = min(_agreed(ids, theirs[request_id]) for request_id, ids in ours.items())
    return Check(
        name="ids on the device are those of the CPU, float32",
        is_passed=agreed >= count,
        finding=f"the first {agreed} of {count} tokens agree in the worse of 2 rows",
    )


def same_as_eager(bench: Bench, mode: DecodeMode, sizes: Sizes, precision: str = "") -> Check:
    """Check that steps of a mode choose the ids of eager ones on the very same prepared cache.

    A cache of another size may be computed with another kernel, so both have the same room. All
    ids must agree then, but of compiled steps in 16 bits: fused operations round less often, and
    two logits are sometimes equal or nearly so.

    Args:
        bench: The model.
        mode: Of the steps.
        sizes: How many tokens to compare.
        precision: What the numbers are computed in, where the model's dtype does not say it all.
    """
    precision = precision or bench.loaded.device.dtype
    name = f"{mode} steps choose the ids of eager ones, {precision}"
    count = sizes.replayed_tokens
    agreed: list[int] = []
    for rows in (1, 3):
        requests = bench.requests(rows, count, is_uneven=True)
        ours, note = bench.selected(requests, decoding(mode))
        if note:
            return Check(name=name, is_passed=None, finding=note)
        with bench.eager_steps():
            eager, _ = bench.selected(requests, decoding(mode))
        agreed += [_agreed(ids, eager[request_id]) for request_id, ids in ours.items()]
    rounds_alike = mode is not DecodeMode.COMPILED or bench.loaded.device.dtype == "float32"
    needed = count if rounds_alike else min(count, sizes.compared_tokens)
    return Check(
        name=name,
        is_passed=min(agreed) >= needed,
        finding=f"at least the first {min(agreed)} of {count} tokens agree in each of "
        f"{len(agreed)} rows, alone and in a batch of 3; {needed} are needed",
    )


def cache_bytes(bench: Bench, allocated: Allocated | None) -> Check:
    """Check that the bytes of a static cache are those that the device's allocator gave it.

    Args:
        bench: The model.
        allocated: Returns the bytes allocated on the device; None where no allocator counts them.
    """
    name = "cache bytes are the allocator's"
    if allocated is None:
        return Check(
            name=name, is_passed=None, finding="only a CUDA device's allocator counts them"
        )
    request = bench.requests(1, 1)[0]
    room = len(request.prompt_ids) * 8
    backend = bench.backend
    backend.prepare(DecodeMode.EAGER, 1, room)
    backend.start(CacheKind.STATIC, room)
    backend.forward([list(request.prompt_ids)])
    gc.collect()
    held = allocated()
    state = backend.cache_state([len(request.prompt_ids)])
    backend.start()
    gc.collect()
    freed = held - allocated()
    # Keys, values and a counter in each layer, each rounded up to whole blocks at the most.
    slack = 3 * len(state.tokens_per_layer) * ALLOCATOR_BYTES
    return Check(
        name=name,
        is_passed=0 <= freed - state.allocated_bytes <= slack,
        finding=f"{state.allocated_bytes:,} bytes in the cache's tensors, {freed:,} given back "
        f"with them (rounding explains up to {slack:,} more)",
    )


def roofs_in_bounds(measured: MeasuredCeilings) -> Check:
    """Check that both measured roofs are within sane bounds of the GPU's data sheet."""
    name = "measured roofs are within bounds of the data sheet"
    gpu = measured.device.name
    sheet = find_datasheet(gpu)
    if sheet is None:
        return Check(name=name, is_passed=None, finding=f"no data sheet is known for {gpu}")
    try:
        stated = datasheet_ceilings(sheet, measured.dtype)
    except InputError as error:
        return Check(name=name, is_passed=None, finding=str(error))
    roofs = measured.ceilings
    shares = (roofs.flops_per_s / stated.flops_per_s, roofs.bytes_per_s / stated.bytes_per_s)
    return Check(
        name=name,
        is_passed=all(LEAST_OF_SHEET <= share <= MOST_OF_SHEET for share in shares),
        finding=f"{shares[0]:.0%} of the stated FLOP/s in {measured.dtype} and {shares[1]:.0%} of "
        f"the stated bytes/s of {sheet.name}; {LEAST_OF_SHEET:.0%} to {MOST_OF_SHEET:.0%} pass, "
        "since a card at its power limit stays well below its sheet, and one may clock higher",
    )


def step_times_fill_the_wall(bench: Bench, sizes: Sizes) -> Check:
    """Check that step times in a tight loop sum to the host's own time over it."""
    clock, backend = bench.clock, bench.backend
    request = bench.requests(1, 1)[0]
    backend.prepare(DecodeMode.EAGER, 1, 1)
    backend.start()
    backend.forward([list(request.prompt_ids)]).argmax(dim=-1).cpu()
    step_times: list[float] = []
    began_s = clock.now_s()
    for _ in range(sizes.wall_steps):
        clock.start_timing()
        backend.forward([[1]]).argmax(dim=-1).cpu()  # waits for the device, as a step does
        step_times.append(clock.end_timing())
    wall_s = clock.now_s() - began_s
    share = fsum(step_times) / wall_s
    is_within = LEAST_OF_WALL <= share <= 1.0 + 1.0 / len(step_times)
    return Check(
        name="step times sum to wall time",
        is_passed=is_within if sizes.is_timed else None,
        finding=f"{len(step_times)} step times make up {share:.1%} of {wall_s * 1e3:.1f} ms",
    )


def step_times_do_not_overlap(traces: Iterable[RunTrace]) -> Check:
    """Check that no step time of the recorded runs reaches into the next step."""
    worst_s = 0.0
    pairs = 0
    for trace in traces:
        for event, following in pairwise(trace.events):
            worst_s = max(worst_s, event.started_s + event.duration_s - following.started_s)
            pairs += 1
    return Check(
        name="no step time reaches into the next step",
        is_passed=worst_s <= OVERLAP_S if pairs else None,
        finding=f"in {pairs} pairs of steps the worst overlap is {worst_s * 1e3:.3f} ms",
    )


def allocator_of(device: torch.device) -> Allocated | None:
    """Return a count of the bytes allocated on a device; None where no allocator keeps one."""
    if device.type != "cuda":
        return None

    def allocated() -> int:
        torch.cuda.synchronize(device)
        # What was asked for: blocks of the large pool may be 1 MiB longer than that.
        return int(torch.cuda.memory_stats(device)["requested_bytes.all.current"])

    return allocated


def _agreed(ours: list[int], theirs: list[int]) -> int:
    """Return how many ids agree before the first that does not."""
    pairs = zip(ours, theirs, strict=False)
    return next((index for index, (our, their) in enumerate(pairs) if our != their), len(ours))
