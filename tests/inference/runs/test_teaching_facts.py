"""What each recording is said to show holds in its own numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from inference.counting.costs import matrix_costs, step_cost
from inference.models.miniatures import RANDOM_WEIGHTS
from inference.process.recording_plans import (
    CHUNK_TOKENS,
    EXPERTS_MODEL,
    WINDOW_MODEL,
    recording_plans,
)
from inference.records.attention import AttentionMap
from inference.records.model import LayerType, MatrixRole
from inference.records.options import CacheKind
from inference.records.run import RunTrace
from inference.records.steps import Phase, StepEvent
from inference.runs.packed_attention import unpacked
from inference.runs.recordings import FIRST_RUN, FOLDER, RUN_SUFFIX, recorded_runs

MOST_BYTES = 400_000
WINDOW = dict(WINDOW_MODEL.sizes)["sliding_window"]


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a run by their phase."""

    prefill: tuple[StepEvent, ...]
    decode: tuple[StepEvent, ...]

    @classmethod
    def of(cls, trace: RunTrace) -> Steps:
        by_phase = {
            phase: tuple(event for event in trace.events if event.phase is phase) for phase in Phase
        }
        return cls(by_phase[Phase.PREFILL], by_phase[Phase.DECODE])


def run_named(name: str) -> RunTrace:
    [trace] = recorded_runs(name)
    return trace


def seconds(events: tuple[StepEvent, ...]) -> float:
    return sum(event.duration_s for event in events)


@pytest.mark.parametrize("name", recording_plans())
def test_a_recording_is_small_and_made_with_the_settings_of_its_plan(name: str) -> None:
    plan, traces = recording_plans()[name], recorded_runs(name)

    assert (FOLDER / f"{name}{RUN_SUFFIX}").stat().st_size < MOST_BYTES
    assert len(traces) == len(plan.orders)
    for trace, order in zip(traces, plan.orders, strict=True):
        assert tuple(request.prompt_text for request in trace.requests) == order.prompts
        assert (trace.info.cache, trace.info.chunk_tokens) == (order.cache, order.chunk_tokens)
        assert (trace.info.plan, trace.info.seed) == (order.plan, order.seed)
        assert trace.requests[0].max_new_tokens == order.max_new_tokens
        layers = {packed.choice.layer for packed in trace.attention}
        assert layers == {choice.layer for choice in plan.captured}
        is_random = trace.info.model_id.endswith(RANDOM_WEIGHTS)
        assert is_random is (plan.miniature is not None)


def test_a_decode_step_takes_several_times_a_tokens_share_of_the_prefill() -> None:
    trace = run_named(FIRST_RUN)
    steps = Steps.of(trace)
    [prefill] = steps.prefill
    usual_s = float(np.median([event.duration_s for event in steps.decode]))

    assert usual_s < prefill.duration_s
    assert usual_s > 2 * prefill.duration_s / prefill.query_tokens


def test_the_long_prefill_takes_longer_than_all_decode_steps() -> None:
    steps = Steps.of(run_named("long-prompt"))
    [prefill] = steps.prefill

    assert prefill.query_tokens > 900
    assert seconds(steps.prefill) > seconds(steps.decode)
    assert all(event.context_tokens > prefill.query_tokens for event in steps.decode)


def test_a_longer_prompt_makes_the_prefill_longer_and_leaves_decode_as_it_is() -> None:
    traces = recorded_runs("three-prompts")
    prompts = [len(trace.requests[0].prompt_ids) for trace in traces]
    prefill_s = [seconds(Steps.of(trace).prefill) for trace in traces]
    decode_s = [
        float(np.median([event.duration_s for event in Steps.of(trace).decode])) for trace in traces
    ]

    assert np.corrcoef(prompts, prefill_s)[0, 1] > 0.9
    assert max(prefill_s) / min(prefill_s) > 1.5 * max(decode_s) / min(decode_s)


def test_the_batch_reads_its_weights_once_for_eight_rows() -> None:
    trace = run_named("batch-of-eight")
    shape, steps = trace.info.shape, Steps.of(trace)
    full = [event for event in steps.decode if len(event.rows) == 8]

    assert len(full) > 8
    for event in full:
        rows = [(row.query_tokens, row.context_tokens) for row in event.rows]
        together, alone = step_cost(shape, rows), [step_cost(shape, [row]) for row in rows]
        matrices = sum(
            matrix.bytes for matrix in shape.matrices if matrix.role is MatrixRole.LINEAR
        )
        assert matrices < together.weight_bytes < 2 * alone[0].weight_bytes
        assert together.kv_read_bytes == sum(cost.kv_read_bytes for cost in alone)


def test_two_slots_serve_four_requests() -> None:
    trace = run_named("four-requests")

    assert len(trace.requests) == 4
    assert {row.slot for event in trace.events for row in event.rows} == {0, 1}


def test_between_two_chunks_of_the_long_prompt_the_other_request_gets_a_step() -> None:
    trace = run_named("chunked-prefill")
    short, long = (request.request_id for request in trace.requests)
    chunks = [
        event.index
        for event in trace.events
        if event.phase is Phase.PREFILL and event.rows[0].request_id == long
    ]

    assert len(chunks) > 6
    for index in chunks:
        assert trace.events[index].query_tokens <= CHUNK_TOKENS
    for index in chunks[:-1]:
        between = trace.events[index + 1]
        assert between.phase is Phase.DECODE
        assert [row.request_id for row in between.rows] == [short]


def test_the_greedy_row_takes_the_likeliest_and_the_other_parts_from_it() -> None:
    trace = run_named("sampling-against-greedy")
    greedy, drawn = (output.token_ids for output in trace.outputs)
    first, second = trace.requests
    chosen = {
        request_id: [
            row.token_id == row.candidates[0].token_id
            for event in trace.events
            for row in event.rows
            if row.request_id == request_id
        ]
        for request_id in (first.request_id, second.request_id)
    }

    assert first.prompt_ids == second.prompt_ids
    assert all(chosen[first.request_id])
    assert not all(chosen[second.request_id])
    parted = chosen[second.request_id].index(False)
    assert drawn[:parted] == greedy[:parted]
    assert drawn[parted] != greedy[parted]


def test_the_quantised_cache_takes_one_byte_a_number_and_a_scale_a_tensor() -> None:
    trace = run_named("quantised-cache")
    shape = trace.info.shape
    per_token = 2 * shape.num_hidden_layers * shape.num_key_value_heads * shape.head_dim
    scales = 2 * shape.num_hidden_layers * 4  # one float32 for the keys and one for the values

    assert trace.info.cache is CacheKind.QUANTISED
    for event in trace.events:
        assert event.cache.used_bytes == per_token * event.context_tokens + scales
        assert event.cache.used_bytes * 3.9 < (shape.kv_bytes_per_token or 0) * event.context_tokens
    assert trace.requests[0].prompt_ids == run_named(FIRST_RUN).requests[0].prompt_ids


def test_layers_with_a_window_keep_no_more_than_it_and_look_no_further_back() -> None:
    trace = run_named("sliding-window")
    shape = trace.info.shape
    kinds = shape.layer_types
    newest, window = trace.events[-1], shape.sliding_window or 0

    assert [kind is LayerType.FULL for kind in kinds] == [
        False,
        False,
        False,
        False,
        False,
        True,
    ] * 2
    assert window == WINDOW
    assert trace.events[0].context_tokens < window < newest.context_tokens
    for event in trace.events:
        for kind, tokens in zip(kinds, event.cache.tokens_per_layer, strict=True):
            most = window if kind is LayerType.SLIDING else event.context_tokens
            assert tokens <= most
    for packed in trace.attention:
        reach = max(map(furthest_back, unpacked(packed)))
        is_sliding = kinds[packed.choice.layer] is LayerType.SLIDING
        assert (reach < window) is is_sliding


def furthest_back(captured: AttentionMap) -> int:
    """Return how many tokens lie at most between a query and a key that it looks at."""
    assert captured.weights is not None
    assert captured.query_bin == captured.kv_bin == 1
    looked = np.asarray(captured.weights).max(axis=0) > 0
    first_keys = captured.kv_start + looked.argmax(axis=1)
    queries = captured.query_start + np.arange(looked.shape[0])
    return int((queries - first_keys).max())


def test_a_decode_step_reads_one_sixteenth_of_the_experts_and_a_prompt_most_of_them() -> None:
    trace = run_named("mixture-of-experts")
    shape, steps = trace.info.shape, Steps.of(trace)
    [prefill] = steps.prefill
    experts = [matrix for matrix in shape.matrices if matrix.role is MatrixRole.EXPERT]

    def read(event: StepEvent) -> float:
        """Return the share of the experts' weights that a step reads."""
        costs = matrix_costs(shape, event.query_tokens, len(event.rows))
        of_experts = [cost for cost in costs if cost.matrix.role is MatrixRole.EXPERT]
        return sum(cost.weight_bytes for cost in of_experts) / sum(one.bytes for one in experts)

    assert EXPERTS_MODEL.config in trace.info.model_id
    assert {(matrix.experts, matrix.experts_per_token) for matrix in experts} == {(128, 8)}
    assert all(read(event) == pytest.approx(1 / 16) for event in steps.decode)
    missed = (1 - 8 / 128) ** prefill.query_tokens
    assert read(prefill) == pytest.approx(1 - missed, rel=1e-6)
    assert read(prefill) > 0.7
