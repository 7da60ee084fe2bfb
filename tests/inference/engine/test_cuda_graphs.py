"""Prepared decode steps on a scripted recorder: a tiny model's real steps, without a GPU."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._dynamo.testing import CompileCounter
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from inference.engine.clock import HostMarks
from inference.engine.cuda_graphs import (
    BUCKET_COLUMNS,
    MOST_BUCKETS,
    PreparedStep,
    StepStore,
    bucket_for,
)
from inference.engine.loop import Engine, GenerationLimits, GenerationOptions
from inference.engine.part_times import PartMeter
from inference.engine.row_backend import TorchRowBackend
from inference.engine.step_capture import (
    CompiledRecorder,
    PlainRecorder,
    Recorder,
    Rewind,
    Work,
    decode_options,
    mode_obstacle,
)
from inference.records.attention import AttentionChoice
from inference.records.options import BatchPlan, CacheKind, DecodeMode, Policy, Sampling
from inference.records.run import Request
from inference.records.steps import Phase, StepEvent
from tests.doubles import ScriptedClock
from tests.tiny_model import tiny_config

CPU = torch.device("cpu")
FORBIDDEN = ("_local_scalar_dense", "is_nonzero", "nonzero", "lift_fresh", "_unique")
PROMPTS = ((5, 9, 120, 77, 31), (4, 8), (200, 11, 12, 13, 14, 15, 16))
GRAPH = GenerationOptions(cache=CacheKind.STATIC, decode=DecodeMode.GRAPH)
STATIC = GenerationOptions(cache=CacheKind.STATIC)


class ScriptedGraphs:
    """Stands for a GPU's graphs: counts captures and replays, and computes in between.

    Attributes:
        captures: Steps recorded.
        replays: Steps replayed.
        trials: Times a step was tried before it was recorded.
        refusal: What a capture fails with; None when it does not.
    """

    def __init__(self) -> None:
        self.mode = DecodeMode.GRAPH
        self.captures = self.replays = self.trials = 0
        self.refusal: Exception | None = None

    def record(self, work: Work, rewind: Rewind) -> Work:
        """Try the work out as a capture does, and return its replay."""

        def tried() -> Tensor:
            self.trials += 1
            return work()

        PlainRecorder().record(tried, rewind)
        if self.refusal is not None:
            raise self.refusal
        self.captures += 1

        def replay() -> Tensor:
            self.replays += 1
            return work()

        return replay


@functools.cache
def tiny_model() -> LlamaForCausalLM:
    """Return one random model for all tests here, in float64."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return LlamaForCausalLM(tiny_config()).to(torch.float64).eval()


def backend_on(graphs: Recorder, model: PreTrainedModel | None = None) -> TorchRowBackend:
    """Return a backend whose device records its steps with this."""
    backend = TorchRowBackend(model or tiny_model())
    backend._steps = StepStore(
        model or tiny_model(),
        "cache",
        make=lambda _mode, _device: graphs,
        obstacle=lambda _mode, _device: "",
    )
    return backend


def requests(
    prompts: Sequence[tuple[int, ...]] = PROMPTS[:1], new_tokens: Sequence[int] = (6, 6, 6)
) -> tuple[Request, ...]:
    return tuple(
        Request(
            request_id=f"r{index}",
            prompt_text="",
            prompt_ids=prompt,
            max_new_tokens=new_tokens[index],
            sampling=Sampling(),
        )
        for index, prompt in enumerate(prompts)
    )


def engine_on(backend: TorchRowBackend, meter: PartMeter | None = None) -> Engine:
    limits = GenerationLimits(eos_ids=frozenset(), context_tokens=None)
    return Engine(backend, ScriptedClock([0.01] * 500), limits, meter)


def run(
    engine: Engine, asked: Sequence[Request], options: GenerationOptions
) -> tuple[list[StepEvent], str]:
    """Return the events of a run that was got ready first, and why it is not as asked."""
    ready, note = engine.prepare(asked, options)
    return list(engine.generate(asked, seed=0, zero_s=0.0, options=ready)), note


def ids_of(events: Sequence[StepEvent]) -> list[list[int | None]]:
    return [[row.token_id for row in event.rows] for event in events]


def modes_of(events: Sequence[StepEvent]) -> list[DecodeMode | None]:
    return [event.decode for event in events]


def test_replayed_steps_choose_the_ids_of_eager_ones() -> None:
    graphs = ScriptedGraphs()

    replayed, note = run(engine_on(backend_on(graphs)), requests(), GRAPH)
    eager, _ = run(engine_on(TorchRowBackend(tiny_model())), requests(), GenerationOptions())

    assert note == ""
    assert ids_of(replayed) == ids_of(eager)
    assert modes_of(replayed) == [None, *[DecodeMode.GRAPH] * 5]
    assert modes_of(eager) == [None, *[DecodeMode.EAGER] * 5]
    assert graphs.replays == 5


def test_replayed_logits_are_those_of_the_same_cache_to_the_last_bit() -> None:
    replayed, _ = run(engine_on(backend_on(ScriptedGraphs())), requests(), GRAPH)
    eager, _ = run(engine_on(TorchRowBackend(tiny_model())), requests(), STATIC)

    logprobs = [[row.logprob for row in event.rows] for event in replayed]
    assert logprobs == [
        [pytest.approx(row.logprob, abs=1e-12) for row in event.rows] for event in eager
    ]


def test_rows_of_unequal_length_that_end_at_different_steps_keep_their_ids() -> None:
    asked = requests(PROMPTS, new_tokens=(6, 2, 4))

    replayed, note = run(engine_on(backend_on(ScriptedGraphs())), asked, GRAPH)
    eager, _ = run(engine_on(TorchRowBackend(tiny_model())), asked, GenerationOptions())

    assert note == ""
    assert ids_of(replayed) == ids_of(eager)
    assert modes_of(replayed)[1:] == [DecodeMode.GRAPH] * 5


def test_a_bucket_is_captured_once_and_replayed_in_every_run_that_fits_it() -> None:
    graphs = ScriptedGraphs()
    engine = engine_on(backend_on(graphs))

    first, _ = run(engine, requests(new_tokens=(3,)), GRAPH)
    second, _ = run(engine, requests(PROMPTS[2:], new_tokens=(6,)), GRAPH)
    again, _ = run(engine, requests(new_tokens=(3,)), GRAPH)

    assert graphs.captures == 1
    assert graphs.replays == 2 + 5 + 2
    assert ids_of(again) == ids_of(first) != ids_of(second)


def test_more_rows_or_more_room_are_another_bucket() -> None:
    graphs = ScriptedGraphs()
    engine = engine_on(backend_on(graphs))

    run(engine, requests(new_tokens=(3,)), GRAPH)
    run(engine, requests(PROMPTS[:2], new_tokens=(3, 3)), GRAPH)
    events, _ = run(engine, requests(((7,) * BUCKET_COLUMNS,), new_tokens=(3,)), GRAPH)

    assert graphs.captures == 3
    assert events[0].cache.allocated_bytes == 2 * events[0].cache.used_bytes


def test_room_is_rounded_up_to_whole_buckets() -> None:
    columns = [
        bucket_for(DecodeMode.GRAPH, 1, wanted).columns for wanted in (1, BUCKET_COLUMNS, 257)
    ]

    assert columns == [BUCKET_COLUMNS, BUCKET_COLUMNS, 2 * BUCKET_COLUMNS]


def test_only_the_buckets_used_last_are_kept() -> None:
    graphs = ScriptedGraphs()
    backend = backend_on(graphs)

    for rows in [*range(1, MOST_BUCKETS + 2), MOST_BUCKETS + 1, 1]:
        assert backend.prepare(DecodeMode.GRAPH, rows, 8) == ""

    assert graphs.captures == MOST_BUCKETS + 2


def test_a_capture_leaves_the_graph_for_its_steps_and_comes_back() -> None:
    graphs = ScriptedGraphs()
    engine = engine_on(backend_on(graphs))
    asked = requests()
    ready, _ = engine.prepare(asked, GRAPH)
    events: list[StepEvent] = []

    for event in engine.generate(asked, seed=0, zero_s=0.0, options=ready):
        events.append(event)
        if event.index == 1:
            engine.capture(AttentionChoice(layer=1, head=2))
        if event.index == 3:
            assert engine.attention is not None
            assert engine.attention.weights is not None
            engine.capture(None)

    eager, _ = run(engine_on(TorchRowBackend(tiny_model())), asked, GenerationOptions())
    graph, alone = DecodeMode.GRAPH, DecodeMode.EAGER
    assert modes_of(events) == [None, graph, alone, alone, graph, graph]
    assert [event.observed for event in events] == [False, False, True, True, False, False]
    assert ids_of(events) == ids_of(eager)
    assert (graphs.captures, graphs.replays) == (1, 3)


def test_a_step_timed_in_parts_leaves_the_graph() -> None:
    graphs = ScriptedGraphs()
    backend = backend_on(graphs)
    meter = PartMeter(tiny_model(), HostMarks())
    backend.is_watched = lambda: meter.is_on

    events, _ = run(engine_on(backend, meter), requests(), replace(GRAPH, split_every=2))

    graph, alone = DecodeMode.GRAPH, DecodeMode.EAGER
    assert modes_of(events) == [None, graph, alone, graph, alone, graph]
    assert [bool(event.parts) for event in events] == [True, False, True, False, True, False]


def test_a_capture_that_fails_leaves_an_eager_run_with_the_reason() -> None:
    graphs = ScriptedGraphs()
    graphs.refusal = RuntimeError("operation not permitted when stream is capturing\nand more")

    events, note = run(
        engine_on(backend_on(graphs)), requests(), GenerationOptions(decode=DecodeMode.GRAPH)
    )
    eager, _ = run(engine_on(TorchRowBackend(tiny_model())), requests(), GenerationOptions())

    assert note == (
        "the step could not be prepared (operation not permitted when stream is capturing)"
    )
    assert [replace(event, started_s=0.0, run_delay_s=0.0) for event in events] == [
        replace(event, started_s=0.0, run_delay_s=0.0) for event in eager
    ]


def test_a_run_after_a_failed_capture_can_be_recorded_again() -> None:
    graphs = ScriptedGraphs()
    graphs.refusal = RuntimeError("busy")
    engine = engine_on(backend_on(graphs))
    run(engine, requests(), GRAPH)
    graphs.refusal = None

    events, note = run(engine, requests(), GRAPH)

    assert note == ""
    assert modes_of(events)[-1] is DecodeMode.GRAPH


def test_trials_before_a_capture_leave_no_trace_in_the_cache() -> None:
    graphs = ScriptedGraphs()
    backend = backend_on(graphs)

    backend.prepare(DecodeMode.GRAPH, 1, 8)
    backend.start(CacheKind.STATIC, 8)

    assert graphs.trials > 0
    layers = backend.batch.cache.layers
    assert [int(layer.cumulative_length) for layer in layers] == [0, 0]
    assert not any(layer.keys.any() for layer in layers)


def test_an_eager_run_after_a_recorded_one_uses_no_graph() -> None:
    graphs = ScriptedGraphs()
    engine = engine_on(backend_on(graphs))
    run(engine, requests(), GRAPH)
    replays = graphs.replays

    events, note = run(engine, requests(), STATIC)

    assert (note, graphs.replays) == ("", replays)
    assert modes_of(events)[1:] == [DecodeMode.EAGER] * 5
    assert not any(event.observed for event in events)


def test_a_smaller_last_batch_runs_eagerly_on_a_cache_of_its_own_size() -> None:
    asked = requests(PROMPTS, new_tokens=(3, 3, 3))
    plan = BatchPlan(slots=2)

    mixed, note = run(engine_on(backend_on(ScriptedGraphs())), asked, replace(GRAPH, plan=plan))
    eager, _ = run(engine_on(TorchRowBackend(tiny_model())), asked, GenerationOptions(plan=plan))

    assert note == ""
    assert ids_of(mixed) == ids_of(eager)
    graph, alone = DecodeMode.GRAPH, DecodeMode.EAGER
    assert modes_of(mixed) == [None, graph, graph, None, alone, alone]


def test_rows_that_come_and_go_are_not_recorded() -> None:
    options = GenerationOptions(
        decode=DecodeMode.GRAPH, plan=BatchPlan(policy=Policy.CONTINUOUS, slots=2)
    )

    events, note = run(engine_on(backend_on(ScriptedGraphs())), requests(PROMPTS), options)

    assert note == "rows come and go, and a prepared step is for a fixed number of them"
    assert {event.decode for event in events if event.phase is Phase.DECODE} == {DecodeMode.EAGER}


def test_a_quantised_cache_is_kept_and_the_steps_are_eager() -> None:
    options = GenerationOptions(decode=DecodeMode.GRAPH, cache=CacheKind.QUANTISED)

    ready, note = engine_on(backend_on(ScriptedGraphs())).prepare(requests(), options)

    assert (ready.cache, ready.decode) == (CacheKind.QUANTISED, DecodeMode.EAGER)
    assert note == "a prepared step needs a static cache, not a quantised one"


def test_layers_whose_place_the_host_counts_are_not_recorded() -> None:
    sizes = tiny_config().to_dict()
    kept = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers")
    config = MistralConfig(
        **{name: sizes[name] for name in kept},
        num_attention_heads=4,
        num_key_value_heads=2,
        sliding_window=4,
    )
    backend = backend_on(ScriptedGraphs(), MistralForCausalLM(config).to(torch.float64).eval())

    assert "the host must count" in backend.prepare(DecodeMode.GRAPH, 1, 8)


def test_compiled_steps_are_compiled_once_and_then_recorded() -> None:
    compiled: list[Work] = []
    graphs = ScriptedGraphs()

    def compile_work(work: Work) -> Work:
        compiled.append(work)
        return work

    recorder = CompiledRecorder(graphs, compile_work)
    options = replace(GRAPH, decode=DecodeMode.COMPILED)
    events, note = run(engine_on(backend_on(recorder)), requests(), options)

    assert note == ""
    assert (len(compiled), graphs.captures) == (1, 1)
    assert modes_of(events)[1:] == [DecodeMode.COMPILED] * 5


def test_dynamo_follows_a_step_over_the_static_buffers() -> None:
    recorder = CompiledRecorder(
        PlainRecorder(), lambda work: torch.compile(work, backend="eager", dynamic=False)
    )
    options = replace(GRAPH, decode=DecodeMode.COMPILED)

    compiled, note = run(engine_on(backend_on(recorder)), requests(), options)
    eager, _ = run(engine_on(TorchRowBackend(tiny_model())), requests(), STATIC)

    assert note == ""
    assert ids_of(compiled) == ids_of(eager)


def test_more_buckets_than_dynamos_limit_are_all_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the ninth closure of one piece of code on, steps were eager and called compiled."""
    counted = CompileCounter()
    with_backend = functools.partial(torch.compile, backend=counted)
    monkeypatch.setattr(torch, "compile", functools.wraps(torch.compile)(with_backend))
    torch._dynamo.reset()
    made: list[PreparedStep] = []
    store = StepStore(
        LlamaForCausalLM(tiny_config(num_hidden_layers=1)).eval(),
        "cache",
        make=lambda _mode, _device: CompiledRecorder(PlainRecorder()),
        obstacle=lambda _mode, _device: "",
    )

    for rows in range(1, torch._dynamo.config.recompile_limit + 3):
        before = counted.frame_count
        step = store.prepare(DecodeMode.COMPILED, rows, 8)
        assert isinstance(step, PreparedStep), step
        made.append(step)
        assert counted.frame_count > before, f"{rows} rows"

    assert len(made) > torch._dynamo.config.recompile_limit


class HostReads(TorchDispatchMode):
    """Notes what a capture forbids: values read by the host, and constants copied from it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> object:
        if any(name in str(func) for name in FORBIDDEN):
            self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def small(config: type[Any], model: type[Any], **changes: object) -> PreTrainedModel:
    """Return a random model of two layers."""
    sizes = dict.fromkeys(("num_hidden_layers", "num_key_value_heads"), 2)
    sizes |= {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "head_dim": 8}
    return model(config(num_attention_heads=4, pad_token_id=0, **{**sizes, **changes})).eval()


MODELS = {
    "llama": tiny_model,
    "llama scaled": lambda: small(
        LlamaConfig,
        LlamaForCausalLM,
        rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4},
    ),
    "qwen2": lambda: small(Qwen2Config, Qwen2ForCausalLM),
    "qwen3": lambda: small(Qwen3Config, Qwen3ForCausalLM),
    "mistral": lambda: small(MistralConfig, MistralForCausalLM, sliding_window=None),
}


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("name", MODELS)
def test_nothing_in_a_prepared_step_is_read_by_the_host(name: str, rows: int) -> None:
    reads = HostReads()
    step = StepStore(MODELS[name](), "cache", obstacle=lambda _mode, _device: "").prepare(
        DecodeMode.GRAPH, rows, 8
    )
    assert not isinstance(step, str), step
    fed = torch.ones((rows, 1), dtype=torch.long)

    with torch.inference_mode(), reads:
        step.step(fed, {"position_ids": fed})

    assert reads.seen == []


def test_a_value_read_by_the_host_is_noticed() -> None:
    reads = HostReads()

    with reads:
        assert torch.ones(1).sum() == 1
        torch.tensor([1])

    assert len(reads.seen) == 2


def test_a_cpu_says_why_it_has_no_graph() -> None:
    backend = TorchRowBackend(tiny_model())

    ready, note = engine_on(backend).prepare(requests(), GenerationOptions(decode=DecodeMode.GRAPH))

    assert note == "a CUDA graph needs an NVIDIA GPU, and this run is on the CPU"
    assert ready == GenerationOptions()
    assert [(one.mode, one.reason) for one in decode_options(CPU)][:2] == [
        (DecodeMode.EAGER, ""),
        (DecodeMode.GRAPH, note),
    ]


def test_compiling_without_a_compiler_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")

    reason = mode_obstacle(DecodeMode.COMPILED, CPU)

    assert reason == "torch.compile needs a C++ compiler (g++), and none is installed"


def test_compiling_for_a_gpu_needs_a_c_compiler_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: object())
    monkeypatch.setenv("CC", "no-such-compiler")

    reason = mode_obstacle(DecodeMode.COMPILED, torch.device("cuda"))

    assert reason == "torch.compile needs a C compiler (gcc), and none is installed"


def test_a_compiler_that_fails_leaves_eager_steps_with_the_reason() -> None:
    """Triton calls the C compiler, whose failure is no RuntimeError."""
    graphs = ScriptedGraphs()
    graphs.refusal = CalledProcessError(1, ["gcc"])

    _, note = engine_on(backend_on(graphs)).prepare(requests(), GRAPH)

    assert note.startswith("the step could not be prepared (Command '['gcc']'")


def test_a_step_that_finds_no_room_is_prepared_in_that_of_those_kept() -> None:
    graphs = ScriptedGraphs()
    backend = backend_on(graphs)
    assert backend.prepare(DecodeMode.GRAPH, 1, 8) == ""
    kept = list(backend._steps._kept)
    record = graphs.record

    def full_once(work: Work, rewind: Rewind) -> Work:
        if backend._steps._kept:
            msg = "out of memory"
            raise torch.OutOfMemoryError(msg)
        return record(work, rewind)

    graphs.record = full_once

    assert backend.prepare(DecodeMode.GRAPH, 2, 8) == ""
    assert [one.rows for one in (*kept, *backend._steps._kept)] == [1, 2]
    assert len(backend._steps._kept) == 1


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("mode", [DecodeMode.GRAPH, DecodeMode.COMPILED])
def test_a_gpus_own_graph_chooses_the_ids_of_eager_steps(
    tiny_model_folder: Path, mode: DecodeMode
) -> None:
    model = LlamaForCausalLM.from_pretrained(tiny_model_folder, dtype=torch.float32).to("cuda")
    backend = TorchRowBackend(model)
    if reason := mode_obstacle(mode, model.device):
        pytest.skip(reason)

    asked = requests(PROMPTS, new_tokens=(6, 2, 4))
    replayed, note = run(engine_on(backend), asked, replace(GRAPH, decode=mode))
    eager, _ = run(engine_on(TorchRowBackend(model)), asked, STATIC)

    assert note == ""
    assert ids_of(replayed) == ids_of(eager)
    assert set(modes_of(replayed)[1:]) == {mode}


def test_host_time_is_told_with_each_step_where_the_clock_has_it() -> None:
    clock = ScriptedClock([0.01] * 10)
    clock.host_s = 0.004
    limits = GenerationLimits(eos_ids=frozenset(), context_tokens=None)
    engine = Engine(TorchRowBackend(tiny_model()), clock, limits)

    events = list(engine.generate(requests(new_tokens=(3,)), seed=0, zero_s=0.0))

    assert [event.host_s for event in events] == [0.004] * 3
