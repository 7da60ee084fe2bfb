"""The rows of the rooflines, and what is said about them: counted work over measured step times.

No torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import ceil, floor, log10

from inference.counting.costs import step_cost
from inference.counting.datasheets import datasheet_ceilings, find_datasheet
from inference.counting.roofline import attainable_flops_per_s, roofline_point, work_of
from inference.figures.disturbance import is_disturbed
from inference.records.costs import Ceilings, StepCost
from inference.records.errors import InputError
from inference.records.model import ModelShape
from inference.records.rooflines import Bound, RooflinePoint, roof_tag
from inference.records.run import RunInfo, RunTrace
from inference.records.steps import Part, Phase, StepEvent
from visuals.charts.axes import picked
from visuals.charts.theme import Row
from visuals.charts.units import amount, percent, share, significant

NOT_MEASURED = "This run has no roofs: they were not measured on its device when it was made."
NOT_SPLIT = (
    "No step of this run was timed in parts. Start a run with this tab open: its prefill is, and "
    "one decode step in eight."
)
NOT_COUNTED = "This run's file lists no weight matrices, so its work cannot be counted."
LEAST_INTENSITY, MOST_INTENSITY = 0.1, 1000.0
ROOM = 3.0  # how far the axis extends beyond the ridge
DIGITS = 4  # of a point's place
Place = tuple[float, float]
_NAMES = {
    Part.STEP: "Step",
    Part.LINEAR: "The linear part of step",
    Part.ATTENTION: "The attention of step",
}


def point_datasets(trace: RunTrace, part: Part) -> dict[str, list[Row]]:
    """Return the rows of one roofline by the names of their data."""
    name = f"roofline_{part.value}"
    points = point_rows(trace.events, trace.info, part)
    return {name: picked(points), **frame_datasets(trace.events, trace.info, part)}


def frame_datasets(events: Sequence[StepEvent], info: RunInfo, part: Part) -> dict[str, list[Row]]:
    """Return the rows that do not grow with the run: roofs, ridges, ends of axes, newest points."""
    name = f"roofline_{part.value}"
    roofs = roofs_of(info)
    ends = axis_ends(_typical_places(events, info, part), roofs)
    return {
        f"{name}_roofs": roof_rows(roofs, ends),
        f"{name}_ridges": ridge_rows(roofs),
        f"{name}_extent": end_rows(ends),
        f"{name}_now": now_rows(events, info, part),
    }


def roofs_of(info: RunInfo) -> tuple[Ceilings, ...]:
    """Return the roofs of a run's device: those measured there, and the vendor's where known."""
    measured = (info.ceilings,) if info.ceilings is not None else ()
    sheet = find_datasheet(info.device.name)
    if sheet is None:
        return measured
    try:
        return (*measured, datasheet_ceilings(sheet, info.device.dtype))
    except InputError:
        return measured  # it states no rate for this dtype


def points_of(event: StepEvent, info: RunInfo, part: Part) -> RooflinePoint | None:
    """Return a step's point under the measured roofs; None without roofs, step time or counts."""
    step_time_s = part_seconds(event, part)
    if info.ceilings is None or step_time_s is None or not info.shape.matrices:
        return None
    work = work_of(cost_of(event, info.shape), part)
    return roofline_point(work, step_time_s, info.ceilings)


def cost_of(event: StepEvent, shape: ModelShape) -> StepCost:
    """Return the least that a step must do; counted once for all charts."""
    return _counted(shape, tuple((row.query_tokens, row.context_tokens) for row in event.rows))


def part_seconds(event: StepEvent, part: Part) -> float | None:
    """Return the time of a part of a step; None where it was not timed."""
    if part is Part.STEP:
        return event.duration_s
    return next((timed.duration_s for timed in event.parts if timed.part is part), None)


def point_rows(events: Iterable[StepEvent], info: RunInfo, part: Part) -> list[Row]:
    """Return one row for each step whose part was timed; none when its work cannot be counted."""
    rows = (_point_row(event, info, part) for event in events)
    return [row for row in rows if row is not None]


def now_rows(events: Sequence[StepEvent], info: RunInfo, part: Part) -> list[Row]:
    """Return the newest step's point of the newest phase, named."""
    newest = next((e for e in reversed(events) if part_seconds(e, part) is not None), None)
    row = None if newest is None else _point_row(newest, info, part)
    return [] if row is None else [{**row, "label": row["phase"]}]


def roof_rows(roofs: Iterable[Ceilings], ends: tuple[Place, Place]) -> list[Row]:
    """Return the corners of each roof from one end of the axis to the other, with its source."""
    (low, _), (high, _) = ends
    return [
        {"roof": number, "source": roof_tag(roof), "x": x, "y": attainable_flops_per_s(roof, x)}
        for number, roof in enumerate(roofs)
        for x in (low, roof.ridge_flops_per_byte, high)
    ]


def ridge_rows(roofs: Iterable[Ceilings]) -> list[Row]:
    """Return where each pair of roofs meets, named."""
    return [
        {
            "source": roof_tag(roof),
            "x": roof.ridge_flops_per_byte,
            "y": roof.flops_per_s,
            "bytes": roof.bytes_per_s,
            "label": f"ridge {significant(roof.ridge_flops_per_byte)} ({roof_tag(roof)})",
        }
        for roof in roofs
    ]


def end_rows(ends: tuple[Place, Place]) -> list[Row]:
    """Return the two corners of the chart."""
    return [{"x": x, "y": y} for x, y in ends]


def axis_ends(places: Iterable[Place], roofs: Iterable[Ceilings]) -> tuple[Place, Place]:
    """Return the corners of the chart in whole powers of ten: all points, and beyond the ridge."""
    roofs = tuple(roofs)
    points = [place for place in places if min(place) > 0]
    xs = [x for x, _ in points] + [LEAST_INTENSITY * 2, MOST_INTENSITY / 20]
    xs += [roof.ridge_flops_per_byte * ROOM for roof in roofs]
    low, high = _decade_below(min(xs)), _decade_above(max(xs))
    ys = [y for _, y in points] or [attainable_flops_per_s(roof, low) for roof in roofs]
    ys += [roof.flops_per_s * 1.5 for roof in roofs]
    if not ys:
        return (low, 1e9), (high, 1e12)
    return (low, _decade_below(min(ys) / 1.5)), (high, _decade_above(max(ys)))


def caption(events: Sequence[StepEvent], info: RunInfo, part: Part) -> str:
    """Return where the newest point is, in a line or two."""
    if not events:
        return "No step yet."
    if not info.shape.matrices:
        return NOT_COUNTED
    newest = next((e for e in reversed(events) if part_seconds(e, part) is not None), None)
    if newest is None:
        return NOT_SPLIT
    row = _point_row(newest, info, part)
    if row is None:
        return "This step moved nothing that was counted."
    name = newest.phase.value.capitalize()
    where = f"{name}: {amount(_float(row['x']), 'FLOP/byte')}"
    if part is Part.STEP:
        where += f", {significant(_float(row['y']) / 1e9)} GFLOP/s"
    point = points_of(newest, info, part)
    if point is None:
        return f"{where}. {NOT_MEASURED}"
    return f"{where}, {_standing(point, info)}{_named(newest, part, info.attention)}"


def alarms(events: Iterable[StepEvent], info: RunInfo) -> dict[str, str]:
    """Return what is said of the newest point above a roof, by part; nothing without such a one."""
    said: dict[str, str] = {}
    for event in events:
        for part in Part:
            point = points_of(event, info, part)
            if point is not None and point.alarm:
                said[part.value] = f"{_NAMES[part]} {event.index} {point.alarm}."
    return said


def roofs_version(info: RunInfo) -> str:
    """Return a text that differs wherever the measured roofs of a run do; empty without roofs."""
    roofs = info.ceilings
    return "" if roofs is None else f"{roofs.flops_per_s:.6g} {roofs.bytes_per_s:.6g}"


def lower_bound_s(event: StepEvent, info: RunInfo) -> float | None:
    """Return the least time of a step under the measured roofs; None where that is unknown."""
    point = points_of(event, info, Part.STEP)
    return None if point is None else point.lower_bound_s


@lru_cache(maxsize=4096)
def _counted(shape: ModelShape, rows: tuple[tuple[int, int], ...]) -> StepCost:
    return step_cost(shape, rows)


def _standing(point: RooflinePoint, info: RunInfo) -> str:
    """Return how far below which roof a point is."""
    is_right = info.ceilings is not None and (
        point.flops_per_byte >= info.ceilings.ridge_flops_per_byte
    )
    roof = "compute" if is_right else "memory"
    verdict = {
        Bound.OVERHEAD: "overhead-bound",
        Bound.MEMORY: "memory-bound",
        Bound.COMPUTE: "compute-bound",
    }[point.bound]
    return f"{share(point.roof_ratio)} of the {roof} roof: {verdict}"


def _named(event: StepEvent, part: Part, attention: str) -> str:
    """Return what must be known to read the point."""
    if event.cold:
        return " (cold step)."
    if part is Part.ATTENTION:
        return f"; counted for causal attention; computed with {attention}."
    if event.observed and part is Part.STEP:
        return " (observed step)."
    return " (disturbed by other programs)." if is_disturbed(event) else "."


def _point_row(event: StepEvent, info: RunInfo, part: Part) -> Row | None:
    """Return the row of one step's part; None where it was not timed or cannot be counted."""
    step_time_s = part_seconds(event, part)
    if not step_time_s or not info.shape.matrices:
        return None
    work = work_of(cost_of(event, info.shape), part)
    if work.bytes_moved <= 0 or work.flops <= 0:
        return None
    point = None if info.ceilings is None else roofline_point(work, step_time_s, info.ceilings)
    return {
        "k": event.index,
        "x": _short(work.flops / work.bytes_moved),
        "y": _short(work.flops / step_time_s),
        "phase": event.phase.value,
        "kind": kind_of(event, part),
        "pct": None if point is None else percent(point.roof_ratio),
    }


def kind_of(event: StepEvent, part: Part) -> str:
    """Return how a point's time must be read."""
    if event.cold:
        return "cold"
    if event.observed and part is Part.STEP:
        return "observed"
    return "disturbed" if is_disturbed(event) else "warm"


def _typical_places(events: Sequence[StepEvent], info: RunInfo, part: Part) -> list[Place]:
    """Return places that span the points: each phase's first and newest step, fast and slow.

    Counting every step anew for each frame would cost more with every step.
    """
    if not info.shape.matrices:
        return []
    places: list[Place] = []
    for phase in Phase:
        timed = [
            (event, step_time_s)
            for event in events
            if event.phase is phase and (step_time_s := part_seconds(event, part))
        ]
        step_times_s = [step_time_s for _, step_time_s in timed]
        for event, _ in timed[:1] + timed[-1:]:
            work = work_of(cost_of(event, info.shape), part)
            if work.bytes_moved > 0:
                x = work.flops / work.bytes_moved
                places += [
                    (x, work.flops / step_time_s)
                    for step_time_s in (min(step_times_s), max(step_times_s))
                ]
    return places


def _short(value: float) -> float:
    """Return a number with as many digits as a chart can show."""
    return float(f"{value:.{DIGITS}g}")


def _float(cell: float | str | None) -> float:
    """Return a cell that is known to hold a number."""
    return float(cell or 0.0)


def _decade_below(value: float) -> float:
    return 10.0 ** floor(log10(value))


def _decade_above(value: float) -> float:
    return 10.0 ** ceil(log10(value))
