"""What the benchmark decodes: a cache that is full before the first step."""

from __future__ import annotations

from inference.bench.subjects import FilledBackend, Setting, recorded_events
from inference.records.steps import Phase
from tests.doubles import ScriptedClock
from tests.families import tiny_model

CONTEXT, ROWS, STEPS = 12, 3, 4


def setting() -> Setting:
    clock = ScriptedClock([1.0] * 50)
    return Setting(model=tiny_model("llama"), clock=clock, context=CONTEXT, rows=ROWS, steps=STEPS)


def test_every_start_fills_the_cache_anew() -> None:
    backend = FilledBackend(setting())

    first, second = backend.filled_cache(), backend.filled_cache()

    assert first is not second
    for cache in (first, second):
        assert {layer.keys.shape[0] for layer in cache.layers} == {ROWS}
        assert {layer.get_seq_length() for layer in cache.layers} == {CONTEXT}


def test_decode_goes_on_behind_the_filled_cache() -> None:
    events = recorded_events(setting())

    assert [event.phase for event in events] == [Phase.PREFILL] + [Phase.DECODE] * 6
    assert [event.cache.tokens_per_layer[0] for event in events] == list(range(12, 19))
    assert {event.cache.used_bytes for event in events[:1]} == {events[0].cache.allocated_bytes}
