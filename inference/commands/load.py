"""``python -m inference load``: many requests to an engine at an address, and what came."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from inference.commands import INTERRUPTED, Subparsers, write_stdout
from inference.commands.endpoint_arguments import (
    add_key_argument,
    add_silence_argument,
    check_silence,
    endpoint_of,
    info_lines,
    stop_on_termination,
)
from inference.commands.prompts import add_column_argument
from inference.records.arrivals import LoadPlan, RemoteRun, Spacing
from inference.records.errors import EndpointError, InputError
from inference.records.status import RunState
from inference.storage.named_files import check_named_file

if TYPE_CHECKING:  # the wire's library is not on every GPU machine
    from inference.figures.loads import Limits
    from inference.remote.address import Endpoint
    from inference.remote.growing import EndpointOrder

STDOUT = "-"
MOST_REQUESTS = 100_000


def add_parser(subparsers: Subparsers) -> None:
    """Add the ``load`` command."""
    parser = subparsers.add_parser(
        "load", help="send many requests to an engine at an address and measure what comes"
    )
    parser.add_argument("--endpoint", required=True, metavar="URL", help="where the engine is")
    add_key_argument(parser)
    parser.add_argument("--model", help="the only one on the server's list if not given")
    prompts = parser.add_mutually_exclusive_group(required=True)
    prompts.add_argument("--prompt", action="append", help="a prompt; may be repeated")
    prompts.add_argument("--prompts", type=Path, help="a file of prompts, as for run")
    add_column_argument(parser)
    loops = parser.add_mutually_exclusive_group(required=True)
    loops.add_argument(
        "--concurrency",
        metavar="N[,N...]",
        help="closed loop: this many requests at a time, one load for each number",
    )
    loops.add_argument(
        "--rate", metavar="R[,R...]", help="open loop: this many requests a second, likewise"
    )
    parser.add_argument(
        "--spacing",
        choices=[Spacing.CONSTANT.value, Spacing.POISSON.value],
        default=Spacing.POISSON.value,
        help="with --rate: equal distances or random ones",
    )
    parser.add_argument("--requests", type=int, default=32, help="measured ones of each load")
    parser.add_argument(
        "--warm-up", type=int, help="requests before them in the same loop; one for each at a time"
    )
    parser.add_argument(
        "--cold", action="store_true", help="begin each prompt with words of its own"
    )
    add_generation_arguments(parser)
    add_silence_argument(parser)
    parser.add_argument("--ttft-limit", type=float, metavar="S", help="longest TTFT that is good")
    parser.add_argument("--tpot-limit", type=float, metavar="S", help="longest TPOT that is good")
    parser.add_argument("--out", help="run file to write; - for standard output")
    parser.set_defaults(run=run)


def add_generation_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what each request asks for."""
    parser.add_argument("--max-new-tokens", type=int, default=64, help="of each request")
    parser.add_argument("--raw", action="store_true", help="apply no chat template")
    parser.add_argument("--seed", type=int, default=0, help="of tokens and of random distances")
    parser.add_argument("--temperature", type=float, default=0.0, help="0 is greedy")
    parser.add_argument("--top-k", type=int, help="draw from the k likeliest tokens only")
    parser.add_argument("--top-p", type=float, help="draw from this much probability")


def run(args: argparse.Namespace) -> int:
    """Send each load, say its figures as it ends, and write the run file."""
    from inference.commands.load_lines import load_lines  # noqa: PLC0415  as above
    from inference.commands.run_endpoint import endpoint_order  # noqa: PLC0415

    plans, limits = _plans(args), _limits(args)
    check_silence(args.silence)
    if args.out not in {None, STDOUT}:
        check_named_file(Path(args.out))
    order = endpoint_order(args)
    endpoint = endpoint_of(args.endpoint, args.key_env)
    runs, is_stopped = asyncio.run(_run_all(endpoint, order, plans))
    if args.out is not None and runs:
        _save(runs, args.out)
    lines = [line for one in runs for line in load_lines(one, limits)]
    stream = sys.stderr.write if args.out == STDOUT else write_stdout
    stream("".join(f"{line}\n" for line in lines))
    _check_any_finished(runs, is_stopped=is_stopped)
    return INTERRUPTED if is_stopped else 0


def _check_any_finished(runs: Sequence[RemoteRun], *, is_stopped: bool) -> None:
    """Raise EndpointError where no request came to its end, with what the last one says."""
    requests = [request for one in runs for request in one.requests]
    if requests and not is_stopped and all(one.state is not RunState.DONE for one in requests):
        raise EndpointError(requests[-1].message)


async def _run_all(
    endpoint: Endpoint, order: EndpointOrder, plans: Sequence[LoadPlan]
) -> tuple[list[RemoteRun], bool]:
    """Return the loads up to the one that was stopped, and whether one was."""
    from inference.remote.connection import Wire  # noqa: PLC0415  as above
    from inference.remote.growing import opened  # noqa: PLC0415
    from inference.remote.load import LoadOrder, recorded_load  # noqa: PLC0415
    from inference.remote.tries import taken_extras  # noqa: PLC0415

    runs: list[RemoteRun] = []
    async with Wire(endpoint) as wire:
        info, asks = await opened(wire, order)
        sys.stderr.writelines(f"{line}\n" for line in info_lines(info))
        stop_on_termination()
        order_of_load = LoadOrder(
            asks=asks,
            engine=info.engine,
            extras=taken_extras(info),
            silence_s=order.silence_s,
        )
        for plan in plans:
            sys.stderr.write(f"{_named(plan)}\n")
            run, is_stopped = await recorded_load(wire, info, plan, order_of_load)
            if run is not None:
                runs.append(run)
            if is_stopped:
                return runs, True
    return runs, False


def _plans(args: argparse.Namespace) -> list[LoadPlan]:
    """Return a plan for each number given.

    Raises:
        InputError: A number is none that can be sent.
    """
    if not 1 <= args.requests <= MOST_REQUESTS:
        msg = f"--requests is {args.requests}; give 1 to {MOST_REQUESTS:,}"
        raise InputError(msg)
    if args.warm_up is not None and not 0 <= args.warm_up <= MOST_REQUESTS:
        msg = f"--warm-up is {args.warm_up}; give 0 to {MOST_REQUESTS:,}"
        raise InputError(msg)
    from inference.remote.load_plans import LoadChoice, plans_for  # noqa: PLC0415  as above

    is_closed = args.concurrency is not None
    return plans_for(
        LoadChoice(
            spacing=Spacing.CLOSED if is_closed else Spacing(args.spacing),
            numbers=args.concurrency if is_closed else args.rate,
            name="--concurrency" if is_closed else "--rate",
            requests=args.requests,
            warm_up=args.warm_up,
            seed=args.seed,
            is_cold=args.cold,
        )
    )


def _limits(args: argparse.Namespace) -> Limits | None:
    from inference.figures.loads import Limits  # noqa: PLC0415  with the command's others

    given = (args.ttft_limit, args.tpot_limit)
    if given == (None, None):
        return None
    if None in given or not all(limit > 0 for limit in given):
        msg = "goodput needs both --ttft-limit and --tpot-limit, in seconds above 0"
        raise InputError(msg)
    return Limits(ttft_s=args.ttft_limit, tpot_s=args.tpot_limit)


def _named(plan: LoadPlan) -> str:
    kind = (
        f"{plan.concurrency} at a time"
        if plan.concurrency is not None
        else f"{plan.rate_per_s:g} a second, {plan.spacing.value}"
    )
    return f"sending {plan.warm_up} to warm up and {plan.requests} measured, {kind}"


def _save(runs: Sequence[RemoteRun], out: str) -> None:
    from inference.runs.remote_file import to_json, write  # noqa: PLC0415  after bad input

    if out == STDOUT:
        write_stdout(to_json(runs) + "\n")
    else:
        write(runs, Path(out))
