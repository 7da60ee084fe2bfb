"""``python -m inference run``: generate without a page and write the run file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from inference.commands import (
    INTERRUPTED,
    Subparsers,
    add_device_arguments,
    add_model_argument,
    write_stdout,
)
from inference.commands.captures import add_capture_argument, check_captures, parsed_capture
from inference.commands.endpoint_arguments import add_key_argument, add_silence_argument
from inference.commands.progress import ProgressLine
from inference.commands.prompts import add_column_argument, read_prompts
from inference.figures.device import notes_of
from inference.figures.latency import latency_summaries
from inference.models.tokenization import TextCodec
from inference.process.messages import LoadModel
from inference.process.orders import RunOrder, build_requests, check_order
from inference.records.attention import AttentionChoice
from inference.records.errors import InputError, TokenByTokenError
from inference.records.latency import LatencySummary
from inference.records.options import (
    AttentionKind,
    BatchPlan,
    CacheKind,
    DecodeMode,
    Padding,
    Policy,
    Sampling,
)
from inference.records.run import RunTrace
from inference.records.status import RunState
from inference.storage.named_files import check_named_file

if TYPE_CHECKING:  # torch takes seconds to import; bad input is answered before that
    from inference.models.loading import LoadedModel

STDOUT = "-"


def add_parser(subparsers: Subparsers) -> None:
    """Add the ``run`` command."""
    parser = subparsers.add_parser("run", help="generate step by step and write a run file")
    add_model_argument(parser)
    prompts = parser.add_mutually_exclusive_group(required=True)
    prompts.add_argument("--prompt", action="append", help="a prompt; may be repeated")
    prompts.add_argument(
        "--prompts",
        type=Path,
        help="a text file with one prompt a line, or CSV, TSV, Parquet, JSON, JSON Lines, with "
        "prompts or conversations as the page's Compare takes them",
    )
    add_column_argument(parser)
    parser.add_argument("--batch", action="store_true", help="run all prompts as one batch")
    add_batch_arguments(parser)
    parser.add_argument("--max-new-tokens", type=int, default=64, help="of each prompt")
    parser.add_argument("--out", required=True, help="run file to write; - for standard output")
    parser.add_argument("--raw", action="store_true", help="apply no chat template")
    add_device_arguments(parser)
    parser.add_argument("--seed", type=int, default=0, help="of the tokens drawn at random")
    parser.add_argument("--temperature", type=float, default=0.0, help="0 is greedy")
    parser.add_argument("--top-k", type=int, help="draw from the k likeliest tokens only")
    parser.add_argument(
        "--top-p", type=float, help="draw from the likeliest tokens that make up this probability"
    )
    add_engine_arguments(parser)
    add_capture_argument(parser)
    add_endpoint_arguments(parser)
    parser.set_defaults(run=run)


def add_engine_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what says how the model computes and stores."""
    parser.add_argument(
        "--plain",
        action="store_true",
        help="compute the model with the library's own code, without the kernels of this program",
    )
    parser.add_argument(
        "--attention",
        choices=[kind.value for kind in AttentionKind],
        default=AttentionKind.AUTO.value,
        help="which implementation computes attention; refused where the model has none such",
    )
    parser.add_argument(
        "--chunk", type=int, metavar="C", help="feed the prompt in chunks of C tokens"
    )
    parser.add_argument(
        "--cache",
        choices=[kind.value for kind in CacheKind],
        default=CacheKind.DYNAMIC.value,
        help="how keys and values are stored",
    )
    parser.add_argument(
        "--decode",
        choices=[mode.value for mode in DecodeMode],
        default=DecodeMode.EAGER.value,
        help="how decode steps are launched; eager where the device or the model has no other way",
    )
    parser.add_argument(
        "--split-every",
        type=int,
        metavar="N",
        help="time linear operations and attention apart in the prefill and every Nth decode step",
    )


def add_endpoint_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what has an engine at an address generate instead."""
    parser.add_argument(
        "--endpoint",
        metavar="URL",
        help="have an engine at an address generate: vLLM, SGLang, llama.cpp, Ollama, transformers "
        "serve, or another with OpenAI routes",
    )
    add_key_argument(parser)
    add_silence_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Run every prompt, write the run file and say what was measured on standard error."""
    check_batch_arguments(args)
    if args.endpoint is not None:
        from inference.commands.run_endpoint import run_at_endpoint  # noqa: PLC0415  as below

        return run_at_endpoint(args)
    order = _order(args)
    check_order(order, is_batch=args.batch)
    captures = tuple(parsed_capture(text) for text in args.capture)
    check_destination(args.out)
    from inference.models.loading import load_model  # noqa: PLC0415  see above

    with ProgressLine() as progress:
        loaded = load_model(
            order.load.model,
            dtype=order.load.dtype,
            device=order.load.device,
            is_plain=order.load.is_plain,
            attention=order.load.attention,
            on_stage=progress.show,
        )
    check_captures(captures, loaded.shape)
    traces = _run_all(order, loaded, captures, is_batch=args.batch)
    kept = [trace for trace in traces if trace.events]
    if kept:
        _save(kept, args.out)
    return _report(traces)


def check_destination(out: str) -> None:
    """Raise InputError unless a run file can be written there."""
    if out != STDOUT:
        check_named_file(Path(out))


def _order(args: argparse.Namespace) -> RunOrder:
    read = () if args.prompt else read_prompts(args.prompts, column=args.column)
    prompts = tuple(args.prompt) if args.prompt else tuple(one.text for one in read)
    return RunOrder(
        prompts=prompts,
        turns=tuple(one.turns for one in read) if any(one.turns for one in read) else (),
        max_new_tokens=args.max_new_tokens,
        sampling=Sampling(temperature=args.temperature, top_k=args.top_k, top_p=args.top_p),
        seed=args.seed,
        is_raw=args.raw,
        load=LoadModel(
            model=args.model,
            dtype=args.dtype,
            device=args.device,
            is_plain=args.plain,
            attention=AttentionKind(args.attention),
        ),
        chunk_tokens=args.chunk,
        cache=CacheKind(args.cache),
        split_every=args.split_every,
        decode=DecodeMode(args.decode),
        plan=BatchPlan(policy=Policy(args.policy), slots=args.slots, padding=Padding(args.padding)),
        arrivals_s=tuple(args.arrival_gap * number for number in range(len(prompts))),
    )


def add_batch_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what says how the prompts of one batch share the device."""
    parser.add_argument(
        "--policy",
        choices=[policy.value for policy in Policy],
        default=Policy.STATIC.value,
        help="with --batch: when a slot takes the next prompt: once all rows are done, or its own",
    )
    parser.add_argument("--slots", type=int, help="with --batch: rows that may run together")
    parser.add_argument(
        "--arrival-gap",
        type=float,
        default=0.0,
        metavar="S",
        help="with --batch: seconds of the run's own time between two prompts' arrivals",
    )
    parser.add_argument(
        "--padding",
        choices=[side.value for side in Padding],
        default=Padding.LEFT.value,
        help="with --batch: on which side the shorter prompts of a static batch are padded",
    )


def check_batch_arguments(args: argparse.Namespace) -> None:
    """Raise InputError where an option needs ``--batch`` and it is not given."""
    of_batch = (args.policy, args.slots, args.arrival_gap, args.padding)
    if not args.batch and of_batch != ("static", None, 0.0, "left"):
        msg = "--policy, --slots, --arrival-gap and --padding describe a batch; add --batch"
        raise InputError(msg)


def _run_all(
    order: RunOrder,
    loaded: LoadedModel,
    captures: Sequence[AttentionChoice],
    *,
    is_batch: bool,
) -> list[RunTrace]:
    """Return the runs of the order up to the first that does not get to its end."""
    from inference.calibration.ceilings_store import saved_ceilings  # noqa: PLC0415  see above
    from inference.checks.subject import subject_of  # noqa: PLC0415
    from inference.process.headless import HeadlessRunner  # noqa: PLC0415
    from inference.process.measurements import device_and_dtype  # noqa: PLC0415
    from inference.process.runner import generation_options  # noqa: PLC0415
    from inference.runs.kept_checks import saved_check  # noqa: PLC0415

    codec = TextCodec.from_files(loaded.tokenizer_files)
    requests = build_requests(order, codec, loaded.context_limit, is_batch=is_batch)
    roofs = saved_ceilings(*device_and_dtype(loaded))
    check = saved_check(subject_of(loaded))
    runner = HeadlessRunner(
        loaded,
        codec,
        None if roofs is None else roofs.ceilings,
        "" if check is None else check.warning,
    )
    traces: list[RunTrace] = []
    for batch in [requests] if is_batch else [(request,) for request in requests]:
        with ProgressLine() as progress:
            trace = runner.run(
                batch,
                seed=order.seed,
                options=generation_options(order),
                on_progress=progress.show,
                captures=captures,
            )
        traces.append(trace)
        if trace.state is not RunState.DONE:
            break
    return traces


def _save(traces: Sequence[RunTrace], out: str) -> None:
    from inference.runs.run_file import to_json, write  # noqa: PLC0415  as fetch

    if out == STDOUT:
        write_stdout(to_json(traces) + "\n")
    else:
        write(traces, Path(out))


def _report(traces: Sequence[RunTrace]) -> int:
    """Say one line a request on standard error; raise what ended a run early."""
    for trace in traces:
        for note in notes_of(trace):
            sys.stderr.write(f"{trace.info.run_id}: {note}\n")
        for summary in latency_summaries(trace):
            ttft, tpot = summary.ttft_s, summary.tpot_s
            sys.stderr.write(
                f"{trace.info.run_id} {summary.request_id}: {summary.output_tokens} tokens"
                f"{'' if ttft is None else f', TTFT {ttft * 1e3:.3g} ms'}"
                f"{'' if tpot is None else f', TPOT {tpot * 1e3:.3g} ms'}"
                f"{reading_aids(summary)}\n"
            )
    last = traces[-1]
    if last.state is RunState.FAILED:
        raise TokenByTokenError(last.message)
    return 0 if last.state is RunState.DONE else INTERRUPTED


def reading_aids(summary: LatencySummary) -> str:
    """Return what is needed to read a request's figures, in brackets; often nothing."""
    left_out = summary.left_out_steps
    aids = [
        "cold" if summary.is_cold else "",
        "TTFT disturbed" if summary.is_ttft_disturbed else "",
        "every step of TPOT disturbed" if summary.is_all_disturbed else "",
        f"TPOT without {left_out} observed or disturbed step{'s' * (left_out != 1)}"
        if left_out
        else "",
    ]
    said = ", ".join(aid for aid in aids if aid)
    return f" ({said})" if said else ""
