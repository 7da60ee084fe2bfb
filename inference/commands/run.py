"""``python -m inference run``: generate without a page and write the run file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from inference.commands import Subparsers
from inference.commands.fetch import ProgressLine
from inference.errors import InputError, TokenByTokenError
from inference.messages import LoadModel
from inference.metrics import latency_summaries
from inference.orders import RunOrder, build_requests, check_order
from inference.records import LoadStage, Request, RunState, RunTrace, Sampling, StepEvent
from inference.text import TextCodec
from inference.traces import to_json, write

if TYPE_CHECKING:  # torch takes seconds to import; bad input is answered before that
    from inference.headless import HeadlessRunner

STDOUT = "-"


def add_parser(subparsers: Subparsers) -> None:
    """Add the ``run`` command."""
    parser = subparsers.add_parser("run", help="generate step by step and write a run file")
    parser.add_argument(
        "--model", default="default", help="default, a catalogue or hub id, a folder, a .gguf file"
    )
    prompts = parser.add_mutually_exclusive_group(required=True)
    prompts.add_argument("--prompt", action="append", help="a prompt; may be repeated")
    prompts.add_argument("--prompts", type=Path, help="a UTF-8 file with one prompt a line")
    parser.add_argument("--batch", action="store_true", help="run all prompts as one batch")
    parser.add_argument("--max-new-tokens", type=int, default=64)
    parser.add_argument("--out", required=True, help="run file to write; - for standard output")
    parser.add_argument("--raw", action="store_true", help="apply no chat template")
    parser.add_argument("--dtype", default="auto", help="auto, float32, bfloat16, float16, float64")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N, mps")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--temperature", type=float, default=0.0, help="0 is greedy")
    parser.add_argument("--top-k", type=int)
    parser.add_argument("--top-p", type=float)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run every prompt, write the run file and say what was measured on standard error."""
    order = _order(args)
    check_order(order)
    check_destination(args.out)
    from inference.headless import HeadlessRunner  # noqa: PLC0415  see above
    from inference.loading import load_model  # noqa: PLC0415

    progress = ProgressLine(sys.stderr)
    try:
        loaded = load_model(
            order.load.model,
            dtype=order.load.dtype,
            device=order.load.device,
            on_stage=progress.show,
        )
    finally:
        progress.close()
    codec = TextCodec.from_files(loaded.tokenizer_files)
    requests = build_requests(order, codec, loaded.context_limit)
    runner = HeadlessRunner(loaded, codec)
    traces: list[RunTrace] = []
    for batch in [requests] if args.batch else [(request,) for request in requests]:
        traces.append(_run_one(runner, batch, order.seed))
        if traces[-1].state is not RunState.DONE:
            break
    _save(traces, args.out)
    return _report(traces)


def check_destination(out: str) -> None:
    """Pass when a file could be written there.

    Raises:
        InputError: The folder does not exist, or the path is a folder.
    """
    path = Path(out)
    if out == STDOUT:
        return
    if path.is_dir():
        msg = f"{out} is a folder; give the name of a file to write"
        raise InputError(msg)
    if not path.parent.is_dir():
        msg = f"the folder {path.parent} does not exist; create it or write elsewhere"
        raise InputError(msg)


def _order(args: argparse.Namespace) -> RunOrder:
    prompts = tuple(args.prompt) if args.prompt else read_prompts(args.prompts)
    return RunOrder(
        prompts=prompts,
        max_new_tokens=args.max_new_tokens,
        sampling=Sampling(temperature=args.temperature, top_k=args.top_k, top_p=args.top_p),
        seed=args.seed,
        is_raw=args.raw,
        load=LoadModel(model=args.model, dtype=args.dtype, device=args.device),
    )


def read_prompts(path: Path) -> tuple[str, ...]:
    """Return the non-empty lines of a UTF-8 file.

    Raises:
        InputError: The file cannot be read, is not UTF-8 or holds no prompt.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        msg = f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8"
        raise InputError(msg) from error
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
        raise InputError(msg) from error
    prompts = tuple(line for line in text.splitlines() if line.strip())
    if not prompts:
        msg = f"{path} holds no prompt; write one a line"
        raise InputError(msg)
    return prompts


def _run_one(runner: HeadlessRunner, batch: Sequence[Request], seed: int) -> RunTrace:
    progress = ProgressLine(sys.stderr)
    most = max(request.max_new_tokens for request in batch)

    def show(event: StepEvent) -> None:
        progress.show(LoadStage(stage="generating", ratio=(event.index + 1) / most))

    try:
        return runner.run(batch, seed=seed, on_event=show)
    finally:
        progress.close()


def _save(traces: Sequence[RunTrace], out: str) -> None:
    if out == STDOUT:
        sys.stdout.write(to_json(traces) + "\n")
    else:
        write(traces, Path(out))


def _report(traces: Sequence[RunTrace]) -> int:
    """Say one line a request on standard error; raise what ended a run early."""
    for trace in traces:
        for summary in latency_summaries(trace):
            ttft, tpot = summary.ttft_s, summary.tpot_s
            sys.stderr.write(
                f"{trace.info.run_id} {summary.request_id}: {summary.output_tokens} tokens"
                f"{'' if ttft is None else f', TTFT {ttft * 1e3:.3g} ms'}"
                f"{'' if tpot is None else f', TPOT {tpot * 1e3:.3g} ms'}"
                f"{' (cold)' if summary.is_cold else ''}\n"
            )
    last = traces[-1]
    if last.state is RunState.FAILED:
        raise TokenByTokenError(last.message)
    return 0 if last.state is RunState.DONE else 130
