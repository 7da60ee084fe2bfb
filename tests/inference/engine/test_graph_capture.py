"""Recording a step on a double of torch.cuda that fails as its sources say it does."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from inference.engine.expert_kernels import ExpertKernels
from inference.engine.graph_capture import Captures, GraphRecorder

GPU = torch.device("cuda:0")


class Stream:
    """A stream that orders nothing, since nothing runs on behind the host."""

    def wait_stream(self, other: Stream) -> None:
        """Return at once."""


class ScriptedCuda:
    """Streams, graphs and the debug mode for waits, without a GPU.

    Attributes:
        current: The thread's current stream.
        debug_mode: 0, or "error" while every wait is one.
        is_capturing: A recording is under way.
        begun: Recordings begun.
        replayed: Replays of all graphs.
        sides: Side streams made.
        is_stuck: The allocator believes that a recording is under way.
    """

    def __init__(self) -> None:
        self.main = Stream()
        self.current = self.main
        self.debug_mode: int | str = 0
        self.is_capturing = self.is_stuck = False
        self.begun = self.replayed = self.sides = 0

    @contextmanager
    def device(self, device: torch.device) -> Generator[None]:
        assert device == GPU
        yield

    def current_stream(self, device: torch.device | None = None) -> Stream:
        del device
        return self.current

    def set_stream(self, stream: Stream) -> None:
        self.current = stream

    def Stream(self, device: torch.device | None = None) -> Stream:  # noqa: N802
        del device
        self.sides += 1
        return Stream()

    @contextmanager
    def stream(self, stream: Stream) -> Generator[None]:
        before, self.current = self.current, stream
        try:
            yield
        finally:
            self.current = before

    def CUDAGraph(self) -> SimpleNamespace:  # noqa: N802
        def replay() -> None:
            self.replayed += 1

        return SimpleNamespace(replay=replay)

    def graph(
        self, cuda_graph: SimpleNamespace, *, stream: Stream, capture_error_mode: str
    ) -> ScriptedGraph:
        del cuda_graph
        assert capture_error_mode == "thread_local"
        return ScriptedGraph(self, stream)

    def get_sync_debug_mode(self) -> int | str:
        return self.debug_mode

    def set_sync_debug_mode(self, debug_mode: int | str) -> None:
        self.debug_mode = debug_mode

    def empty_cache(self) -> None:
        if self.is_stuck:
            msg = "captures_underway.empty() INTERNAL ASSERT FAILED"
            raise RuntimeError(msg)

    def wait(self) -> None:
        """Do what a host read does: it fails in a recording, and in the debug mode."""
        if self.is_capturing:
            self.is_stuck = True
            msg = "operation not permitted when stream is capturing"
            raise RuntimeError(msg)
        if self.debug_mode == "error":
            msg = "called a synchronizing CUDA operation"
            raise RuntimeError(msg)


class ScriptedGraph:
    """What torch.cuda.graph is.

    Source: torch 2.13, torch/cuda/graphs.py: the end of a failed recording raises, so the stream's
    own end is never reached.
    """

    def __init__(self, cuda: ScriptedCuda, stream: Stream) -> None:
        self._cuda = cuda
        self._stream = stream

    def __enter__(self) -> None:
        self._cuda.empty_cache()
        self._before, self._cuda.current = self._cuda.current, self._stream
        self._cuda.is_capturing = True
        self._cuda.begun += 1

    def __exit__(self, *error: object) -> None:
        self._cuda.is_capturing = False
        if error[0] is not None:
            msg = "operation failed due to a previous error during capture"
            raise RuntimeError(msg)
        self._cuda.current = self._before


def recorder(cuda: ScriptedCuda) -> tuple[GraphRecorder, Captures]:
    captures = Captures(cuda)
    return GraphRecorder(GPU, captures), captures


def nothing() -> None:
    """Rewind nothing."""


def test_a_step_that_never_waits_is_recorded_and_replayed() -> None:
    cuda = ScriptedCuda()
    graphs, captures = recorder(cuda)

    replay = graphs.record(lambda: torch.ones(1), nothing)

    assert replay().tolist() == [1.0]
    assert (cuda.begun, cuda.replayed) == (1, 1)
    assert cuda.current is cuda.main
    assert cuda.debug_mode == 0
    assert captures.failure == ""


def test_a_step_that_reads_back_is_refused_before_a_recording_begins() -> None:
    cuda = ScriptedCuda()
    graphs, captures = recorder(cuda)

    def reads() -> Tensor:
        cuda.wait()
        return torch.ones(1)

    with pytest.raises(RuntimeError, match="reads results back within a step: called a synchron"):
        graphs.record(reads, nothing)

    assert cuda.begun == 0
    assert cuda.current is cuda.main
    assert cuda.debug_mode == 0
    assert captures.failure == ""
    graphs.record(lambda: torch.ones(1), nothing)  # another model's step can still be recorded


def test_a_recording_that_fails_tells_its_cause_and_leaves_the_process_usable() -> None:
    cuda = ScriptedCuda()
    graphs, captures = recorder(cuda)

    def fails_when_recorded() -> Tensor:
        if cuda.is_capturing:
            cuda.wait()
        return torch.ones(1)

    with pytest.raises(RuntimeError, match=r"^operation not permitted when stream is capturing$"):
        graphs.record(fails_when_recorded, nothing)

    assert cuda.current is cuda.main
    captures.release_memory()  # torch before 2.13 raises here for ever
    with pytest.raises(RuntimeError, match="steps are eager until the engine is started again"):
        graphs.record(lambda: torch.ones(1), nothing)
    assert cuda.begun == 1


def test_memory_that_cannot_be_released_is_told_while_no_recording_failed() -> None:
    cuda = ScriptedCuda()
    cuda.is_stuck = True

    with pytest.raises(RuntimeError, match="INTERNAL ASSERT"):
        Captures(cuda).release_memory()


def test_all_recordings_of_a_device_share_one_side_stream() -> None:
    cuda = ScriptedCuda()
    captures = Captures(cuda)

    for _ in range(3):
        GraphRecorder(GPU, captures).record(lambda: torch.ones(1), nothing)

    assert cuda.sides == 1


class Experts:
    """A model whose experts can be computed in more than one way.

    Attributes:
        set_to: Every choice made, in order.
    """

    def __init__(self, device: str, implementation: str) -> None:
        self.device = torch.device(device)
        self.set_to: list[dict[str, str | None]] = []
        self._chosen: dict[str, str | None] = {"": implementation, "vision_config": None}

    def get_experts_implementation(self) -> dict[str, str | None]:
        return self._chosen

    def set_experts_implementation(self, chosen: dict[str, str | None]) -> None:
        self.set_to.append(chosen)


def test_experts_of_a_gpu_decode_as_generate_decodes_them() -> None:
    model: Any = Experts("cuda", "grouped_mm")
    kernels = ExpertKernels(model)

    for is_decode in (False, True, True, False):
        kernels.use(is_decode=is_decode)

    decode, prompts = {"": "batched_mm", "vision_config": None}, {"": "grouped_mm"}
    assert model.set_to == [decode, {**prompts, "vision_config": None}]


@pytest.mark.parametrize(("device", "implementation"), [("cpu", "grouped_mm"), ("cuda", "eager")])
def test_experts_that_generate_leaves_alone_are_left_alone(
    device: str, implementation: str
) -> None:
    model: Any = Experts(device, implementation)

    ExpertKernels(model).use(is_decode=True)

    assert model.set_to == []
