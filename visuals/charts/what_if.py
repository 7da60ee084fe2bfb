"""What if: a model and a device that are not here, everything counted, as figures and charts.

A decode step's time is drawn by what it goes to, over the batch: weights read once, each sequence's
own K/V, and computing. The largest of memory and computing is the step. No torch.
"""

from __future__ import annotations

from dataclasses import dataclass

import altair as alt

from inference.counting.roofline import attainable_flops_per_s, work_of
from inference.counting.what_if import decode_cost, memory_needed_bytes
from inference.records.costs import Ceilings, StepCost
from inference.records.model import ModelShape
from inference.records.rooflines import Bound, WhatIf, Workload, roof_tag
from inference.records.steps import Part
from visuals.charts.roofline import roofline
from visuals.charts.roofline_rows import axis_ends, end_rows, ridge_rows, roof_rows
from visuals.charts.theme import DASHED, DECODE, HOST, KV, WEIGHTS, Chart, Row, decades, finished
from visuals.charts.units import DASH, amount, gibibytes, milliseconds, scaled, significant

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
SHARES = (("weights", WEIGHTS), ("K/V", KV), ("computing", DECODE))
_STEP = "step"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One counted figure of the page.

    Attributes:
        key: Its name for tests.
        help: What it is and the formula.
    """

    key: str
    label: str
    value: str
    note: str
    help: str


def does_not_fit(answer: WhatIf, memory_bytes: int | None) -> str:
    """Return why no time is given, and how many devices would hold it; empty where one does."""
    if answer.fits is not False or not memory_bytes:
        return ""
    needed = amount(gibibytes(answer.memory_needed_bytes), "GiB")
    devices = -(-answer.memory_needed_bytes // memory_bytes)
    return (
        f"The weights and the K/V take {needed} and do not fit in this device's "
        f"{amount(gibibytes(memory_bytes), 'GiB')}, so no time or rate is given. By their memory "
        f"alone, at least {devices:,} such devices are needed; what passes between them is not "
        "counted here."
    )


def results(answer: WhatIf, workload: Workload, memory_bytes: int | None) -> tuple[Result, ...]:
    """Return the figures in the order of the page, each counted."""
    held = amount(gibibytes(memory_bytes), "GiB")
    fits = {None: "", True: f"fits in {held}", False: f"does not fit in {held}"}[answer.fits]
    rows = f"{workload.batch:,} \u00d7 {workload.prompt_tokens:,} tokens"
    if answer.fits is False:  # a step that cannot be run has no time
        return _without_times(answer, fits)
    return (
        Result(
            key="ttft",
            label="Time to first token (TTFT), at least",
            value=_time(answer.ttft_s),
            note=f"{_verdict(answer.prefill_bound)}: {rows}",
            help="One step that feeds all prompts: the longer of computing and moving.",
        ),
        Result(
            key="itl",
            label="Inter-token latency (ITL), at least",
            value=_time(answer.itl_s),
            note=f"{_verdict(answer.decode_bound)}: L = {workload.context_tokens:,}",
            help="One decode step of the batch: the longer of computing and moving.",
        ),
        Result(
            key="sequence_rate",
            label="Each sequence, at most",
            value=amount(answer.sequence_tokens_per_s, "tok/s"),
            note="during decode",
            help="1 / ITL.",
        ),
        Result(
            key="batch_rate",
            label="Whole batch, at most",
            value=amount(answer.batch_tokens_per_s, "tok/s"),
            note=f"{workload.batch:,} in a batch",
            help="Batch / ITL.",
        ),
        _memory(answer, fits),
        _intensity(answer),
    )


def _without_times(answer: WhatIf, fits: str) -> tuple[Result, ...]:
    """Return the figures of what does not fit: its memory and its intensity."""
    timed = (
        ("ttft", "Time to first token (TTFT), at least"),
        ("itl", "Inter-token latency (ITL), at least"),
        ("sequence_rate", "Each sequence, at most"),
        ("batch_rate", "Whole batch, at most"),
    )
    help_text = "A step that does not fit in the device's memory cannot be run there."
    return (
        *(
            Result(key=key, label=label, value=DASH, note="does not fit", help=help_text)
            for key, label in timed
        ),
        _memory(answer, fits),
        _intensity(answer),
    )


def _memory(answer: WhatIf, fits: str) -> Result:
    return Result(
        key="memory",
        label="Memory needed",
        value=amount(gibibytes(answer.memory_needed_bytes), "GiB"),
        note=fits,
        help="All weights, and the K/V of every sequence at the context; work space is extra.",
    )


def _intensity(answer: WhatIf) -> Result:
    return Result(
        key="intensity",
        label="Decode intensity",
        value=amount(answer.decode.flops_per_byte, "FLOP/byte"),
        note=f"ridge {significant(answer.ceilings.ridge_flops_per_byte)}",
        help="Operations per byte moved; left of the ridge a step is memory-bound.",
    )


def turns(answer: WhatIf) -> tuple[str, ...]:
    """Return where the limits turn, a sentence each."""
    prompt, batch = answer.compute_bound_prompt_tokens, answer.compute_bound_batch
    kv = answer.kv_overtakes_batch
    return (
        f"A prompt is compute-bound from **{prompt:,}** tokens on."
        if prompt
        else "A prompt of any length stays memory-bound.",
        f"A decode step at this context is compute-bound from a batch of **{batch:,}** on."
        if batch
        else "A decode step at this context is not compute-bound at any batch size: each sequence "
        "has its own K/V, so the step stays memory-bound.",
        f"A decode step reads more K/V than weights from a batch of **{kv:,}** on."
        if kv
        else "A decode step never reads more K/V than weights, whatever the batch size.",
    )


def whatif_roofline(answer: WhatIf) -> Chart:
    """Return both steps on the device's roofs, where they would be if nothing else held them up."""
    return counted_roofline(
        answer.ceilings, {"prefill": answer.prefill, "decode": answer.decode}, name="whatif"
    )


def counted_roofline(ceilings: Ceilings, steps: dict[str, StepCost], *, name: str) -> Chart:
    """Return counted steps at the height of the roof; keys are phases."""
    rows = [_place(phase, cost, ceilings) for phase, cost in steps.items()]
    ends = axis_ends([(float(row["x"] or 0), float(row["y"] or 0)) for row in rows], [ceilings])
    datasets: dict[str, list[Row]] = {
        name: rows,
        f"{name}_roofs": roof_rows([ceilings], ends),
        f"{name}_ridges": ridge_rows([ceilings]),
        f"{name}_extent": end_rows(ends),
        f"{name}_now": [{**row, "label": f"{row['phase']} (counted)"} for row in rows],
    }
    return roofline(
        name,
        datasets,
        description="Roofline chart, log-log: counted steps.",
        tags=(roof_tag(ceilings),),
        drop=38,
    )


def batch_times(
    shape: ModelShape, ceilings: Ceilings, context_tokens: int, memory_bytes: int | None = None
) -> Chart:
    """Return what a decode step's time goes to over the batches that fit, all counted."""
    base = alt.Chart(alt.NamedData("batch_times"))
    names = [name for name, _ in SHARES]
    lines = base.mark_line(strokeDash=list(DASHED), strokeWidth=2.5).encode(
        x=_batch_axis(),
        y=_time_axis(),
        color=alt.Color(
            "goes_to:N",
            title=None,
            scale=alt.Scale(domain=[*names, _STEP], range=[*(c for _, c in SHARES), HOST]),
            legend=alt.Legend(orient="top"),
        ),
        strokeWidth=alt.condition(f"datum.goes_to === '{_STEP}'", alt.value(5), alt.value(2.5)),
        opacity=alt.condition(f"datum.goes_to === '{_STEP}'", alt.value(0.6), alt.value(1)),
        tooltip=[
            alt.Tooltip("batch:Q"),
            alt.Tooltip("goes_to:N", title="time for"),
            alt.Tooltip("ms:Q", title="ms, counted", format=".4~g"),
        ],
    )
    datasets = {"batch_times": batch_rows(shape, ceilings, context_tokens, memory_bytes)}
    return finished(
        alt.layer(lines),
        datasets,
        description="Line chart, log-log: counted milliseconds of a decode step over the batch.",
    )


def batch_rows(
    shape: ModelShape, ceilings: Ceilings, context_tokens: int, memory_bytes: int | None = None
) -> list[Row]:
    """Return the time for weights, K/V and computing, and of the step, at each batch that fits."""
    rows: list[Row] = []
    for batch in BATCHES:
        if memory_bytes and memory_needed_bytes(shape, batch, context_tokens) > memory_bytes:
            break
        cost = decode_cost(shape, batch, context_tokens)
        linear = work_of(cost, Part.LINEAR)
        attention = work_of(cost, Part.ATTENTION)
        times = {
            "weights": linear.bytes_moved / ceilings.bytes_per_s,
            "K/V": attention.bytes_moved / ceilings.bytes_per_s,
            "computing": cost.flops / ceilings.flops_per_s,
        }
        times[_STEP] = max(times["weights"] + times["K/V"], times["computing"])
        rows += [
            {"batch": batch, "goes_to": name, "ms": milliseconds(seconds)}
            for name, seconds in times.items()
            if seconds > 0
        ]
    return rows


def roofs_text(ceilings: Ceilings) -> str:
    """Return both roofs and their ridge, and whether they are measured, published or entered."""
    return (
        f"{scaled(ceilings.flops_per_s, 'FLOP/s')}, {scaled(ceilings.bytes_per_s, 'B/s')}, "
        f"ridge {amount(ceilings.ridge_flops_per_byte, 'FLOP/byte')} \u00b7 "
        f"**{roof_tag(ceilings)}**"
    )


def _place(phase: str, cost: StepCost, ceilings: Ceilings) -> Row:
    return {
        "k": 0,
        "x": cost.flops_per_byte,
        "y": attainable_flops_per_s(ceilings, cost.flops_per_byte),
        "phase": phase,
        "kind": "counted",
        "pct": None,
    }


def _verdict(bound: Bound) -> str:
    return f"{bound.value}-bound"


def _time(seconds: float) -> str:
    return amount(seconds, "s") if seconds >= 1 else amount(milliseconds(seconds), "ms")


def _batch_axis() -> alt.X:
    scale = alt.Scale(type="log", base=2, nice=False)
    axis = alt.Axis(values=list(BATCHES), format=",d", grid=False)
    return alt.X("batch:Q", title="sequences in the batch", scale=scale, axis=axis)


def _time_axis() -> alt.Y:
    axis = decades("format(datum.value, ',~g')")
    return alt.Y("ms:Q", title="ms per step, counted", scale=alt.Scale(type="log"), axis=axis)
