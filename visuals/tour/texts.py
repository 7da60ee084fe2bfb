"""Every sentence of the tour, with the figures of the run that it speaks of. No Streamlit.

What stands beside a picture, idea and figures together, has at most 60 words. Texts are Markdown;
what comes from a prompt or a model is escaped by the page.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from inference.records.rooflines import Bound
from visuals.charts.units import (
    amount,
    byte_text,
    capacity,
    counted,
    flop_text,
    milliseconds,
    scaled,
    share,
)
from visuals.tour.chapters import Slug
from visuals.tour.facts import RunFacts
from visuals.tour.questions import Question, nearby

MOST_WORDS = 60
DISTURBED = ", disturbed by other programs"
Changed = dict[str, str]  # figures by their names
WELCOME = (
    "Seven short chapters show what a language model does with **your prompt** on this machine. "
    "Each makes a real run; every number comes from it."
)
IN_PROGRESS = "The run is in progress. Its numbers and the question appear when it has ended."
NO_NUMBERS = "This run ended before its first step, so it has no numbers. Press **Run again**."
UNKNOWN = (
    "The tour has no chapter named {name}. This is the first one; the others are listed below."
)
LOADING = "Your own run takes its place once the model is loaded."
NO_MODEL = "No model could be loaded here, so nothing can be run: {reason}"
NO_ROOFS = (
    "This machine's roofs are not measured yet. That happens by itself once the engine is idle; "
    "then your own run takes its place."
)
ELSEWHERE = "Your own run takes its place once a model is loaded."
NOTHING_TO_TRY = "This needs a model that runs here. Until then the recording stands."
FINISHED = "All seven questions answered. You can go back to any chapter, or make runs of your own."


@dataclass(frozen=True, slots=True, kw_only=True)
class ChapterText:
    """What a chapter says.

    Attributes:
        title: A few words.
        idea: Its one idea.
        figures: The idea in the numbers of a run.
        try_label: What the control changes.
        changed: What is compared after a change, by name.
        question: Asked of a run.
    """

    title: str
    idea: str
    figures: Callable[[RunFacts], str]
    try_label: str
    changed: Callable[[RunFacts], Changed]
    question: Callable[[RunFacts], Question]


def beside_picture(text: ChapterText, facts: RunFacts) -> str:
    """Return all that stands beside a chapter's picture."""
    return f"{text.idea} {text.figures(facts)}"


def _pass_figures(facts: RunFacts) -> str:
    return (
        f"Here **T = {facts.prompt_tokens:,}** and **L = {facts.prompt_tokens:,}**: your prompt "
        "with the model's chat markers."
    )


def _pass_changed(facts: RunFacts) -> Changed:
    return {
        "Tokens fed (T)": f"{facts.prompt_tokens:,}",
        "Context (L)": f"{facts.prompt_tokens:,}",
        "Tokens selected": f"{facts.outputs:,}",
        "First token": facts.selected,
        "Step time": _prefill_time(facts),
    }


def _pass_question(facts: RunFacts) -> Question:
    after = facts.prompt_tokens + 1
    sum_text = f"{facts.prompt_tokens:,} + 1 = {after:,}"
    return Question(
        text="The next pass is fed only the token just selected, so T = 1. What is L then?",
        answer=str(after),
        right=f"Right: the prompt's tokens and the new one, {sum_text}.",
        wrong=(
            f"Not quite. L counts every token that can be attended to, the fed one included: "
            f"{sum_text}."
        ),
    )


def _cache_figures(facts: RunFacts) -> str:
    n = facts.outputs
    return (
        f"N output tokens: 1 prefill + (N \u2212 1) decode. Here 1 + {n - 1:,} = "
        f"**{counted(len(facts.row_steps), 'step')}**."
    )


def _cache_changed(facts: RunFacts) -> Changed:
    return {
        "Output tokens (N)": f"{facts.outputs:,}",
        "Steps, 1 + (N \u2212 1)": f"{len(facts.row_steps):,}",
        "Tokens stored at the end": f"{facts.stored:,}",
        "K/V stored": capacity(facts.used_bytes),
    }


def _cache_question(facts: RunFacts) -> Question:
    known = facts.prompt_tokens + facts.outputs
    return Question(
        text=(
            f"The prompt has {facts.prompt_tokens:,} tokens, and {facts.outputs:,} were selected. "
            "How many tokens are stored at the end?"
        ),
        answer=str(facts.stored),
        right=f"Right: {known:,} tokens, less the last one selected. It was never fed.",
        wrong=(
            f"Not quite. {known:,} tokens are known, but the last one selected was never fed, so "
            f"it has no key and no value: {facts.stored:,} are stored."
        ),
    )


def _mask_figures(facts: RunFacts) -> str:
    return (
        f"Here prefill fills {facts.prompt_tokens:,} rows with {facts.prefill_cells:,} cells; "
        f"decode step 1 reads **{facts.keys_read(1):,} keys**."
    )


def _mask_step(facts: RunFacts) -> int:
    return max(1, min(3, facts.decode_steps))


def _mask_changed(facts: RunFacts) -> Changed:
    step = _mask_step(facts)
    return {
        "Rows of prefill": f"{facts.prompt_tokens:,}",
        "Cells of prefill": f"{facts.prefill_cells:,}",
        "Rows of decode": f"{facts.decode_steps:,}",
        "Keys read by decode step 1": f"{facts.keys_read(1):,}",
        "Cells if all read all": f"{facts.prompt_tokens**2:,}",
    } | ({} if step == 1 else {f"Keys read by decode step {step}": f"{facts.keys_read(step):,}"})


def _mask_question(facts: RunFacts) -> Question:
    step = facts.decode_steps + 1
    keys = facts.keys_read(step)
    sum_text = f"{facts.prompt_tokens:,} of the prompt + {step:,} = {keys:,}"
    return Question(
        text=(
            f"This run had {counted(facts.decode_steps, 'decode step')}. How many keys would "
            f"decode step {step:,} read?"
        ),
        answer=str(keys),
        right=f"Right: {sum_text}. Step k reads the prompt's keys and k more, its own included.",
        wrong=(
            f"Not quite. Each decode step stores one key more and reads its own too: {sum_text}."
        ),
    )


def _reuse_figures(facts: RunFacts) -> str:
    cost = facts.matrix(facts.prompt_tokens)
    matrix, copies = cost.matrix, cost.matrix.copies
    return (
        f"Matrix `{matrix.name.rpartition('.')[2]}`, prefill: 2 \u00b7 {cost.tokens:,} \u00b7 "
        f"{matrix.in_features:,} \u00b7 {matrix.out_features:,} = "
        f"**{flop_text(cost.flops / copies)}** for {byte_text(cost.weight_bytes / copies)} read."
    )


def _reuse_changed(facts: RunFacts) -> Changed:
    prefill, decode = facts.matrix(facts.prompt_tokens), facts.matrix(1)
    copies = prefill.matrix.copies
    return {
        "Tokens fed in prefill (T)": f"{facts.prompt_tokens:,}",
        "FLOP of the matrix, prefill": flop_text(prefill.flops / copies),
        "FLOP of the matrix, decode": flop_text(decode.flops / copies),
        "Bytes of the matrix read, both": byte_text(decode.weight_bytes / copies),
        "Prefill time for each token": _prefill_time(facts, facts.prompt_tokens),
        "Decode time for each token": _decode_time(facts),
    }


def _reuse_question(facts: RunFacts) -> Question:
    prefill, decode = facts.matrix(facts.prompt_tokens), facts.matrix(1)
    copies = prefill.matrix.copies
    many, one = flop_text(prefill.flops / copies), flop_text(decode.flops / copies)
    half = flop_text(decode.flops / copies / 2)
    read = byte_text(decode.weight_bytes / copies)
    return Question(
        text="A decode step feeds one token. How much does the same matrix compute in it?",
        options=tuple(dict.fromkeys((many, one, half))),
        answer=one,
        right=f"Right: T = 1 leaves {one}, and still all {read} of the matrix are read.",
        wrong=(
            f"Not quite. Put T = 1 into 2 \u00b7 T \u00b7 d_in \u00b7 d_out: {one}. The {read} are "
            "read all the same."
        ),
    )


def _roof_figures(facts: RunFacts) -> str:
    if facts.roofs is None:
        return ""
    prefill, turn = facts.step(0), facts.compute_bound_tokens
    decode = facts.prefill_of(1) if facts.decode_steps == 0 else facts.step(-1)
    turns = f" From **{counted(turn, 'token')}** on, computing limits prefill." if turn else ""
    ridge = _number(facts.roofs.ridge_flops_per_byte)
    return (
        f"Here, in FLOP per byte: prefill {_number(prefill.flops_per_byte)}, decode "
        f"{_number(decode.flops_per_byte)}, ridge {ridge}.{turns}"
    )


def _roof_changed(facts: RunFacts) -> Changed:
    prefill = facts.step(0)
    return {
        "Tokens fed in prefill (T)": f"{facts.prompt_tokens:,}",
        "Prefill, counted": amount(prefill.flops_per_byte, "FLOP/byte"),
        "Prefill is limited by": _limit(facts.bound(prefill)),
        "Prefill took": _prefill_time(facts),
        "Prefill speed": scaled(facts.prompt_tokens / facts.prefill_s, "tok/s"),
        "Decode is limited by": _limit(facts.bound(facts.prefill_of(1))),
    }


def _roof_question(facts: RunFacts) -> Question:
    turn = facts.compute_bound_tokens
    tokens = 100 if turn is None else max(1, turn // 2)
    cost = facts.prefill_of(tokens)
    is_compute = facts.bound(cost) is Bound.COMPUTE
    side = "right" if is_compute else "left"
    ridge = None if facts.roofs is None else facts.roofs.ridge_flops_per_byte
    where = f"{_number(cost.flops_per_byte)} FLOP/byte lies {side} of the ridge at {_number(ridge)}"
    limit = _limit(Bound.COMPUTE if is_compute else Bound.MEMORY)
    return Question(
        text=f"What limits the prefill of a prompt of {counted(tokens, 'token')} on this machine?",
        options=(_limit(Bound.MEMORY), _limit(Bound.COMPUTE)),
        answer=limit,
        right=f"Right: {where}. The name \u201cprefill\u201d does not decide it; the tokens do.",
        wrong=f"Not quite. {where[0].upper()}{where[1:]}, so {limit} is the limit.",
    )


def _batch_figures(facts: RunFacts) -> str:
    row = facts.stored * facts.kv_token_bytes
    return (
        f"Here: {byte_text(facts.weight_bytes)} of weights for all rows, **{byte_text(row)}** of "
        f"K/V for each row of {facts.stored:,} tokens."
    )


def _batch_changed(facts: RunFacts) -> Changed:
    cost = facts.batch_step()
    rate = None if facts.decode_s is None else facts.rows / facts.decode_s
    return {
        "Rows": f"{facts.rows:,}",
        "Decode step time, median": _decode_time(facts),
        "Tokens/s, all rows": scaled(rate, "tok/s"),
        "Weights read in a step": byte_text(cost.weight_bytes),
        "K/V read in a step": byte_text(cost.kv_read_bytes),
    }


def _batch_question(facts: RunFacts) -> Question:
    turn = facts.kv_overtakes_rows or 0
    weights, row = byte_text(facts.weight_bytes), byte_text(facts.stored * facts.kv_token_bytes)
    division = f"{weights} \u00f7 {row} \u2248 {turn:,}"
    return Question(
        text=(
            f"From how many rows of {facts.stored:,} tokens on does a step read more K/V than "
            "weights?"
        ),
        options=nearby(turn, max(turn // 20, 1), turn * 20),
        answer=f"{turn:,}",
        right=(
            f"Right: {division}. With contexts ten times as long, a tenth of the rows is enough."
        ),
        wrong=f"Not quite. Divide the weights by one row's K/V: {division}.",
    )


def _context_figures(facts: RunFacts) -> str:
    first = facts.step(min(1, facts.decode_steps))
    last = facts.step(-1)
    return (
        f"Here: weights {byte_text(last.weight_bytes)} in each step; K/V "
        f"{byte_text(first.kv_read_bytes)} in the first decode step, "
        f"**{byte_text(last.kv_read_bytes)}** in the last."
    )


def _context_changed(facts: RunFacts) -> Changed:
    last = facts.step(-1)
    return {
        "Context at the end (L)": f"{facts.stored:,}",
        "Weights read in a step": byte_text(last.weight_bytes),
        "K/V read in the last step": byte_text(last.kv_read_bytes),
        "K/V, share of all bytes": share(last.kv_read_bytes / last.bytes_moved),
        "Decode step time, median": _decode_time(facts),
    }


def _context_question(facts: RunFacts) -> Question:
    turn = facts.kv_overtakes_context or 0
    weights, token = byte_text(facts.weight_bytes), byte_text(facts.kv_token_bytes)
    division = f"{weights} \u00f7 {token} a token \u2248 {turn:,}"
    most = facts.info.shape.max_position_embeddings
    beyond = (
        f" This model takes at most {most:,} tokens, so with one row it never gets there."
        if most and most < turn
        else ""
    )
    return Question(
        text="At which context does one row's K/V take as many bytes as all weights?",
        options=nearby(turn, max(turn // 20, 1), turn * 20),
        answer=f"{turn:,}",
        right=f"Right: {division}.{beyond}",
        wrong=f"Not quite. Divide the weights by the K/V of one token: {division}.{beyond}",
    )


def _prefill_time(facts: RunFacts, tokens: int = 1) -> str:
    """Return the time of prefill, or its part for each of its tokens."""
    text = amount(milliseconds(facts.prefill_s / tokens), "ms")
    return f"{text}{DISTURBED}" if facts.is_prefill_disturbed else text


def _decode_time(facts: RunFacts) -> str:
    text = amount(milliseconds(facts.decode_s), "ms")
    return f"{text}{DISTURBED}" if facts.is_decode_disturbed else text


def _number(value: float | None) -> str:
    return amount(value, "").strip()


def _limit(bound: Bound | None) -> str:
    if bound is None:
        return "not known"
    return "computing" if bound is Bound.COMPUTE else "reading memory"


TEXTS: dict[Slug, ChapterText] = {
    Slug.FORWARD_PASS: ChapterText(
        title="One forward pass",
        idea=(
            "A model reads text in pieces, called tokens. One run through all its layers is a "
            "forward pass: tokens go in, one next token comes out. **T** is how many tokens are "
            "fed, **L** how many they can look back on, themselves included."
        ),
        figures=_pass_figures,
        try_label="Feed",
        changed=_pass_changed,
        question=_pass_question,
    ),
    Slug.CACHE: ChapterText(
        title="What is stored",
        idea=(
            "The first step feeds the prompt (**prefill**), each later one the token just selected "
            "(**decode**). A token fed leaves a key and a value (**K/V**) in each layer, so none "
            "is fed twice. A token only selected is not stored yet."
        ),
        figures=_cache_figures,
        try_label="Select at most",
        changed=_cache_changed,
        question=_cache_question,
    ),
    Slug.MASK: ChapterText(
        title="The mask",
        idea=(
            "A row is a token fed, a column a stored key. A filled cell: this token reads that "
            "key. None reads ahead, since the next token is what it has to predict. So prefill is "
            "a triangle, and each decode step adds a row."
        ),
        figures=_mask_figures,
        try_label="Feed",
        changed=_mask_changed,
        question=_mask_question,
    ),
    Slug.WEIGHT_REUSE: ChapterText(
        title="Weight reuse",
        idea=(
            "A step reads each weight matrix, d_in by d_out, from memory once and multiplies all T "
            "tokens with it: 2 \u00b7 T \u00b7 d_in \u00b7 d_out operations (FLOP). Prefill shares "
            "one read among many tokens; decode has one."
        ),
        figures=_reuse_figures,
        try_label="Feed",
        changed=_reuse_changed,
        question=_reuse_question,
    ),
    Slug.ROOFLINE: ChapterText(
        title="The roofline",
        idea=(
            "A step takes as long as the slower of two: reading its bytes, or computing its FLOP. "
            "Left of the ridge, where the lines meet, reading is slower; right of it, computing. "
            "More tokens for one read move a step right."
        ),
        figures=_roof_figures,
        try_label="Feed",
        changed=_roof_changed,
        question=_roof_question,
    ),
    Slug.BATCHING: ChapterText(
        title="Batching",
        idea=(
            "Several texts can be decoded together, each a row of a batch. One read of the weights "
            "serves all rows, until computing takes longer than reading. K/V is not shared: long "
            "contexts end the benefit sooner."
        ),
        figures=_batch_figures,
        try_label="Run your prompt as",
        changed=_batch_changed,
        question=_batch_question,
    ),
    Slug.CONTEXT: ChapterText(
        title="A growing context",
        idea=(
            "A decode step reads all weights, the same bytes each time, and the K/V of every token "
            "so far, its own included. So a step costs more the longer the text, slowly at first."
        ),
        figures=_context_figures,
        try_label="Feed",
        changed=_context_changed,
        question=_context_question,
    ),
}
