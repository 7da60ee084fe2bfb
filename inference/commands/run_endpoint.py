"""``run --endpoint``: the same command where an engine at an address generates."""

from __future__ import annotations

import argparse
import asyncio
import re
import secrets
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from time import perf_counter_ns

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
from inference.records.endpoints import EndpointInfo
from inference.records.errors import EndpointError, InputError, PromptError
from inference.records.options import Sampling
from inference.records.prompts import UploadedPrompt
from inference.records.status import RunState
from inference.remote.address import Endpoint
from inference.remote.asking import ask, go_on
from inference.remote.connection import Wire
from inference.remote.gauges import falls_to_rest
from inference.remote.identify import chosen_model, identify
from inference.remote.messages import message_for
from inference.remote.recorder import RequestRecorder
from inference.remote.tries import taken_extras, tried
from inference.storage.named_files import check_named_file

STDOUT = "-"
DEFAULT_MODEL = "default"  # what `run` takes where no model is named
NS = 1e-9
REST_LIMIT_S = 3.0  # until an engine has noticed that nobody reads
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


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointOrder:
    """What is asked of the endpoint, before its model is known."""

    asks: tuple[RemoteAsk, ...]
    model: str | None
    silence_s: float

    @property
    def is_raw(self) -> bool:
        """True when prompts go without a chat template."""
        return self.asks[0].is_raw


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


async def opened(wire: Wire, order: EndpointOrder) -> tuple[EndpointInfo, tuple[RemoteAsk, ...]]:
    """Return what the server says and takes, and what is asked of it, its model named.

    Raises:
        InputError: No model is named and the server has several, or it lacks a setting.
        EndpointError: It does not answer.
    """
    info = await identify(wire)
    model = chosen_model(info, order.model)
    asks = tuple(replace(one, model_id=model) for one in order.asks)
    message_for(asks[0], info.engine, ())  # refuses a setting before anything is generated
    info = await tried(wire, info, model, is_raw=order.is_raw, silence_s=order.silence_s)
    return info, asks


async def _rest_note(wire: Wire) -> str:
    """Return whether the engine has left the request that was stopped, in a sentence."""
    has_left = await falls_to_rest(wire, limit_s=REST_LIMIT_S)
    if has_left is None:
        return "the engine does not say whether it has left the request"
    if has_left:
        return "the engine runs fewer requests since, or none"
    return (
        f"the engine runs as many requests as before {REST_LIMIT_S:g} s after the stream was closed"
    )


async def _run(endpoint: Endpoint, order: EndpointOrder) -> RemoteRun:
    """Return the run as far as it came; Ctrl-C and SIGTERM close the stream and end it."""
    async with Wire(endpoint) as wire:
        info, asks = await opened(wire, order)
        sys.stderr.writelines(f"{line}\n" for line in info_lines(info))
        stop_on_termination()
        zero_ns, started_at = perf_counter_ns(), datetime.now(UTC)
        recorders: list[RequestRecorder] = []
        try:
            for index, named in enumerate(asks):
                message = message_for(named, info.engine, taken_extras(info))
                planned_s = (perf_counter_ns() - zero_ns) * NS
                recorder = RequestRecorder(f"r{index}", named, zero_ns=zero_ns, planned_s=planned_s)
                recorders.append(recorder)
                await ask(wire, message, recorder, silence_s=order.silence_s)
                if recorder.state is not RunState.DONE:
                    break
        except asyncio.CancelledError:
            if not recorders:
                raise
            go_on()
            recorders[-1].note(await _rest_note(wire))
    return RemoteRun(
        run_id=secrets.token_urlsafe(6),
        endpoint=info,
        started_at=started_at,
        versions=(("httpcore2", version("httpcore2")),),
        requests=tuple(recorder.snapshot() for recorder in recorders),
    )


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
