"""Small complete records, built by hand, for tests that need some but do not care which."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from inference.process.messages import LoadModel, ModelReady
from inference.process.orders import RunOrder
from inference.records.model import Device, LayerType, ModelShape, TokenizerFiles
from inference.records.options import Sampling
from inference.records.run import Request, RunInfo, RunTrace
from inference.records.steps import CacheState, Candidate, Phase, RowStep, StepEvent
from inference.records.telemetry import TelemetrySample
from inference.runs.run_file import read_bytes

LAYERS = 2
KV_BYTES_PER_TOKEN = 64
DEFAULT_LOAD = LoadModel(model="default")
TINY_DEVICE = Device(kind="cpu", name="a test machine", dtype="float32", memory_bytes=None)
TINY_SHAPE = ModelShape(
    model_type="llama",
    vocab_size=258,
    hidden_size=16,
    intermediate_size=32,
    num_hidden_layers=LAYERS,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=4,
    max_position_embeddings=64,
    tie_word_embeddings=True,
    layer_types=(LayerType.FULL,) * LAYERS,
    sliding_window=None,
    weight_bytes=4096,
    kv_dtype_bytes=4,
    kv_bytes_per_token=KV_BYTES_PER_TOKEN,
)


def run_from_json(text: str | bytes) -> RunTrace:
    """Return the one run of a run file's text."""
    [run] = read_bytes(text.encode() if isinstance(text, str) else text)
    return run


def byte_tokenizer_files() -> TokenizerFiles:
    """Return a tokenizer in which every byte is one token; 256 and 257 are control tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: at for at, letter in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<s>"), AddedToken("</s>")])
    return TokenizerFiles(
        tokenizer_json=tokenizer.to_str(),
        chat_template="{{ bos_token }}{% for m in messages %}{{ m['content'] }}{% endfor %}>",
        special_tokens=(("bos_token", "<s>"), ("eos_token", "</s>")),
        special_ids=(256, 257),
    )


def byte_id(letter: str) -> int:
    """Return the id of an ASCII letter in the byte tokenizer."""
    vocabulary = json.loads(byte_tokenizer_files().tokenizer_json)["model"]["vocab"]
    return vocabulary[letter]


def model_ready(load: LoadModel = DEFAULT_LOAD, context_limit: int = 64) -> ModelReady:
    """Return what the engine says when the tiny model is loaded."""
    return ModelReady(
        request=load,
        model_id="tiny",
        shape=TINY_SHAPE,
        device=TINY_DEVICE,
        tokenizer_files=byte_tokenizer_files(),
        context_limit=context_limit,
    )


def run_info(run_id: str = "run") -> RunInfo:
    """Return the tiny model's RunInfo."""
    return RunInfo(
        run_id=run_id,
        model_id="tiny",
        shape=TINY_SHAPE,
        device=TINY_DEVICE,
        attention="sdpa",
        clock="host",
        seed=0,
        started_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        versions=(("torch", "2.13.0"),),
    )


def step(index: int, prompt_tokens: int, token_id: int, *, request_id: str = "r0") -> StepEvent:
    """Return the prefill (index 0) or a decode step of one sequence."""
    context = prompt_tokens + index
    row = RowStep(
        request_id=request_id,
        slot=0,
        query_tokens=prompt_tokens if index == 0 else 1,
        context_tokens=context,
        token_id=token_id,
        logprob=-0.5,
        finish=None,
        candidates=(Candidate(token_id=token_id, logprob=-0.5),),
    )
    used = context * KV_BYTES_PER_TOKEN
    return StepEvent(
        index=index,
        phase=Phase.PREFILL if index == 0 else Phase.DECODE,
        rows=(row,),
        cache=CacheState(
            tokens_per_layer=(context,) * LAYERS, used_bytes=used, allocated_bytes=used
        ),
        started_s=float(index),
        duration_s=0.5,
        observed=False,
        cold=False,
    )


def order(
    prompt: str = "hello", *, load: LoadModel = DEFAULT_LOAD, new_tokens: int = 4
) -> RunOrder:
    """Return a greedy order for one raw prompt."""
    return RunOrder(
        prompts=(prompt,),
        max_new_tokens=new_tokens,
        sampling=Sampling(),
        seed=0,
        is_raw=True,
        load=load,
    )


def steps(*, prefill_s: float, decode_s: float, count: int) -> tuple[StepEvent, ...]:
    """Return a prefill of 8 tokens and ``count`` decode steps, one after the other without gaps."""
    first = replace(step(0, 8, 1), started_s=0.0, duration_s=prefill_s)
    rest = [
        replace(
            step(index, 8, 1),
            started_s=prefill_s + (index - 1) * decode_s,
            duration_s=decode_s,
        )
        for index in range(1, count + 1)
    ]
    return (first, *rest)


def trace_with(events: Sequence[StepEvent], samples: Sequence[TelemetrySample] = ()) -> RunTrace:
    """Return a run of these steps and readings, without a request."""
    return RunTrace(
        info=run_info(),
        requests=(),
        events=tuple(events),
        telemetry=tuple(samples),
        outputs=(),
    )


def numbered_request(number: int, prompt: int, *, new: int = 2, arrival_s: float = 0.0) -> Request:
    """Return a request with a prompt of this many tokens."""
    return Request(
        request_id=f"r{number}",
        prompt_text="",
        prompt_ids=tuple(range(1, prompt + 1)),
        max_new_tokens=new,
        sampling=Sampling(),
        arrival_s=arrival_s,
    )
