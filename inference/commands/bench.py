"""``python -m inference bench``: side-by-side figures as JSON or a table."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from inference.commands import Subparsers
from inference.commands.fetch import ProgressLine
from inference.records.errors import InputError
from inference.records.status import LoadStage

if TYPE_CHECKING:  # torch takes seconds to import, and how many is one of the figures
    from inference.models.loading import LoadedModel

NEW_TOKENS = 32
LONGEST_LLAMA_S = 600
NO_PAGE = "the page was not measured: it starts with the default model, dtype and device"


def add_parser(subparsers: Subparsers) -> None:
    """Add the ``bench`` command."""
    parser = subparsers.add_parser(
        "bench", help="measure decode side by side with the library's generate and a bare loop"
    )
    parser.add_argument(
        "--model", default="default", help="default, a catalogue or hub id, a folder, a .gguf file"
    )
    parser.add_argument("--dtype", default="auto", help="auto, float32, bfloat16, float16, float64")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N, mps")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, no 8,192 tokens")
    parser.add_argument("--rounds", type=int, help="turns of each subject")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--llama-bench", type=Path, help="llama.cpp's llama-bench, to compare with")
    parser.add_argument("--gguf", type=Path, help="the same weights for llama-bench")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure everything and print it."""
    check_arguments(args)
    progress = ProgressLine(sys.stderr)
    try:
        report = _measured(args, progress)
    finally:
        progress.close()
    text = json.dumps(report, indent=2, ensure_ascii=False) if args.json else as_table(report)
    sys.stdout.write(f"{text}\n")
    return 0


def check_arguments(args: argparse.Namespace) -> None:
    """Pass when the arguments can be measured with.

    Raises:
        InputError: One is missing or out of range.
    """
    if args.rounds is not None and args.rounds < 1:
        msg = f"{args.rounds} rounds; take 1 or more"
        raise InputError(msg)
    if (args.llama_bench is None) != (args.gguf is None):
        msg = "give both --llama-bench and --gguf, or neither"
        raise InputError(msg)
    for path in (args.llama_bench, args.gguf):
        if path is not None and not path.is_file():
            msg = f"there is no file {path}; give its path"
            raise InputError(msg)


def _measured(args: argparse.Namespace, progress: ProgressLine) -> dict[str, Any]:
    before = os.getloadavg()
    began_s = perf_counter()
    from inference.bench import page as page_bench  # noqa: PLC0415  torch, only once it is needed
    from inference.bench import sections  # noqa: PLC0415
    from inference.calibration.ceilings import machine_name  # noqa: PLC0415
    from inference.calibration.ceilings_store import ceilings_for  # noqa: PLC0415
    from inference.engine.clock import clock_for  # noqa: PLC0415

    stages = [("importing torch and transformers", perf_counter() - began_s)]
    loaded = _load(args, progress, stages)

    def tell(ratio: float, text: str) -> None:
        progress.show(LoadStage(stage=text, ratio=ratio))

    device, dtype = loaded.model.device, loaded.model.dtype
    clock = clock_for(device)
    plan = sections.QUICK if args.quick else sections.FULL
    plan = replace(plan, rounds=args.rounds or plan.rounds)
    measured = ceilings_for(device, dtype, tell, is_fresh=not args.quick)
    roof = measured.ceilings.bytes_per_s if measured is not None else None
    contexts = sections.measure_contexts(loaded, clock, plan, roof, tell)
    batches = sections.measure_batches(loaded, clock, plan, tell)
    sweep = sections.measure_sweep(loaded, clock, plan, measured, tell)
    tell(0.0, "memory that a step keeps")
    kept_bytes = sections.bytes_per_step(loaded, clock)
    tell(0.0, "the page, with nobody, a viewer and a browser")
    is_default = (args.model, args.dtype, args.device) == ("default", "auto", "auto")
    page = page_bench.measure_page(plan.page_rounds) if is_default else NO_PAGE
    figures = None if isinstance(page, str) else page
    targets = sections.targets(contexts, batches, kept_bytes) + page_bench.page_targets(figures)
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine_name(device),
        "load_average": {"before": before, "after": os.getloadavg()},
        "versions": {name: importlib.metadata.version(name) for name in ("torch", "transformers")},
        "model": loaded.model_id,
        "dtype": str(dtype).removeprefix("torch."),
        "kernels": loaded.kernels,
        "plan": asdict(plan),
        "memory_roof_bytes_per_s": roof,
        "load_stages_s": dict(stages),
        "decode": sections.as_values(contexts),
        "batch": sections.as_values(batches),
        "sweep": sweep,
        "bytes_kept_per_step": kept_bytes,
        "page": None if figures is None else asdict(figures),
        "llama_cpp_tokens_per_s": _llama(args),
        "targets": sections.as_values(targets),
        "not_measured": page if isinstance(page, str) else "",
    }


def _load(
    args: argparse.Namespace, progress: ProgressLine, stages: list[tuple[str, float]]
) -> LoadedModel:
    """Load the model and note how long each stage took."""
    from inference.models.loading import load_model  # noqa: PLC0415  see above

    noted: list[tuple[str, float]] = []

    def note(stage: LoadStage) -> None:
        if not noted or noted[-1][0] != stage.stage:
            noted.append((stage.stage, perf_counter()))
        progress.show(stage)

    loaded = load_model(args.model, dtype=args.dtype, device=args.device, on_stage=note)
    ends = [moment for _, moment in noted[1:]]
    stages += [(name, end - began) for (name, began), end in zip(noted, ends, strict=False)]
    return loaded


def _llama(args: argparse.Namespace) -> float | None:
    """Return llama.cpp's decode rate on the given weights; None when none are given.

    Raises:
        InputError: It failed, or said nothing that can be read.
    """
    if args.llama_bench is None:
        return None
    asked = ("-m", str(args.gguf), "-p", "0", "-n", str(NEW_TOKENS), "-t", str(os.cpu_count()))
    try:
        ended = subprocess.run(
            (str(args.llama_bench), *asked, "-o", "json"),
            capture_output=True,
            check=True,
            timeout=LONGEST_LLAMA_S,
        )
    except (OSError, subprocess.SubprocessError) as error:
        msg = f"{args.llama_bench} failed ({error}); try it by hand with {' '.join(asked)}"
        raise InputError(msg) from error
    return llama_rate(ended.stdout.decode(errors="replace"))


def llama_rate(text: str) -> float:
    """Return the tokens per second of generation in llama-bench's JSON.

    Raises:
        InputError: There are none in it.
    """
    try:
        tests = json.loads(text)
        return next(float(test["avg_ts"]) for test in tests if test["n_gen"])
    except (ValueError, KeyError, TypeError, StopIteration) as error:
        msg = "llama-bench printed no rate of generation; is it a recent one?"
        raise InputError(msg) from error


def as_table(report: dict[str, Any]) -> str:
    """Return the report as text for a terminal."""
    load = report["load_average"]
    lines = [
        f"{report['model']}, {report['dtype']}, {report['machine']}, {report['measured_at']}",
        f"load average {load['before'][0]:.1f} before, {load['after'][0]:.1f} after",
        f"kernels: {report['kernels']}",
        "",
        "decode of one row, tokens/s (quartiles), and how many times as fast the engine is",
    ]
    for one in report["decode"]:
        lines.append(f"  {one['context']:,} tokens of context")
        for name, rate in one["tokens_per_s"].items():
            ratio = one["ratios"].get(name)
            times = f"  {_spread(ratio)} times" if ratio else ""
            lines.append(f"    {name:<29}{_spread(rate):<28} {times}".rstrip())
        if one["roof_ratio"]:
            lines.append(f"    share of the memory roof {_spread(one['roof_ratio'])}")
    lines += ["", "batches, all rows' tokens/s with kernels, without, and by that of one row"]
    lines += [
        f"  {one['rows']:>3} rows  {_spread(one['tokens_per_s']):<28} "
        f"{_spread(one['plain_tokens_per_s']):<28} {_spread(one['ratio_to_one_row'])} times"
        for one in report["batch"]
    ]
    lines += ["", "batch by context: measured step, the least it could take, all rows' tokens/s"]
    lines += [
        f"  {one['rows']:>3} rows of {one['context']:>5,} tokens  {one['step_s'] * 1e3:7.1f} ms  "
        f"{_milliseconds(one['least_s']):>10}  {one['tokens_per_s']:7.1f} tokens/s"
        for one in report["sweep"]
    ]
    lines += _page_lines(report["page"])
    lines += ["", "load, s"]
    lines += [f"  {name:<44}{seconds:.2f}" for name, seconds in report["load_stages_s"].items()]
    if report["llama_cpp_tokens_per_s"] is not None:
        lines += ["", f"llama.cpp {report['llama_cpp_tokens_per_s']:.1f} tokens/s"]
    lines += ["", *_targets(report["targets"])]
    return "\n".join([*lines, report["not_measured"]] if report["not_measured"] else lines)


def _milliseconds(seconds: float | None) -> str:
    return "not known" if seconds is None else f"{seconds * 1e3:.1f} ms"


def _page_lines(page: dict[str, Any] | None) -> list[str]:
    if page is None:
        return []
    lines = ["", "a run on the page, tokens/s: nobody watching, a viewer, a browser"]
    lines += [f"  {way:<12}{_spread(rate)}" for way, rate in page["tokens_per_s"].items()]
    frames = page["frame_bytes"]
    lines.append(
        f"  {frames['frames']:,} frames, {frames['median']:,.0f} bytes in the median, "
        f"{frames['largest']:,} at most"
    )
    started = ", ".join(f"{name} {seconds:.1f}" for name, seconds in page["start_s"].items())
    return [*lines, f"  start, s: {started}"]


def _targets(targets: Sequence[dict[str, Any]]) -> list[str]:
    from inference.bench.rounds import Spread, Target, table  # noqa: PLC0415  small, used here only

    return table(
        [
            Target(
                name=one["name"],
                wanted=one["wanted"],
                found=None if one["found"] is None else Spread(**one["found"]),
                is_at_most=one["is_at_most"],
            )
            for one in targets
        ]
    ).splitlines()


def _spread(spread: dict[str, float]) -> str:
    return f"{spread['median']:.3g} ({spread['low']:.3g} to {spread['high']:.3g})"
