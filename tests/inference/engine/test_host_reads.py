"""No step asks the device for a result before all its work is launched.

On a GPU such a question waits for everything launched so far, and the host's lead over the device
would be told as none. On the CPU nothing waits, so the questions themselves are recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from inference.engine.loop import Engine, GenerationLimits, GenerationOptions
from inference.engine.row_backend import TorchRowBackend
from inference.records.options import BatchPlan, CacheKind, Policy, Sampling
from inference.records.run import Request
from tests.doubles import ScriptedClock
from tests.families import tiny_model

NO_EOS = GenerationLimits(eos_ids=frozenset(), context_tokens=None)
# Functions that need a result on the host; multinomial does for its checks.
# Source: ATen/native/Distributions.cpp, multinomial_out; torch's CUDA notes on synchronisation.
READS = {
    "__bool__",
    "__float__",
    "__index__",
    "__int__",
    "cpu",
    "equal",
    "item",
    "multinomial",
    "nonzero",
    "numpy",
    "tolist",
}


class Reads(TorchFunctionMode):
    """Records each function that reads a result of a tensor back to the host."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401  torch's own
        given = kwargs or {}
        name = getattr(func, "__name__", "")
        # Models move their own tensors to a device that is an object; "cpu" by name is the host.
        to_host = name == "to" and any(
            isinstance(one, str) and one == "cpu" for one in (*args[1:], given.get("device"))
        )
        if name in READS or (to_host and not given.get("non_blocking")):
            self.found.append(name)
        return func(*args, **given)


class WatchedClock(ScriptedClock):
    """Notes what was read back between a step's start and the end of its launches."""

    def __init__(self, reads: Reads) -> None:
        super().__init__([1.0] * 200)
        self.early: list[list[str]] = []
        self._reads = reads

    def start_timing(self) -> None:
        super().start_timing()
        self._reads.found.clear()

    def launched(self) -> float | None:
        self.early.append(list(self._reads.found))
        return super().launched()


def request(number: int, sampling: Sampling) -> Request:
    return Request(
        request_id=f"r{number}",
        prompt_text="",
        prompt_ids=(5, 9, 60, 77)[: number + 2],
        max_new_tokens=4,
        sampling=sampling,
    )


WARM = Sampling(temperature=1.5)
COOL = Sampling(temperature=0.7, top_k=9, top_p=0.9)
CASES = [
    pytest.param([Sampling()], GenerationOptions(), id="greedy"),
    pytest.param([COOL], GenerationOptions(), id="drawn"),
    pytest.param([COOL], GenerationOptions(cache=CacheKind.STATIC), id="static"),
    pytest.param(
        [COOL, WARM],
        GenerationOptions(plan=BatchPlan(policy=Policy.CONTINUOUS, slots=1)),
        id="continuous",
    ),
    pytest.param([COOL], GenerationOptions(chunk_tokens=1), id="chunks"),
]


@pytest.mark.parametrize(("samplings", "options"), CASES)
def test_nothing_is_read_back_before_the_step_is_launched(
    samplings: list[Sampling], options: GenerationOptions
) -> None:
    reads = Reads()
    clock = WatchedClock(reads)
    engine = Engine(TorchRowBackend(tiny_model("llama", torch.float32)), clock, NO_EOS)
    wanted = [request(number, sampling) for number, sampling in enumerate(samplings)]

    with reads:
        events = list(engine.generate(wanted, seed=0, zero_s=0.0, options=options))

    assert len(clock.early) == len(events) >= 4
    assert clock.early == [[]] * len(events)


def test_a_padded_batch_is_asked_about_its_mask_only_before_its_first_layer() -> None:
    """Transformers asks whether the mask is all ones, while the device has nothing to do yet."""
    reads = Reads()
    clock = WatchedClock(reads)
    model = tiny_model("llama", torch.float32)
    engine = Engine(TorchRowBackend(model), clock, NO_EOS)
    wanted = [request(number, one) for number, one in enumerate([COOL, Sampling(), WARM])]
    decoder: Any = model.get_decoder()
    hook = decoder.layers[0].register_forward_pre_hook(
        lambda _module, _args: reads.found.append("first layer")
    )

    with hook, reads:
        events = list(engine.generate(wanted, seed=0, zero_s=0.0))

    assert len(clock.early) == len(events) == 4
    assert {found[-1] for found in clock.early} == {"first layer"}
    assert {name for found in clock.early for name in found} == {"__bool__", "first layer"}


def test_a_read_would_be_seen() -> None:
    with Reads() as reads:
        torch.ones(2).cpu()
        torch.ones(2).to("cpu")
        torch.ones(2).to("cpu", non_blocking=True)
        bool(torch.ones(1))
        torch.multinomial(torch.ones(2), 1).tolist()

    assert reads.found == ["cpu", "to", "__bool__", "multinomial", "tolist"]
