"""Equal values of a run's events are kept once, and no value changes."""

from __future__ import annotations

import pickle
import sys
import tracemalloc
from dataclasses import replace

from inference.engine.clock import HostClock
from inference.engine.loop import Engine, GenerationLimits
from inference.engine.row_backend import TorchRowBackend
from inference.records.options import Sampling
from inference.records.run import Request
from inference.records.steps import StepEvent
from inference.runs.interning import Interner
from tests.families import tiny_model


def arrived(steps: int) -> list[bytes]:
    """Return a run's events as they come through the pipe."""
    limits = GenerationLimits(eos_ids=frozenset(), context_tokens=None)
    engine = Engine(TorchRowBackend(tiny_model("llama")), HostClock(), limits)
    request = Request(
        request_id="one",
        prompt_text="",
        prompt_ids=(1, 2, 3),
        max_new_tokens=steps,
        sampling=Sampling(),
    )
    return [pickle.dumps(event) for event in engine.generate([request], seed=0, zero_s=0.0)]


def received(bytes_of: bytes) -> StepEvent:
    event = pickle.loads(bytes_of)
    assert isinstance(event, StepEvent)
    return event


def test_no_value_changes() -> None:
    sharing = Interner()
    events = arrived(8)

    assert len(events) == 8
    for one in events:
        assert sharing.shared(received(one)) == received(one)


def test_what_two_steps_have_in_common_is_one_object() -> None:
    sharing = Interner()
    first, second = (sharing.shared(received(one)) for one in arrived(3)[1:])

    assert first.rows[0].request_id is second.rows[0].request_id
    assert first.cache.state_bytes_per_layer is second.cache.state_bytes_per_layer


def test_a_size_is_one_object_while_it_stays_and_let_go_when_it_changes() -> None:
    sharing = Interner()
    event = received(arrived(2)[-1])
    first, same, other = int("10000"), int("10000"), int("10001")  # number objects of their own
    held = sys.getrefcount(first)

    assert _shared_size(sharing, event, first) is first
    assert _shared_size(sharing, event, same) is first
    assert sys.getrefcount(first) > held
    assert _shared_size(sharing, event, other) is other
    assert sys.getrefcount(first) == held


def _shared_size(sharing: Interner, event: StepEvent, size_bytes: int) -> int:
    """Return what is kept as the size of a step with that much allocated."""
    cache = replace(event.cache, used_bytes=0, allocated_bytes=size_bytes)
    return sharing.shared(replace(event, cache=cache)).cache.allocated_bytes


def test_a_layers_tokens_are_one_number_for_all_layers_alike() -> None:
    event = Interner().shared(received(arrived(400)[-1]))

    assert len({id(tokens) for tokens in event.cache.tokens_per_layer}) == 1
    assert event.cache.tokens_per_layer[0] > 256


def test_less_memory_is_kept_of_a_model_with_many_layers() -> None:
    many = [received(one) for one in arrived(64)]
    events = [pickle.dumps(_with_layers(event, 30)) for event in many]
    kept_bytes: list[int] = []
    for keep in (_as_it_is, Interner().shared):
        tracemalloc.start()
        kept = [keep(received(one)) for one in events]
        kept_bytes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        assert len(kept) == len(events)

    assert kept_bytes[1] < 0.5 * kept_bytes[0]


def _as_it_is(event: StepEvent) -> StepEvent:
    return event


def _with_layers(event: StepEvent, layers: int) -> StepEvent:
    """Return the event of a model that deep, at a context beyond the numbers Python shares."""
    tokens = 1000 + event.index
    cache = replace(
        event.cache,
        tokens_per_layer=(tokens,) * layers,
        bytes_per_layer=(2048 * 1024,) * layers,
        state_bytes_per_layer=(0,) * layers,
    )
    return replace(event, cache=cache)
