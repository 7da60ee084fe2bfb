"""The report of ``bench`` as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inference.bench.disturbance import DisturbanceFigures
from inference.bench.page import PageFigures
from inference.bench.report import BenchReport
from inference.bench.rounds import Spread, Target
from inference.bench.sections import ContextFigures


def as_table(report: BenchReport) -> str:
    """Return the whole report."""
    load = report.load_average
    lines = [
        f"{report.model}, {report.dtype}, {report.machine}, {report.measured_at}",
        f"load average {load.before[0]:.1f} before, {load.after[0]:.1f} after",
        f"kernels: {report.kernels}",
        "",
        "decode of one row, tokens/s (quartiles), and how many times as fast the engine is",
        *(line for figures in report.decode for line in _context_lines(figures)),
        "",
        "batches, all rows' tokens/s with kernels, without, and divided by that of one row",
        *(
            f"  {one.rows:>3} rows  {_spread(one.tokens_per_s):<28} "
            f"{_spread(one.plain_tokens_per_s):<28} {_spread(one.ratio_to_one_row)} times"
            for one in report.batch
        ),
        "",
        "batch by context: measured step, the least it could take, all rows' tokens/s",
        *(
            f"  {one.rows:>3} rows of {one.context:>5,} tokens  {_milliseconds(one.step_s):>10}  "
            f"{_milliseconds(one.least_s):>10}  {_rate(one.tokens_per_s):>16}"
            f"{', disturbed by other programs' * one.is_disturbed}"
            for one in report.sweep
        ),
        *_disturbance_lines(report.disturbance),
        *_page_lines(report.page),
        "",
        "load, s",
        *(f"  {name:<44}{seconds:.2f}" for name, seconds in report.load_stages_s.items()),
    ]
    if report.llama_cpp_tokens_per_s is not None:
        lines += ["", f"llama.cpp {report.llama_cpp_tokens_per_s:.1f} tokens/s"]
    lines += ["", *target_lines(report.targets)]
    return "\n".join([*lines, report.not_measured] if report.not_measured else lines)


def target_lines(targets: Sequence[Target]) -> list[str]:
    """Return one line a target: the figure, its quartiles, the target, and whether it is met."""
    width = max((len(target.name) for target in targets), default=0)
    return [_target_line(target, width) for target in targets]


def _target_line(target: Target, width: int) -> str:
    wanted = f"{'≤' if target.is_at_most else '≥'} {target.wanted:g}"
    if target.found is None:
        return f"{target.name:<{width}}  not measured, wanted {wanted}"
    verdict = "met" if target.is_met else "missed"
    return f"{target.name:<{width}}  {_spread(target.found, 4):<28} wanted {wanted}: {verdict}"


def _context_lines(figures: ContextFigures) -> Iterator[str]:
    yield f"  {figures.context:,} tokens of context"
    for name, rate in figures.tokens_per_s.items():
        ratio = figures.ratios.get(name)
        times = f"  {_spread(ratio)} times" if ratio else ""
        yield f"    {name:<29}{_spread(rate):<28} {times}".rstrip()
    if figures.roof_ratio:
        yield f"    share of the memory roof {_spread(figures.roof_ratio)}"


def _disturbance_lines(figures: DisturbanceFigures | None) -> Iterator[str]:
    yield ""
    if figures is None:
        yield "disturbed steps: not known here, since the system does not count run delays"
        return
    yield "steps marked as disturbed by other programs"
    yield f"  beside a busy loop on one core       {_spread(figures.marked_beside)}"
    yield f"  without one (see the load average)   {_spread(figures.marked_alone)}"
    yield f"  delay counted ÷ lost, one thread     {_spread(figures.delay_ratio, 4)}"
    yield f"  reading the delays ÷ step time       {_spread(figures.cost_ratio)}"


def _page_lines(page: PageFigures | None) -> Iterator[str]:
    if page is None:
        return
    yield ""
    yield "a run on the page, tokens/s: nobody watching, a viewer, a browser"
    for way, rate in page.tokens_per_s.items():
        yield f"  {way:<12}{_spread(rate)}"
    for length, ms in page.main_thread_ms.items():
        yield f"  main thread a frame, {int(length):,} tokens, ms: {_spread(ms)}"
    frames = page.frame_bytes
    yield (
        f"  {frames['frames']:,} frames, {frames['median']:,.0f} bytes in the median, "
        f"{frames['largest']:,} at most"
    )
    started = ", ".join(f"{name} {seconds:.1f}" for name, seconds in page.start_s.items())
    yield f"  start, s: {started}"


def _milliseconds(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"{seconds * 1e3:.1f} ms"


def _rate(tokens_per_s: float | None) -> str:
    return "unknown" if tokens_per_s is None else f"{tokens_per_s:.1f} tokens/s"


def _spread(spread: Spread, digits: int = 3) -> str:
    low, middle, high = (
        f"{value:.{digits}g}" for value in (spread.low, spread.median, spread.high)
    )
    return f"{middle} ({low} to {high})"
