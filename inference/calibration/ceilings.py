"""Measures this device's two roofs: how fast it reads memory, and how fast it multiplies matrices.

Each roof is the best rate of a sweep; every size of it is kept with its best, median and worst
rate. Two traps are avoided. Memory is written before it is read: pages that were never written
are all the same page of zeros, which the cache serves at many times the speed of memory. And the
read goes well beyond the last cache, which on a server processor may hold hundreds of megabytes.

The reads are the library's and one of our own kernels' (``kernels/streams.py``), which read weights
faster than the library does: a roof of the library's alone would lie below our steps.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median

import torch
from torch import Tensor

from inference.calibration.device_reads import (
    CACHE_BEHIND_L2_BYTES,
    device_read_sizes,
    short_read_note,
)
from inference.calibration.timings import Stopwatch, Timing, quiet_timings
from inference.engine.clock import StepClock, clock_for
from inference.engine.float32_products import exact_float32
from inference.engine.run_delay import StepDelays, ThreadDelays
from inference.kernels.streams import read_streams, stream_library, streamed_bytes
from inference.kernels.wide_products import is_widened, wide_product
from inference.models.devices import describe_device
from inference.models.host_memory import free_host_bytes
from inference.models.memory_errors import is_out_of_memory
from inference.records.errors import OutOfMemoryError
from inference.records.rooflines import MeasuredCeilings, SweepPoint

OnProgress = Callable[[float, str], None]
ShouldStop = Callable[[], bool]
Kernel = Callable[[], object]

MIB = 1 << 20
ASSUMED_CACHE_BYTES = 64 * MIB  # where the machine does not say; larger than most last caches
CACHE_MULTIPLES = (4, 8, 16)
MEMORY_SHARE = 4  # a read takes at most a quarter of the memory that is free
SMALLEST_READ_BYTES = 128 * MIB
ROW_LENGTH = 4096  # columns of the matrix in the matrix-vector read
REPEATS = 7
WARM_UPS = 2
HOST_ORDERS = (512, 1024, 2048, 3072)
DEVICE_ORDERS = (2048, 4096, 8192, 16384)
# Chosen: a thousand times the launch of a kernel, which takes microseconds, and a clock's grain.
SHORTEST_TIMING_S = 0.005
# Chosen: a run that comes meanwhile waits for one timing at most.
LONGEST_TIMING_S = 0.5
# Chosen: with the time to make the matrices a measurement stays under ten seconds.
BUDGET_S = 8.0
READS_SHARE = 0.35  # of the budget
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


@dataclass(frozen=True, slots=True)
class _Task:
    """One measurement of a sweep: ``amount`` is the bytes or FLOPs of one call of the kernel."""

    label: str
    size: int
    amount: int
    kernel: Kernel


@dataclass(frozen=True, slots=True)
class RoofPlan:
    """What a measurement goes through, in order.

    Attributes:
        read_bytes: Sizes of the reads.
        orders: Orders of the square matrices, growing.
        clock: Times the kernels.
        delays: Makes what reads how long threads waited for a processor.
    """

    read_bytes: tuple[int, ...]
    orders: tuple[int, ...]
    clock: StepClock
    delays: Callable[[], StepDelays] = ThreadDelays


class _StoppedError(Exception):
    """Someone asked to stop; never leaves this module."""


def measure_ceilings(
    torch_device: torch.device,
    dtype: torch.dtype,
    on_progress: OnProgress = lambda _ratio, _text: None,
    should_stop: ShouldStop = lambda: False,
    plan: RoofPlan | None = None,
) -> MeasuredCeilings | None:
    """Return both roofs of a device as measured; None when it was asked to stop.

    Takes up to ten seconds: a sweep ends where its next size would not fit into the budget or the
    memory, and has one size at least. Meaningless while something else runs. Float32 products are
    computed as float32, whatever torch is set to.

    Args:
        torch_device: The device.
        dtype: Of the matrix products; reads are in float32, since bandwidth is the same for all.
        on_progress: Called with how far it is, 0 to 1, and what is measured.
        should_stop: Asked before every timing.
        plan: What to go through; ``usual_plan`` by default.

    Raises:
        OutOfMemoryError: If there is no room even for the smallest read or product.
    """
    with exact_float32() as was_tf32:
        measured = _sweeps(torch_device, dtype, on_progress, should_stop, plan)
    if measured is None or not was_tf32 or dtype is not torch.float32:
        return measured
    return replace(measured, notes=(*measured.notes, "TF32 was on and was set off for it"))


def _sweeps(
    torch_device: torch.device,
    dtype: torch.dtype,
    on_progress: OnProgress,
    should_stop: ShouldStop,
    plan: RoofPlan | None,
) -> MeasuredCeilings | None:
    plan = plan or usual_plan(torch_device)
    meter = _Meter(Stopwatch(plan.clock, plan.delays), should_stop)
    stages = len(plan.read_bytes) + len(plan.orders)
    reads: list[SweepPoint] = []
    products: list[SweepPoint] = []
    notes: list[str] = []
    try:
        for done, size in enumerate(plan.read_bytes):
            if reads and meter.spent_s * (1 + size / reads[-1].size) > BUDGET_S * READS_SHARE:
                break
            on_progress(done / stages, f"reading {size // MIB} MiB of memory")
            with _as_far_as_it_fits(reads, f"reads of {size // MIB} MiB", notes):
                reads += [meter.point(task) for task in _reads(torch_device, size)]
        for done, order in enumerate(plan.orders, start=len(plan.read_bytes)):
            if products and not meter.has_time_for((order / products[-1].size) ** 3):
                break
            on_progress(done / stages, f"multiplying matrices of order {order}")
            with _as_far_as_it_fits(products, f"matrices of order {order}", notes):
                products.append(meter.point(_product(torch_device, dtype, order)))
            if products[-1].size != order:
                break  # larger ones would not fit either
    except _StoppedError:
        return None
    on_progress(1.0, "done")
    device = describe_device(torch_device, dtype)
    if torch_device.type == "cuda":
        largest = max(point.size for point in reads)
        notes += filter(None, [short_read_note(largest, cache_to_exceed(torch_device))])
    return MeasuredCeilings(
        device=device,
        dtype=device.dtype,
        machine=machine_name(torch_device),
        torch_version=torch.__version__,
        threads=torch.get_num_threads(),
        last_cache_bytes=last_cache_bytes(torch_device),
        measured_at=datetime.now(UTC),
        reads=tuple(reads),
        products=tuple(products),
        notes=tuple(notes),
    )


@contextmanager
def _as_far_as_it_fits(
    smaller: Sequence[SweepPoint], what: str, notes: list[str]
) -> Generator[None, None, None]:
    """Note a lack of memory for one size of a sweep; raise it where there is no smaller one.

    Raises:
        OutOfMemoryError: Nothing of the sweep was measured.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        if not smaller:
            msg = f"no memory is left for {what}; end other programs and measure again"
            raise OutOfMemoryError(msg) from error
        notes.append(f"no room for {what}")


def usual_plan(device: torch.device) -> RoofPlan:
    """Return the sweeps for a device: reads beyond its last cache, products up to large ones.

    Raises:
        OutOfMemoryError: If there is no room even for the smallest read.
    """
    free = free_bytes(device)
    is_cuda = device.type == "cuda"
    return RoofPlan(
        read_bytes=device_read_sizes(cache_to_exceed(device), free)
        if is_cuda
        else read_sizes(last_cache_bytes(device), free),
        orders=HOST_ORDERS if device.type == "cpu" else DEVICE_ORDERS,
        clock=clock_for(device),
    )


class _Meter:
    """Times kernels call by call.

    Attributes:
        last_time_s: The median time of one call of the latest point's kernel.
        spent_s: The sum of all timings.
    """

    def __init__(self, stopwatch: Stopwatch, should_stop: ShouldStop) -> None:
        self._stopwatch = stopwatch
        self._should_stop = should_stop
        self.last_time_s = 0.0
        self.spent_s = 0.0
        self._last_point_s = 0.0  # what was measured again because it was disturbed included

    def has_time_for(self, times: float) -> bool:
        """Tell whether a point whose calls take this many times the latest's fits the budget."""
        longest_s = self.last_time_s * times
        fits = self.spent_s + self._last_point_s * times <= BUDGET_S
        return fits and longest_s <= LONGEST_TIMING_S

    def point(self, task: _Task) -> SweepPoint:
        """Return the rates of one kernel at one size."""
        before_s, calls = self.spent_s, 1
        for _ in range(WARM_UPS):
            warm_s = self._timing(task.kernel, calls).seconds / calls
            calls = max(1, round(SHORTEST_TIMING_S / warm_s)) if warm_s > 0 else 1

        def measure(missing: int) -> list[Timing]:
            return [self._timing(task.kernel, calls) for _ in range(missing)]

        kept = quiet_timings(measure, REPEATS)
        timings = [seconds / calls for seconds in kept.seconds]
        self.last_time_s = median(timings)
        self._last_point_s = self.spent_s - before_s
        return SweepPoint(
            label=task.label,
            size=task.size,
            best=task.amount / min(timings),
            median=task.amount / self.last_time_s,
            worst=task.amount / max(timings),
            repeats=len(timings),
            is_disturbed=kept.is_disturbed,
        )

    def _timing(self, kernel: Kernel, calls: int) -> Timing:
        if self._should_stop():
            raise _StoppedError

        def repeated() -> None:
            for _ in range(calls):
                kernel()

        timing = self._stopwatch.time(repeated)
        self.spent_s += timing.seconds
        return timing


def read_sizes(last_cache: int | None, free: int) -> tuple[int, ...]:
    """Return the bytes to read: multiples of the last cache, within a share of the free memory.

    Raises:
        OutOfMemoryError: If there is no room for the smallest.
    """
    limit = free // MEMORY_SHARE
    if limit < SMALLEST_READ_BYTES:
        msg = (
            f"{free // MIB} MiB of memory are free; measuring it needs "
            f"{MEMORY_SHARE * SMALLEST_READ_BYTES // MIB} MiB: close something and try again"
        )
        raise OutOfMemoryError(msg)
    cache = last_cache or ASSUMED_CACHE_BYTES
    wanted = (max(SMALLEST_READ_BYTES, times * cache) for times in CACHE_MULTIPLES)
    return tuple(dict.fromkeys(min(limit, size) for size in wanted))


def last_cache_bytes(device: torch.device) -> int | None:
    """Return the size of the largest cache between the cores and memory; None where not known."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).L2_cache_size)
    if device.type != "cpu":
        return None
    sizes = [_cache_size(path) for path in CACHES.glob("index*/size")]
    return max(sizes, default=None) or None


def cache_to_exceed(device: torch.device) -> int | None:
    """Return the size of the cache that reads of a GPU must go well beyond."""
    behind = CACHE_BEHIND_L2_BYTES if torch.version.hip is not None else 0
    return max(last_cache_bytes(device) or 0, behind) or None


def free_bytes(device: torch.device) -> int:
    """Return the memory that is free for a measurement."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return free_host_bytes()


def machine_name(device: torch.device) -> str:
    """Return the device and how much of it is used, in words."""
    name = describe_device(device, torch.float32).name
    if device.type == "cpu":
        return f"{name}, {torch.get_num_threads()} threads, {platform.system()}"
    return f"{name}, {platform.system()}"


def _cache_size(path: Path) -> int:
    text = path.read_text().strip()
    units = {"K": 1 << 10, "M": MIB, "G": 1 << 30}
    return int(text[:-1]) * units[text[-1]] if text[-1:] in units else int(text or 0)


def _reads(device: torch.device, size: int) -> Iterator[_Task]:
    """Yield kernels that read ``size`` bytes once and write next to nothing.

    Which of them comes closest to the memory's rate differs between devices and libraries.
    """
    rows = max(1, size // 4 // ROW_LENGTH)
    matrix = torch.full((rows, ROW_LENGTH), 0.5, device=device)  # writing it makes its pages real
    vector = torch.full((ROW_LENGTH,), 0.5, device=device)
    amount = matrix.numel() * matrix.element_size()
    half = matrix.view(-1)[: matrix.numel() // 2]
    other = matrix.view(-1)[matrix.numel() // 2 :]
    size_label = f"{amount // MIB} MiB float32"
    kernels: dict[str, Kernel] = {
        "matrix-vector product": lambda: torch.mv(matrix, vector),
        "sum": matrix.sum,
        "dot product": lambda: torch.dot(half, other[: half.numel()]),
    }
    for name, kernel in kernels.items():
        yield _Task(label=f"{name} over {size_label}", size=amount, amount=amount, kernel=kernel)
    library = stream_library(device)
    if library is not None:
        yield _Task(
            label=f"four streams over {size_label}",
            size=amount,
            amount=streamed_bytes(amount),
            kernel=partial(read_streams, library, matrix),
        )


def _product(device: torch.device, dtype: torch.dtype, order: int) -> _Task:
    left, right = _noise(device, dtype, order), _noise(device, dtype, order)
    product = torch.zeros(order, order, dtype=dtype, device=device)
    label = f"{order}x{order} {str(dtype).removeprefix('torch.')} matrix product"
    kernel: Kernel = partial(torch.mm, left, right, out=product)
    if device.type == "cpu" and is_widened(dtype):  # as prefill does it
        label += " in float32"
        kernel = partial(wide_product, left, right)
    return _Task(label=label, size=order, amount=2 * order**3, kernel=kernel)


def _noise(device: torch.device, dtype: torch.dtype, order: int) -> Tensor:
    """Return a matrix of noise: on zeros a device draws less power and runs faster."""
    generator = torch.Generator(device=device).manual_seed(order)
    return torch.randn(order, order, generator=generator, device=device).to(dtype)
