"""How each chapter's picture is read: what its marks are, and what may puzzle in it. No Streamlit.

They stand below the pictures, in Markdown, and do not count among the words beside them.
"""

from __future__ import annotations

from collections.abc import Callable

from inference.counting.roofline import lower_bound_seconds
from inference.records.rooflines import Bound
from visuals.charts.units import amount, byte_text, counted, milliseconds, share
from visuals.tour.chapters import Slug
from visuals.tour.facts import RunFacts


def reading(slug: Slug, facts: RunFacts) -> str:
    """Return how the chapter's picture is read, with the numbers of its run."""
    return READINGS[slug](facts)


def _forward_pass(_facts: RunFacts) -> str:
    return (
        "A box is a token: a word or a part of one, which the model takes as a number. \u00b7 is a "
        "space, \u23ce a new line. *Slanted*: control tokens, the chat markers that tell the model "
        "who speaks. Dashed: the token that this pass selected. A pass that feeds a prompt is "
        "called **prefill**; one that feeds the token just selected is called **decode**."
    )


def _cache(facts: RunFacts) -> str:
    return (
        f"Solid: the {facts.stored:,} tokens with a key and a value in the cache. Dashed: the last "
        "token selected, not stored. Press **Run again** to see the boxes fill step by step."
    )


def _mask(facts: RunFacts) -> str:
    return (
        "Each row of the picture is a query: one token fed, asking. Blue rows: the prompt's "
        f"{facts.prompt_tokens:,} tokens, all in one step. Orange: decode, one row a step; step k "
        "reads the prompt's keys and k more, its own included. Grey: not read, since it comes "
        "later."
    )


def _weight_reuse(facts: RunFacts) -> str:
    cost = facts.matrix(facts.prompt_tokens)
    matrix = cost.matrix
    read = cost.weight_bytes / matrix.copies
    rows, columns = matrix.in_features, matrix.out_features
    return (
        "W is a weight matrix, X what goes in, Y what comes out: a line for each token. **2**, "
        "since every weight is multiplied once and added once for each token. "
        f"{rows:,} \u00b7 {columns:,} weights of {read / rows / columns:.3g}\u00a0bytes are "
        f"{byte_text(read)}. That is one matrix of one layer; the model has "
        f"{counted(matrix.copies, 'of this kind', 'of this kind')}, and others."
    )


def _roofline(facts: RunFacts) -> str:
    if facts.roofs is None:
        return ""
    prefill = facts.step(0)
    least_s = lower_bound_seconds(prefill, facts.roofs)
    took, least = (amount(milliseconds(time), "ms") for time in (facts.prefill_s, least_s))
    roof = "compute" if facts.bound(prefill) is Bound.COMPUTE else "memory"
    why = (
        "other programs disturbed it."
        if facts.is_prefill_disturbed
        else "that roof was measured on a large product, and those of a short prompt are small."
    )
    return (
        "The lines are the **roofs**: the most that memory (slope) and processor (flat) of this "
        "machine were measured to do. Square: prefill. Circles: decode steps, one on the other, "
        "as all do nearly the same. Hollow: cold, observed or disturbed. "
        f"Prefill took {took} and the {roof} roof allows {least}, so it reaches "
        f"{share(least_s / facts.prefill_s)} of it: {why}"
    )


def _batching(_facts: RunFacts) -> str:
    return (
        "A row is one text here; each colour is a context length, so many tokens in every row. "
        "Points: **measured**; choose 8 rows to add one. Dashed: **counted**, the most that the "
        "roofs (chapter 5) allow. A curve bends where computing takes longer than reading. "
        "Triangle: from here on K/V is more bytes than the weights; the longer the context, the "
        "sooner. Dotted: where the matrix products alone turn. Chapter 5 counts whole steps, so "
        "its number of tokens differs a little."
    )


def _context(_facts: RunFacts) -> str:
    return (
        "Upper picture: a bar is one step of this run, the dashed line its counted minimum; hollow "
        "bars are cold, observed or disturbed steps. Lower picture: steps at every context. The "
        "bands are the least time for reading the weights and one row's K/V; each point is the "
        "median decode step of a run. Feed more letters to add a point further right."
    )


READINGS: dict[Slug, Callable[[RunFacts], str]] = {
    Slug.FORWARD_PASS: _forward_pass,
    Slug.CACHE: _cache,
    Slug.MASK: _mask,
    Slug.WEIGHT_REUSE: _weight_reuse,
    Slug.ROOFLINE: _roofline,
    Slug.BATCHING: _batching,
    Slug.CONTEXT: _context,
}
