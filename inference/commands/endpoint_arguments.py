"""What every command about an engine at an address takes and says."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from argparse import ArgumentParser
from contextlib import suppress

from inference.records.endpoints import EndpointInfo, EngineGauges
from inference.records.errors import InputError
from inference.remote.address import Endpoint, endpoint_at
from inference.remote.messages import SILENCE_S

MOST_NAMED = 5
LONGEST_SILENCE_S = 24 * 3600.0


def add_key_argument(parser: ArgumentParser) -> None:
    """Add ``--key-env``."""
    parser.add_argument(
        "--key-env",
        metavar="NAME",
        help="name of the environment variable that holds the engine's key; it is kept nowhere",
    )


def add_silence_argument(parser: ArgumentParser) -> None:
    """Add ``--silence``."""
    parser.add_argument(
        "--silence",
        type=float,
        default=SILENCE_S,
        metavar="S",
        help="with an endpoint: longest wait for its next byte, in seconds",
    )


def endpoint_of(address: str, key_name: str | None) -> Endpoint:
    """Return the endpoint of what was given, and say where requests will go.

    Raises:
        InputError: The address cannot be used, or the variable is not set.
    """
    key = None
    if key_name is not None:
        key = os.environ.get(key_name)
        if key is None:
            msg = f"the environment variable {key_name} is not set; it is to hold the key"
            raise InputError(msg)
    endpoint = endpoint_at(address, None if key is None else key.strip())
    said = "without a key" if key is None else f"with the key in {key_name}"
    sys.stderr.write(f"asking {endpoint.address} {said}\n")
    return endpoint


def check_silence(silence_s: float) -> None:
    """Raise InputError unless the wait has an end."""
    if not 0 < silence_s <= LONGEST_SILENCE_S:
        msg = f"--silence is {silence_s:g} s; give a number above 0 and up to a day"
        raise InputError(msg)


def stop_on_termination() -> None:
    """Have a SIGTERM cancel the task that runs, as Ctrl-C does."""
    task = asyncio.current_task()
    if task is not None:
        with suppress(NotImplementedError):  # Windows
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


def info_lines(info: EndpointInfo) -> list[str]:
    """Return what a server said of itself, a line each."""
    version = f" {info.version}" if info.version else ", version not said"
    lines = [f"{info.engine.value}{version} at {info.address}"]
    for model in info.models:
        context = f", context {model.context_tokens:,}" if model.context_tokens else ""
        lines.append(f"model {model.model_id}{context}")
    lines += [f"{one.extra.value}: {one.answer.value} ({one.reason})" for one in info.offers]
    return [*lines, *info.notes]


def gauge_lines(gauges: EngineGauges | None) -> list[str]:
    """Return what a metrics page said, a line each; one where there is none."""
    if gauges is None:
        return ["load: not known, there is no metrics page"]
    used = gauges.kv_used_ratio
    said = {
        "requests running": gauges.running,
        "requests waiting": gauges.waiting,
        "room for K/V in use": None if used is None else f"{used:.1%}",
        "preemptions since its start": gauges.preemptions,
    }
    lines = [
        f"{name}: {'this version does not say' if value is None else value}"
        for name, value in said.items()
    ]
    if gauges.unreadable:
        lines.append(f"metrics that could not be read: {', '.join(gauges.unreadable[:MOST_NAMED])}")
    return lines
