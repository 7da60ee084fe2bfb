"""From chosen prompts and settings to the runs of a comparison, in the order they are made.

Pure: the shuffle is seeded. No torch, no page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product
from random import Random

from inference.process.orders import RunOrder
from inference.records.options import AttentionKind, CacheKind, DecodeMode, Sampling
from inference.records.prompts import UploadedPrompt
from visuals.live.groups import PlannedRun

MAX_SUBJECTS = 16
MAX_REPEATS = 10
WARM_UP_TOKENS = 3
HEAD_CHARACTERS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSettings:
    """How the runs of a comparison are made.

    Attributes:
        repeats: Runs of each subject.
        is_shuffled: Each round in an order of its own.
        is_batch: All prompts as the rows of one batch.
        is_warmed: A short run that is not compared goes before the first run of each model.
        seed: Of the shuffle.
    """

    repeats: int = 1
    is_shuffled: bool = False
    is_batch: bool = False
    is_warmed: bool = True
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The values of each setting that one prompt is run under; one value stands for no choice.

    Attributes:
        rows: Copies of the prompt that run as one batch; 1 for the prompt alone.
    """

    models: tuple[str, ...]
    dtypes: tuple[str, ...]
    attentions: tuple[AttentionKind, ...] = (AttentionKind.AUTO,)
    rows: tuple[int, ...] = (1,)
    samplings: tuple[Sampling, ...]
    caches: tuple[CacheKind, ...]
    chunks: tuple[int | None, ...]
    decodes: tuple[DecodeMode, ...]


def prompt_orders(base: RunOrder, prompts: Iterable[UploadedPrompt]) -> tuple[RunOrder, ...]:
    """Return an order for each prompt, all of the same settings."""
    return tuple(
        replace(base, prompts=(one.text,), turns=(one.turns,) if one.turns else ())
        for one in prompts
    )


def setting_orders(base: RunOrder, choices: Choices) -> tuple[RunOrder, ...]:
    """Return an order of the same prompt for every combination of settings."""
    loads = product(choices.models, choices.dtypes, choices.attentions)
    runs = product(choices.samplings, choices.caches, choices.chunks, choices.decodes, choices.rows)
    return tuple(
        replace(
            base,
            load=replace(base.load, model=model, dtype=dtype, attention=attention),
            sampling=sampling,
            cache=cache,
            chunk_tokens=chunk,
            decode=decode,
            prompts=base.prompts[:1] * rows,
        )
        for (model, dtype, attention), (sampling, cache, chunk, decode, rows) in product(
            loads, runs
        )
    )


def as_batch(orders: Sequence[RunOrder]) -> tuple[RunOrder, ...]:
    """Return one order that runs the prompts of all of them together."""
    if not orders:
        return ()
    has_turns = any(order.turns for order in orders)
    turns = tuple(order.turns[0] if order.turns else () for order in orders)
    prompts = tuple(order.prompts[0] for order in orders)
    return (replace(orders[0], prompts=prompts, turns=turns if has_turns else ()),)


def planned_runs(orders: Sequence[RunOrder], settings: PlanSettings) -> tuple[PlannedRun, ...]:
    """Return the runs in order: round after round, so that a drift touches all subjects alike.

    Runs of one loaded model stay together, since loading takes long.
    """
    chosen = as_batch(orders) if settings.is_batch else tuple(orders)
    shuffle = Random(settings.seed)
    by_load = sorted(chosen, key=lambda order: _first_use(order, chosen))
    planned: list[PlannedRun] = []
    for _, same_load in groupby(by_load, key=lambda order: order.load):
        same = list(same_load)
        if settings.is_warmed:
            planned.append(_warm_up(same[0]))
        for round_number in range(1, settings.repeats + 1):
            if settings.is_shuffled:
                shuffle.shuffle(same)
            planned += [_planned(order, round_number, settings.repeats) for order in same]
    return tuple(planned)


def _first_use(order: RunOrder, orders: Sequence[RunOrder]) -> int:
    return [other.load for other in orders].index(order.load)


def _warm_up(order: RunOrder) -> PlannedRun:
    short = replace(order, max_new_tokens=min(WARM_UP_TOKENS, order.max_new_tokens))
    return PlannedRun(label="warm-up, not compared", order=short, is_warm_up=True)


def _planned(order: RunOrder, round_number: int, rounds: int) -> PlannedRun:
    head = " ".join(order.prompts[0].split())[:HEAD_CHARACTERS]
    rows, is_copied = len(order.prompts), len(set(order.prompts)) == 1
    what = head if is_copied else f"{rows} prompts as one batch"
    settings = {
        order.load.dtype: order.load.dtype != "auto",
        f"{order.load.attention.value} attention": order.load.attention is not AttentionKind.AUTO,
        f"batch of {rows}": is_copied and rows > 1,
        f"{order.cache.value} cache": order.cache is not CacheKind.DYNAMIC,
        f"chunks of {order.chunk_tokens}": order.chunk_tokens is not None,
        f"{order.decode.value} decode": order.decode is not DecodeMode.EAGER,
        f"temperature {order.sampling.temperature:g}": not order.sampling.is_greedy,
    }
    named = [words for words, is_named in settings.items() if is_named]
    rounds_named = [f"round {round_number} of {rounds}"] if rounds > 1 else []
    return PlannedRun(label=", ".join((what, *named, *rounds_named)), order=order)
