"""How each recording that comes with the program is made: prompts, settings, model.

What each is there to show is said by ``visuals/words/teaching.py``, under the same names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from inference.models.miniatures import Miniature
from inference.process.messages import LoadModel
from inference.process.orders import RunOrder
from inference.records.attention import AttentionChoice
from inference.records.errors import InputError
from inference.records.options import BatchPlan, CacheKind, Policy, Sampling
from inference.runs.packed_attention import BUDGET_BYTES
from inference.runs.recordings import BATCH, COMPARISON, FIRST_RUN

ASSETS = Path(__file__).resolve().parents[2] / "assets"
GREEDY, DRAWN = Sampling(temperature=0.0), Sampling(temperature=1.0)
QUESTION, COMPARED, BATCHED = 1, (1, 2, 3), (0, 1, 2, 3)  # among the example prompts
REPEATS = 2
CHUNK_TOKENS = 128
# Short, and each with an answer of more than a line.
EIGHT_PROMPTS = (
    "Write a story about a river.",
    "Explain how rain forms.",
    "Describe a walk in a forest.",
    "Why do people read books?",
    "Explain what a computer is.",
    "Describe the city of Paris.",
    "Write a letter to a friend.",
    "Explain why leaves are green.",
)
# Of the default model the middle layer first, which is shown first; the first and the last, which
# look different.
MIDDLE = AttentionChoice(layer=15)
FIVE_LAYERS = tuple(AttentionChoice(layer=layer) for layer in (15, 0, 7, 22, 29))
MOST_ATTENTION_BYTES = 240_000  # as text, of one recording of several hundred tokens
WINDOW_MODEL = Miniature(
    config="Gemma-3-4B",
    sizes=(
        ("hidden_size", 64),
        ("intermediate_size", 128),
        ("num_hidden_layers", 12),  # twice five layers with a window and one without
        ("head_dim", 16),
        ("query_pre_attn_scalar", 16),
        ("sliding_window", 64),  # the prompt is shorter, prompt and answer are longer
        ("max_position_embeddings", 2048),
    ),
)
EXPERTS_MODEL = Miniature(
    config="Qwen3-30B-A3B",
    sizes=(
        ("hidden_size", 64),
        ("intermediate_size", 128),
        ("moe_intermediate_size", 32),
        ("num_hidden_layers", 4),
        ("num_attention_heads", 8),
        ("num_key_value_heads", 1),  # one for eight query heads, as published
        ("head_dim", 16),
        ("max_position_embeddings", 2048),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingPlan:
    """One recording.

    Attributes:
        orders: Its runs, in their order.
        samplings: How each row of a run chooses its tokens; empty for as its order says.
        captured: Whose attention weights are kept.
        attention_bytes: Most text that they take.
        miniature: What it runs on; None for the model loaded.
    """

    orders: tuple[RunOrder, ...]
    samplings: tuple[Sampling, ...] = ()
    captured: tuple[AttentionChoice, ...] = ()
    attention_bytes: int = BUDGET_BYTES
    miniature: Miniature | None = None


def recording_plans() -> dict[str, RecordingPlan]:
    """Return how each recording is made, by its name."""
    examples = _example_prompts()
    long_prompt = (ASSETS / "long_prompt.txt").read_text(encoding="utf-8")
    question = examples[QUESTION]
    return {
        FIRST_RUN: RecordingPlan(
            orders=(order_for([question], 64, split_every=16),), captured=FIVE_LAYERS
        ),
        COMPARISON: RecordingPlan(
            orders=tuple(order_for([examples[index]], 48) for index in COMPARED) * REPEATS
        ),
        BATCH: RecordingPlan(
            orders=(_arriving([examples[index] for index in BATCHED], 24, gap_s=0.4),)
        ),
        "long-prompt": RecordingPlan(
            orders=(order_for([long_prompt], 16),),
            captured=(MIDDLE,),
            attention_bytes=MOST_ATTENTION_BYTES,
        ),
        "batch-of-eight": RecordingPlan(orders=(order_for(EIGHT_PROMPTS, 24),), captured=(MIDDLE,)),
        "chunked-prefill": RecordingPlan(
            orders=(
                replace(
                    _arriving(["Count from one to fifty.", long_prompt], 24, gap_s=0.1),
                    chunk_tokens=CHUNK_TOKENS,
                ),
            )
        ),
        "sampling-against-greedy": RecordingPlan(
            orders=(order_for([question] * 2, 32),), samplings=(GREEDY, DRAWN)
        ),
        "quantised-cache": RecordingPlan(
            orders=(replace(order_for([question], 64), cache=CacheKind.QUANTISED),)
        ),
        "sliding-window": RecordingPlan(
            orders=(order_for([question], 48),),
            captured=(AttentionChoice(layer=4), AttentionChoice(layer=5)),
            miniature=WINDOW_MODEL,
        ),
        "mixture-of-experts": RecordingPlan(
            orders=(order_for([question], 32),),
            captured=(AttentionChoice(layer=2),),
            miniature=EXPERTS_MODEL,
        ),
    }


def check_recordings(names: Iterable[str]) -> None:
    """Raise InputError unless there are recordings of these names."""
    plans = recording_plans()
    unknown = [name for name in names if name not in plans]
    if unknown:
        msg = f"there is no recording {unknown[0]!r}; give one of {', '.join(plans)}"
        raise InputError(msg)


def order_for(prompts: Iterable[str], tokens: int, split_every: int | None = None) -> RunOrder:
    """Return a greedy order of prompts, one row each."""
    return RunOrder(
        prompts=tuple(prompts),
        max_new_tokens=tokens,
        sampling=GREEDY,
        seed=0,
        is_raw=False,
        load=LoadModel(model="default"),
        split_every=split_every,
        is_prefill_split=False,
    )


def _arriving(prompts: list[str], tokens: int, gap_s: float) -> RunOrder:
    """Return an order whose prompts come in one after another, into two slots."""
    return replace(
        order_for(prompts, tokens),
        plan=BatchPlan(policy=Policy.CONTINUOUS, slots=2),
        arrivals_s=tuple(gap_s * number for number in range(len(prompts))),
    )


def _example_prompts() -> list[str]:
    """Return the example prompts that stand in the list itself, by their place in it."""
    entries = json.loads((ASSETS / "examples.json").read_text(encoding="utf-8"))
    return [entry["prompt"] for entry in entries if "prompt" in entry]
