"""Recording a step as a CUDA graph, and refusing what a recording cannot hold before it begins.

A recording that fails cannot be taken back on every release of torch: its allocator may believe for
ever that one is under way. So the last trial runs with every wait for the device as an error, and
after a recording that failed all the same no other is begun in the process.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from inference.engine.step_capture import (
    CompiledRecorder,
    PlainRecorder,
    Recorder,
    Rewind,
    Work,
    try_out,
)
from inference.records.errors import first_line
from inference.records.options import DecodeMode


class Captures:
    """What the recordings of one process share.

    Attributes:
        cuda: ``torch.cuda``, or a double with the names of it that are used here.
        failure: Why no other recording may be begun; empty while one may.
    """

    def __init__(self, cuda: Any) -> None:  # noqa: ANN401  a module has no type of its own
        self.cuda = cuda
        self.failure = ""
        self._sides: dict[torch.device, Any] = {}

    def side_stream(self, device: torch.device) -> Any:  # noqa: ANN401  torch's stream, or a double
        """Return the stream that steps are recorded on, one for each device.

        Libraries keep a workspace for every stream that they have met.
        """
        if device not in self._sides:
            self._sides[device] = self.cuda.Stream(device)
        return self._sides[device]

    def release_memory(self) -> None:
        """Give memory that torch holds and does not use back to the device.

        After a recording that failed, releases before 2.13 raise here for ever; the memory then
        stays with the process.
        """
        try:
            self.cuda.empty_cache()
        except RuntimeError:
            if not self.failure:
                raise


CAPTURES = Captures(torch.cuda)


class GraphRecorder:
    """Records a step as a CUDA graph.

    Attributes:
        mode: Graph.
    """

    def __init__(self, device: torch.device, captures: Captures = CAPTURES) -> None:
        self.mode = DecodeMode.GRAPH
        self._device = device
        self._captures = captures

    def record(self, work: Work, rewind: Rewind) -> Work:
        """Return a replay of the work; what it returns is overwritten by the next one.

        Raises:
            RuntimeError: The work waits for the device on the way, or the recording failed.
        """
        if self._captures.failure:
            raise RuntimeError(self._captures.failure)
        cuda = self._captures.cuda
        with cuda.device(self._device):
            current, side = cuda.current_stream(), self._captures.side_stream(self._device)
            side.wait_stream(current)
            with cuda.stream(side):
                try_out(work, rewind)
                self._refuse_waits(work)
                rewind()
            current.wait_stream(side)
            graph = cuda.CUDAGraph()
            try:
                # Other threads may use the device meanwhile; only this one must keep to the rules.
                with cuda.graph(graph, stream=side, capture_error_mode="thread_local"):
                    result = work()
            except Exception as error:
                # The end of a failed recording raises too, before the stream is put back.
                cuda.set_stream(current)
                cause = first_line(_first_cause(error))
                self._captures.failure = f"a recording failed in this process ({cause}); steps are "
                self._captures.failure += "eager until the engine is started again"
                raise RuntimeError(cause) from error

        def replay() -> Tensor:
            graph.replay()
            return result

        return replay

    def _refuse_waits(self, work: Work) -> None:
        """Do the work once more with every wait for the device as an error."""
        cuda = self._captures.cuda
        before = cuda.get_sync_debug_mode()
        cuda.set_sync_debug_mode("error")
        try:
            work()
        except RuntimeError as error:
            msg = f"the model reads results back within a step: {first_line(error)}"
            raise RuntimeError(msg) from error
        finally:
            cuda.set_sync_debug_mode(before)


def _first_cause(error: BaseException) -> BaseException:
    """Return the error that the others followed from."""
    while error.__context__ is not None:
        error = error.__context__
    return error


def recorder_for(mode: DecodeMode, device: torch.device) -> Recorder:
    """Return what prepares steps in this mode on this device, where ``mode_obstacle`` is empty."""
    plain: Recorder = GraphRecorder(device) if device.type == "cuda" else PlainRecorder()
    return CompiledRecorder(plain) if mode is DecodeMode.COMPILED else plain
