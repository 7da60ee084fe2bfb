"""``run --endpoint``: the same command where an engine at an address generates."""

from __future__ import annotations

import argparse
import asyncio
import re
import secrets
import sys
from pathlib import Path

from inference.commands import INTERRUPTED, write_stdout
from inference.commands.endpoint_arguments import (
    check_silence,
    endpoint_of,
    info_lines,
    stop_on_termination,
)
from inference.commands.figure_lines import figure_lines
from inference.commands.prompts import read_prompts
from inference.records.arrivals import RemoteAsk, RemoteRun
from inference.records.errors import EndpointError, InputError, PromptError
from inference.records.options import Sampling
from inference.records.prompts import UploadedPrompt
from inference.records.status import RunState
from inference.remote.address import Endpoint
from inference.remote.connection import Wire
from inference.remote.growing import EndpointOrder, GrowingRun, opened
from inference.storage.named_files import check_named_file

STDOUT = "-"
DEFAULT_MODEL = "default"  # what `run` takes where no model is named
LONE_SURROGATE = re.compile("[\ud800-\udfff]")  # what Python makes of such bytes
MOST_NEW_TOKENS = 1_000_000
# Options of this program's own engine, and what they are when nobody gave them.
OF_THIS_MACHINE = {
    "batch": False,
    "dtype": "auto",
    "device": "auto",
    "plain": False,
    "attention": "auto",
    "chunk": None,
    "cache": "dynamic",
    "decode": "eager",
    "split_every": None,
    "capture": [],
}


def run_at_endpoint(args: argparse.Namespace) -> int:
    """Send every prompt, one after another, write the run file and say what was seen."""
    _check_options(args)
    check_silence(args.silence)
    if args.out != STDOUT:
        check_named_file(Path(args.out))
    order = endpoint_order(args)
    endpoint = endpoint_of(args.endpoint, args.key_env)
    run = asyncio.run(_run(endpoint, order))
    if run.requests:
        _save(run, args.out)
    for request in run.requests:
        sys.stderr.writelines(f"{run.run_id} {line}\n" for line in figure_lines(request))
    return _exit_code(run)


def _check_options(args: argparse.Namespace) -> None:
    """Raise InputError where an option is this program's own engine's, which does not run here."""
    given = [
        f"--{name.replace('_', '-')}"
        for name, default in OF_THIS_MACHINE.items()
        if getattr(args, name) != default
    ]
    if given:
        msg = f"{', '.join(given)} set this program's own engine and say nothing to one at an "
        msg += "address; leave them out"
        raise InputError(msg)


def endpoint_order(args: argparse.Namespace) -> EndpointOrder:
    """Return what the prompts and settings of a command ask for.

    Raises:
        InputError: A setting is none that can be sent, or there is no prompt.
    """
    if not 1 <= args.max_new_tokens <= MOST_NEW_TOKENS:
        msg = f"--max-new-tokens is {args.max_new_tokens}; give 1 to {MOST_NEW_TOKENS:,}"
        raise InputError(msg)
    sampling = Sampling(temperature=args.temperature, top_k=args.top_k, top_p=args.top_p)
    _check_sampling(sampling)
    given = args.prompt
    prompts = (
        [UploadedPrompt(source="", place="", text=text) for text in given]
        if given
        else read_prompts(args.prompts, column=args.column)
    )
    if any(not one.text.strip() for one in prompts):
        msg = "a prompt is empty; write something"
        raise PromptError(msg)
    texts = [*(one.text for one in prompts), args.model or ""]
    texts += [content for one in prompts for _role, content in one.turns]
    if any(LONE_SURROGATE.search(text) for text in texts):
        msg = "a prompt or the model's name holds bytes that are no UTF-8; write it in UTF-8"
        raise PromptError(msg)
    asks = tuple(
        RemoteAsk(
            model_id="",
            prompt_text=one.text,
            turns=() if args.raw else one.turns,
            max_new_tokens=args.max_new_tokens,
            sampling=sampling,
            seed=args.seed,
            is_raw=args.raw,
        )
        for one in prompts
    )
    model = None if args.model == DEFAULT_MODEL else args.model
    return EndpointOrder(asks=asks, model=model, silence_s=args.silence)


def _check_sampling(sampling: Sampling) -> None:
    if not 0 <= sampling.temperature <= 100:  # noqa: PLR2004  beyond it all tokens are alike
        msg = f"--temperature is {sampling.temperature:g}; give 0 to 100"
        raise InputError(msg)
    if sampling.top_k is not None and sampling.top_k < 1:
        msg = f"--top-k is {sampling.top_k}; give 1 or more"
        raise InputError(msg)
    if sampling.top_p is not None and not 0 < sampling.top_p <= 1:
        msg = f"--top-p is {sampling.top_p:g}; give a number above 0 and up to 1"
        raise InputError(msg)


async def _run(endpoint: Endpoint, order: EndpointOrder) -> RemoteRun:
    """Return the run as far as it came; Ctrl-C and SIGTERM close the stream and end it."""
    async with Wire(endpoint) as wire:
        info, asks = await opened(wire, order)
        sys.stderr.writelines(f"{line}\n" for line in info_lines(info))
        stop_on_termination()
        run = GrowingRun(secrets.token_urlsafe(6), info)
        await run.send(wire, asks, order.silence_s)
    return run.snapshot()


def _save(run: RemoteRun, out: str) -> None:
    from inference.runs.remote_file import to_json, write  # noqa: PLC0415  after bad input

    if out == STDOUT:
        write_stdout(to_json(run) + "\n")
    else:
        write(run, Path(out))


def _exit_code(run: RemoteRun) -> int:
    last = run.requests[-1]
    if last.state is RunState.FAILED:
        raise EndpointError(last.message)
    return 0 if last.state is RunState.DONE else INTERRUPTED
