"""What each recording that comes with the program is there to show: a title and one sentence.

By the names under which ``inference/process/recording_plans.py`` makes them, in the order in which
they teach. A test holds the two together.
"""

from __future__ import annotations

from dataclasses import dataclass

RANDOM = (
    "This model is a published one made small and its weights are random: what it writes is noise, "
    "and only the shapes are to be looked at."
)
NO_GPU = "None of them was made on a GPU, since there was none where they were recorded."
RANDOM_AGAIN = "Its random weights were not kept, so it cannot be run again."
MIXED_AGAIN = "Each row chose its tokens in a way of its own, which the settings cannot say."
TITLE = "Recorded runs, each with one thing to see"


@dataclass(frozen=True, slots=True, kw_only=True)
class TeachingRun:
    """One recording.

    Attributes:
        name: Of the recording.
        title: A few words.
        look_at: What to look at, in one sentence.
        panel: The panel that shows it.
        is_random: The model's weights are random.
        no_again: Why it cannot be run again from here; empty where it can.
    """

    name: str
    title: str
    look_at: str
    panel: str
    is_random: bool = False
    no_again: str = ""


TEACHING = (
    TeachingRun(
        name="why-is-decode-slow",
        title="Prefill, then decode",
        look_at="The first step feeds the whole prompt at once, each later one a single token, and "
        "yet a decode step takes several times its share of that time: it reads the same weights.",
        panel="latency",
    ),
    TeachingRun(
        name="long-prompt",
        title="A long prompt",
        look_at="One prefill of about a thousand tokens takes longer than all decode steps "
        "together, and each decode step then reads the K/V of all of them.",
        panel="mask",
    ),
    TeachingRun(
        name="three-prompts",
        title="Three prompts, one after another",
        look_at="A longer prompt makes the prefill longer and leaves the decode steps as they are.",
        panel="latency",
    ),
    TeachingRun(
        name="batch-of-eight",
        title="A batch of eight",
        look_at="Each step reads the weights once for eight rows, while every row brings K/V of "
        "its own: compare the bytes of the two on the right.",
        panel="batch",
    ),
    TeachingRun(
        name="four-requests",
        title="Continuous batching",
        look_at="Two slots serve four requests: as soon as one is done the next one's prompt is "
        "fed, and the other slot waits for that prefill.",
        panel="batch",
    ),
    TeachingRun(
        name="chunked-prefill",
        title="Chunked prefill",
        look_at="The long prompt is fed 128 tokens at a time, and between two chunks the other "
        "request gets a decode step, so no token of it waits for the whole prompt.",
        panel="batch",
    ),
    TeachingRun(
        name="sampling-against-greedy",
        title="Sampling against greedy",
        look_at="Both rows have the same prompt: the first always takes the likeliest token, the "
        "second draws one by its probability, and from the first other choice on they part.",
        panel="tokens",
        no_again=MIXED_AGAIN,
    ),
    TeachingRun(
        name="quantised-cache",
        title="A quantised K/V cache",
        look_at="The prompt is that of the first run, but keys and values are stored in one byte "
        "each and not in four, so the line of bytes grows a quarter as fast.",
        panel="kv",
    ),
    TeachingRun(
        name="sliding-window",
        title="A sliding window",
        look_at="Five layers of six attend to the last 64 tokens only, so the line of bytes bends "
        "there: from then on the K/V of the sixth alone grows.",
        panel="kv",
        is_random=True,
        no_again=RANDOM_AGAIN,
    ),
    TeachingRun(
        name="mixture-of-experts",
        title="A mixture of experts",
        look_at="A token passes through 8 of 128 experts, so a decode step reads one sixteenth of "
        "their weights, while the tokens of a prompt together need most of them.",
        panel="weights",
        is_random=True,
        no_again=RANDOM_AGAIN,
    ),
)


def teaching_run(name: str) -> TeachingRun | None:
    """Return what a recording shows, by its name or that of one of its runs; None for no such."""
    return next(
        (one for one in TEACHING if name == one.name or name.startswith(f"{one.name}-")), None
    )
