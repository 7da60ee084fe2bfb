"""The chapters in their order: the panels each shows, and the runs it makes.

The slugs are addresses and never change. No Streamlit, no torch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil

from inference.process.messages import LoadModel
from inference.process.orders import RunOrder
from inference.records.options import Sampling
from inference.records.run import RunTrace
from inference.records.status import RunState
from inference.runs.replay import run_until


class Slug(StrEnum):
    """A chapter as addresses name it."""

    FORWARD_PASS = "forward-pass"  # noqa: S105  no password
    CACHE = "cache"
    MASK = "mask"
    WEIGHT_REUSE = "weight-reuse"
    ROOFLINE = "roofline"
    BATCHING = "batching"
    CONTEXT = "context"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One run that a chapter can make of the reader's prompt.

    Attributes:
        name: As the page offers it.
        prompt: Fed instead of the reader's; empty for the reader's.
        repeats: How often the prompt is fed, one copy after the other.
        letters: Or as often as fills this many letters; 0 for no matter how many.
        tokens: Maximum of new tokens.
        rows: How many times the prompt runs, as one batch.
        is_raw: Fed without the chat markers of the model.
    """

    name: str
    prompt: str = ""
    repeats: int = 1
    letters: int = 0
    tokens: int = 24
    rows: int = 1
    is_raw: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """One idea.

    Attributes:
        panels: Of the live panel, by their names; the header stands above them.
        variants: The first is the chapter's own run, the others are offered to try.
        steps_per_s: Pace of its runs, where one should see the steps; None for as fast as it goes.
        has_roofs: Its figures rest on this machine's roofs.
        most_steps: Steps shown of a recorded run at most; None for all of them.
    """

    slug: Slug
    panels: tuple[str, ...]
    variants: tuple[Variant, ...]
    steps_per_s: float | None = None
    has_roofs: bool = False
    most_steps: int | None = None


YOURS = Variant(name="your prompt")
SHORT = Variant(name="only \u201cHi!\u201d, no chat markers", prompt="Hi!", is_raw=True)
CHAPTERS = (
    Chapter(
        slug=Slug.FORWARD_PASS,
        panels=("tokens",),
        variants=(
            replace(YOURS, tokens=1),
            replace(SHORT, tokens=1),
            Variant(name="it twice", repeats=2, tokens=1),
        ),
        most_steps=1,
    ),
    Chapter(
        slug=Slug.CACHE,
        panels=("tokens",),
        variants=(
            Variant(name="8 new tokens", tokens=8),
            Variant(name="4 new tokens", tokens=4),
            Variant(name="16 new tokens", tokens=16),
        ),
        steps_per_s=2.0,
        most_steps=8,
    ),
    Chapter(
        slug=Slug.MASK,
        panels=("mask",),
        variants=(
            replace(YOURS, tokens=12),
            replace(SHORT, tokens=12),
            Variant(name="it twice", repeats=2, tokens=12),
        ),
        steps_per_s=4.0,
        most_steps=12,
    ),
    Chapter(
        slug=Slug.WEIGHT_REUSE,
        panels=("weights",),
        variants=(YOURS, SHORT, Variant(name="8 copies of it", repeats=8)),
    ),
    Chapter(
        slug=Slug.ROOFLINE,
        panels=("roofline",),
        variants=(YOURS, SHORT, Variant(name="8 copies of it", repeats=8)),
        has_roofs=True,
    ),
    Chapter(
        slug=Slug.BATCHING,
        panels=(),
        variants=(
            Variant(name="1 row"),
            Variant(name="2 rows", rows=2),
            Variant(name="4 rows", rows=4),
            Variant(name="8 rows", rows=8),
        ),
        has_roofs=True,
    ),
    Chapter(
        slug=Slug.CONTEXT,
        panels=("latency",),
        variants=(
            YOURS,
            Variant(name="2,000 letters", letters=2000),
            Variant(name="6,000 letters", letters=6000),
        ),
    ),
)


def chapter_at(slug: str) -> Chapter | None:
    """Return the chapter that an address names; None where it names none."""
    return next((chapter for chapter in CHAPTERS if chapter.slug == slug), None)


def variant_of(chapter: Chapter, name: str) -> Variant:
    """Return the chapter's variant of this name; its own run where there is none."""
    return next((one for one in chapter.variants if one.name == name), chapter.variants[0])


def order_of(chapter: Chapter, variant: Variant, prompt: str) -> RunOrder:
    """Return the order of a chapter's run of the reader's prompt."""
    text = variant.prompt or prompt
    repeats = max(variant.repeats, ceil(variant.letters / max(len(text), 1)))
    joined = "\n".join([text] * repeats)
    return RunOrder(
        prompts=(joined,) * variant.rows,
        max_new_tokens=variant.tokens,
        sampling=Sampling(temperature=0.0),
        seed=0,
        is_raw=variant.is_raw,
        load=LoadModel(model="default"),
        steps_per_s=chapter.steps_per_s,
        is_prefill_split=False,
    )


def recorded_for(chapter: Chapter, trace: RunTrace) -> RunTrace:
    """Return a recorded run as far as the chapter shows it, as if no more had been asked for."""
    steps = chapter.most_steps
    if steps is None or steps >= len(trace.events):
        return trace
    asked = tuple(replace(request, max_new_tokens=steps) for request in trace.requests)
    return replace(run_until(trace, steps, RunState.DONE), requests=asked)
