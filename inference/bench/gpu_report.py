"""One pass over a device that checks what the program says of it, and records runs on the way.

Needs torch, transformers, psutil and nvidia-ml-py, a model folder, and no network. The model in its
usual dtype comes first; the float32 checks, which need twice its room and a copy on the CPU, last.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from inference.bench.gpu_checks import (
    allocator_of,
    cache_bytes,
    roofs_in_bounds,
    same_as_eager,
    same_ids,
    step_times_fill_the_wall,
)
from inference.bench.gpu_plan import (
    ROOFS_S,
    UNKNOWN_PACE,
    Pace,
    batch_s,
    float32_load_s,
    host_s,
    reductions,
    replay_s,
    sized,
    speed_s,
    wall_s,
)
from inference.bench.gpu_report_text import Report, ReportRequest, report_text
from inference.bench.gpu_session import FLOAT32, USUAL, Session, Stage, Surroundings, carry_out
from inference.bench.gpu_setup import Bench, decoding
from inference.bench.gpu_sizes import Sizes
from inference.bench.gpu_speeds import (
    batch_speeds,
    library_speed,
    pace_of,
    reading_cost_s,
    speed_of,
)
from inference.calibration.ceilings import measure_ceilings
from inference.engine.float32_products import exact_float32
from inference.engine.loop import GenerationOptions
from inference.models.devices import DTYPES, choose_device
from inference.models.loading import OnStage
from inference.records.errors import BackendError, InputError
from inference.records.options import DecodeMode
from inference.runs.plain_run_file import plain, write_run_file
from inference.storage.named_files import check_named_file, write_named_file

logger = logging.getLogger(__name__)
MODES = (DecodeMode.EAGER, DecodeMode.GRAPH)
LEAST_COMPARED_TOKENS = 4
RUN_FILE, SWEEP_FILE, REPORT_FILE, DATA_FILE = (
    "device-run.json.gz",
    "device-batch-sweep.json.gz",
    "report.md",
    "report.json",
)


def make_report(
    subject: ReportRequest,
    sizes: Sizes,
    folder: Path,
    on_stage: OnStage,
    surroundings: Surroundings | None = None,
) -> Report:
    """Measure, and return the report; it and the recorded runs are written after each stage.

    Raises:
        InputError, OutOfMemoryError: The model, the device or the folder cannot be used.
    """
    return report_of(
        stages_of(subject),
        Session(subject, sizes, on_stage, surroundings or Surroundings()),
        folder,
    )


def report_of(stages: Sequence[Stage], session: Session, folder: Path) -> Report:
    """Go through the stages and return the report, as ``make_report``."""
    _make_folder(folder)
    report = session.report(pending=tuple(stage.name for stage in stages))
    for done, stage in enumerate(stages, start=1):
        carry_out(stage, session)
        report = session.report(pending=tuple(later.name for later in stages[done:]))
        _keep(folder, report, session)
    session.free()
    return report


def stages_of(subject: ReportRequest) -> tuple[Stage, ...]:
    """Return what is done for a report, in order."""
    modes = (*MODES, DecodeMode.COMPILED) if subject.has_compiled else MODES
    recorded = [mode for mode in modes if mode is not DecodeMode.EAGER]
    return (
        Stage(
            name="the model in the device's usual dtype",
            run=_load,
            dtype="",
            is_first=True,
        ),
        Stage(name="the time of one step", run=_time_one_step),
        Stage(name="bytes of the cache", run=_cache_bytes),
        Stage(name="step times against wall time", run=_wall, needs_s=_needs(wall_s)),
        Stage(
            name="roofs", run=_roofs, needs_s=lambda _session: ROOFS_S, dtype=""
        ),
        *(
            Stage(
                name=f"{mode} steps against eager ones",
                run=partial(_replay, mode),
                needs_s=_needs(replay_s),
            )
            for mode in recorded
        ),
        Stage(
            name="speed of the library's generate()",
            run=_library,
            needs_s=_needs(partial(speed_s, mode=DecodeMode.EAGER)),
        ),
        *(_speed_stage(name, options) for name, options in _ways(modes)),
        Stage(name="batches", run=_batches),
        Stage(name="the cost of telemetry", run=_telemetry),
        Stage(
            name="the model in float32",
            run=_load_float32,
            dtype="",
            needs_s=lambda session: float32_load_s(session.pace) if session.pace else 0.0,
        ),
        Stage(
            name="graph steps against eager ones, float32",
            run=_replay_float32,
            dtype=FLOAT32,
            needs_s=_needs(replay_s),
        ),
        Stage(
            name="ids on the device against the CPU's, float32",
            run=_same_ids,
            dtype=FLOAT32,
            needs_s=lambda session: host_s(session.pace) if session.pace else 0.0,
        ),
    )  # fmt: skip


def _ways(modes: Sequence[DecodeMode]) -> list[tuple[str, GenerationOptions]]:
    growing = ("eager, growing cache", GenerationOptions())
    return [growing, *((f"{mode}, static cache", decoding(mode)) for mode in modes)]


def _speed_stage(name: str, options: GenerationOptions) -> Stage:
    return Stage(
        name=f"speed of {name}",
        run=partial(_speed, name, options),
        needs_s=_needs(partial(speed_s, mode=options.decode)),
    )


def _needs(estimate: Callable[..., float]) -> Callable[[Session], float]:
    """Return a stage's estimate by the session's pace; nothing while that is not known."""

    def needs_s(session: Session) -> float:
        return 0.0 if session.pace is None else estimate(session.pace, session.sizes)

    return needs_s


def _bench(session: Session) -> Bench:
    if session.bench is None:
        msg = "no model is loaded; load one first"
        raise BackendError(msg)
    return session.bench


def _load(session: Session) -> None:
    bench = session.load(session.subject.device, "auto")
    session.use(bench, USUAL)
    loaded = bench.loaded
    session.found = (loaded.device, loaded.device_note)
    session.model_id = loaded.model_id


def _time_one_step(session: Session) -> None:
    bench = _bench(session)
    load_s, full = session.seconds, session.sizes

    def choose(pace: Pace) -> None:
        if full.is_timed:
            session.sizes = sized(full, pace, session.left_s, bench.room_tokens)
            session.left_out = reductions(full, session.sizes)

    choose(replace(UNKNOWN_PACE, load_s=load_s))  # for what comes after, should timing fail
    session.pace = pace_of(bench, load_s)
    choose(session.pace)


def _cache_bytes(session: Session) -> None:
    bench = _bench(session)
    session.checks.append(cache_bytes(bench, allocator_of(bench.device)))


def _wall(session: Session) -> None:
    session.checks.append(step_times_fill_the_wall(_bench(session), session.sizes))


def _roofs(session: Session) -> None:
    bench = session.bench
    if bench is None:
        device, dtype = choose_device(session.subject.device, "auto")
    else:
        device, dtype = bench.device, DTYPES[bench.loaded.device.dtype]
    roofs = measure_ceilings(device, dtype, plan=session.sizes.plan(device))
    if roofs is None:
        return
    session.ceilings = roofs.ceilings
    session.checks.append(roofs_in_bounds(roofs))
    if bench is not None:
        bench.headless.ceilings = roofs.ceilings


def _replay(mode: DecodeMode, session: Session, precision: str = "") -> None:
    session.checks.append(same_as_eager(_bench(session), mode, session.sizes, precision))


def _library(session: Session) -> None:
    session.speeds.append(library_speed(_bench(session), session.sizes))


def _speed(name: str, options: GenerationOptions, session: Session) -> None:
    def has_time(seconds: float) -> bool:
        return seconds <= session.left_s

    speed, runs = speed_of(_bench(session), session.sizes, name, options, has_time)
    session.speeds.append(speed)
    session.runs += runs


def _batches(session: Session) -> None:
    """Measure batches in the way to decode that was fastest."""

    def has_time(rows: int) -> bool:
        if session.pace is None:
            return session.left_s > 0
        return batch_s(session.pace, session.sizes, rows) <= session.left_s

    options = decoding(_best_mode(session))
    for batch in batch_speeds(_bench(session), session.sizes, options, has_time):
        session.batches.append(batch)


def _best_mode(session: Session) -> DecodeMode:
    """Return the way to decode that was fastest, of those that take a static cache."""
    rates = {speed.name: speed.decode_tokens_per_s for speed in session.speeds}
    return max(DecodeMode, key=lambda mode: rates.get(f"{mode}, static cache") or 0.0)


def _telemetry(session: Session) -> None:
    session.reading_cost_s, session.unread = reading_cost_s(_bench(session))


def _load_float32(session: Session) -> None:
    device = session.subject.device if session.bench is None else str(session.bench.device)
    session.free()  # both together may not fit
    session.use(session.load(device, FLOAT32), FLOAT32)


def _replay_float32(session: Session) -> None:
    with exact_float32():
        _replay(DecodeMode.GRAPH, session, "float32 without TF32")


def _same_ids(session: Session) -> None:
    """Compare as many ids as there is time for; the CPU sets the pace."""
    host = session.load("cpu", FLOAT32)
    try:
        session.tell("ids on the device against the CPU's, float32")
        began_s = session.seconds
        host.trace(host.requests(2, 2), GenerationOptions())
        # Of a prompt and two tokens: no later step takes more than half of that.
        step_s = (session.seconds - began_s) / 2
        fitting = session.left_s / step_s - 2 if step_s > 0 else float("inf")
        count = int(min(session.sizes.compared_tokens, fitting))
        if count < min(LEAST_COMPARED_TOKENS, session.sizes.compared_tokens):
            msg = f"the CPU takes {step_s:.1f} s a token and {session.left_s:.0f} s are left"
            raise InputError(msg)
        with exact_float32():
            session.checks.append(same_ids(_bench(session), host, count))
    finally:
        host.close()


def _make_folder(folder: Path) -> None:
    """Make the folder, or what a link leads to, and see that its files can be written."""
    try:
        Path(os.path.realpath(folder)).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"{folder} cannot be made ({error.strerror}); give a folder that can be written"
        raise InputError(msg) from error
    for name in (RUN_FILE, SWEEP_FILE, REPORT_FILE, DATA_FILE):
        check_named_file(folder / name)


def _keep(folder: Path, report: Report, session: Session) -> None:
    """Write what there is; a disk that is full costs what is on it and not what is printed."""
    try:
        write_named_file(folder / REPORT_FILE, report_text(report).encode())
        write_named_file(folder / DATA_FILE, json.dumps(plain(report), indent=1).encode())
        sweep = [batch.trace for batch in session.batches if batch.trace is not None]
        if len(session.runs) + len(sweep) == session.kept_runs:
            return
        if session.runs:
            write_run_file(session.runs, folder / RUN_FILE)
        if sweep:
            write_run_file(sweep, folder / SWEEP_FILE)
        session.kept_runs = len(session.runs) + len(sweep)
    except (OSError, ValueError, InputError):
        logger.exception("the report could not be written to %s", folder)
