"""What a decode step can be turned into once, to be launched faster afterwards.

A CUDA graph is a step's launches recorded by the driver: replaying it is one call of the host
instead of hundreds. ``torch.compile`` fuses operations before that. Both work on buffers that stay
where they are, and neither sees Python between two operations.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from inference.records.options import DecodeMode, DecodeOption

Work = Callable[[], Tensor]
Rewind = Callable[[], None]

# Source: PyTorch's notes on CUDA graphs ask for a few runs on a side stream before a capture, so
# that libraries have chosen their kernels and taken their memory.
WARM_UPS = 3
CPP_COMPILERS = ("g++", "clang++", "c++")


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


class PlainRecorder:
    """Leaves the work as it is, after trying it out: what it needs only once has then happened.

    Attributes:
        mode: Eager.
    """

    def __init__(self) -> None:
        self.mode = DecodeMode.EAGER

    def record(self, work: Work, rewind: Rewind) -> Work:
        """Return the work itself."""
        for _ in range(WARM_UPS):
            rewind()
            work()
        rewind()
        return work


class GraphRecorder:
    """Records a step as a CUDA graph.

    Attributes:
        mode: Graph.
    """

    def __init__(self, device: torch.device) -> None:
        self.mode = DecodeMode.GRAPH
        self._device = device

    def record(self, work: Work, rewind: Rewind) -> Work:
        """Return a replay of the work; what it returns is overwritten by the next one."""
        with torch.cuda.device(self._device):
            current, side = torch.cuda.current_stream(), torch.cuda.Stream()
            side.wait_stream(current)
            with torch.cuda.stream(side):
                PlainRecorder().record(work, rewind)
            current.wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            # Other threads may use the device meanwhile; only this one must keep to the rules.
            with torch.cuda.graph(graph, stream=side, capture_error_mode="thread_local"):
                result = work()

        def replay() -> Tensor:
            graph.replay()
            return result

        return replay


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
    return torch.compile(work, dynamic=False)


def recorder_for(mode: DecodeMode, device: torch.device) -> Recorder:
    """Return what prepares steps in this mode on this device, where ``mode_obstacle`` is empty."""
    plain: Recorder = GraphRecorder(device) if device.type == "cuda" else PlainRecorder()
    return CompiledRecorder(plain) if mode is DecodeMode.COMPILED else plain


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
        return ""
    if device.type != "cpu":
        return f"torch.compile is not offered on {_named(device)}"
    chosen = os.environ.get("CXX")
    if not any(shutil.which(name) for name in ((chosen,) if chosen else CPP_COMPILERS)):
        return "torch.compile needs a C++ compiler (g++), and none is installed"
    return ""


def _named(device: torch.device) -> str:
    return "the CPU" if device.type == "cpu" else device.type
