"""What a decode step can be turned into once, to be launched faster afterwards.

A CUDA graph is a step's launches recorded by the driver: replaying it is one call of the host
instead of hundreds. ``torch.compile`` fuses operations before that. Both work on buffers that stay
where they are, and neither sees Python between two operations.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import shutil
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from inference.records.options import DecodeMode, DecodeOption

Work = Callable[[], Tensor]
Rewind = Callable[[], None]

# Source: PyTorch's notes on CUDA graphs ask for a few runs on a side stream before a capture, so
# that libraries have chosen their kernels and taken their memory.
WARM_UPS = 3
CPP_COMPILERS = ("g++", "clang++", "c++")
C_COMPILERS = ("gcc", "clang", "cc")
MOST_RECOMPILES = 256  # more shapes than a process prepares


class Recorder(Protocol):
    """Turns a step into one that can be repeated.

    Attributes:
        mode: What it turns it into.
    """

    mode: DecodeMode

    def record(self, work: Work, rewind: Rewind) -> Work:
        """Return a function that does the work again each time it is called.

        Args:
            work: Reads its input from buffers that stay where they are, and may be tried out.
            rewind: Takes back what a trial did.
        """
        ...


def try_out(work: Work, rewind: Rewind) -> None:
    """Do the work a few times: what it needs only once has then happened."""
    for _ in range(WARM_UPS):
        rewind()
        work()
    rewind()


class PlainRecorder:
    """Leaves the work as it is, after trying it out.

    Attributes:
        mode: Eager.
    """

    def __init__(self) -> None:
        self.mode = DecodeMode.EAGER

    def record(self, work: Work, rewind: Rewind) -> Work:
        """Return the work itself."""
        try_out(work, rewind)
        return work


class CompiledRecorder:
    """Compiles a step, then records what came out.

    Attributes:
        mode: Compiled.
    """

    def __init__(self, then: Recorder, compile_work: Callable[[Work], Work] | None = None) -> None:
        self.mode = DecodeMode.COMPILED
        self._then = then
        self._compile = compile_work or _compiled

    def record(self, work: Work, rewind: Rewind) -> Work:
        """Return the compiled work; its first trial takes the time of the compilation."""
        return self._then.record(self._compile(work), rewind)


def _compiled(work: Work) -> Work:
    """Compile for this shape alone.

    All buckets are closures of one piece of code. They would share one cache of eight entries and
    from the ninth on run eagerly, with a line in the log.
    Source: torch 2.13, torch.compile's ``isolate_recompiles``; older releases raise the limit.
    """
    if "isolate_recompiles" in inspect.signature(torch.compile).parameters:
        newer: dict[str, Any] = {"isolate_recompiles": True}  # some of its overloads do not name it
        return torch.compile(work, dynamic=False, **newer)
    from torch._dynamo import config  # noqa: PLC0415  loads a hundred modules

    config.recompile_limit = MOST_RECOMPILES
    return torch.compile(work, dynamic=False)


def decode_options(device: torch.device) -> tuple[DecodeOption, ...]:
    """Return every way to launch decode steps, with the reason where the device cannot."""
    return tuple(DecodeOption(mode=mode, reason=mode_obstacle(mode, device)) for mode in DecodeMode)


def mode_obstacle(mode: DecodeMode, device: torch.device) -> str:
    """Return why decode steps cannot be launched this way on this device, or nothing."""
    if mode is DecodeMode.GRAPH and device.type != "cuda":
        return f"a CUDA graph needs an NVIDIA GPU, and this run is on {_named(device)}"
    if mode is DecodeMode.COMPILED:
        return _compile_obstacle(device)
    return ""


def _compile_obstacle(device: torch.device) -> str:
    if device.type == "cuda":
        if importlib.util.find_spec("triton") is None:
            return "torch.compile needs the package triton on a GPU, and it is not installed"
        return _missing_compiler(
            "CC", C_COMPILERS, "C compiler (gcc)"
        )  # triton builds its launcher
    if device.type != "cpu":
        return f"torch.compile is not offered on {_named(device)}"
    return _missing_compiler("CXX", CPP_COMPILERS, "C++ compiler (g++)")


def _missing_compiler(variable: str, names: Sequence[str], called: str) -> str:
    chosen = os.environ.get(variable)
    if not any(shutil.which(name) for name in ((chosen,) if chosen else names)):
        return f"torch.compile needs a {called}, and none is installed"
    return ""


def _named(device: torch.device) -> str:
    return "the CPU" if device.type == "cpu" else device.type
