"""Every term of the field that a page uses: one plain sentence, and its chapter in the tour.

Order is that of README: what a step is, what is stored and read, batches, limits.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One term.

    Attributes:
        key: Its name in addresses, styles and tests.
        name: As the field writes it.
        spelled: In full; the same as the name where nothing is shortened.
        sentence: What it means, in one plain sentence.
        chapter: The slug of the chapter of the tour that shows it.
        forms: How a page may write it. One in small letters stands for any letter case; another
            only for itself.
    """

    key: str
    name: str
    spelled: str
    sentence: str
    chapter: str
    forms: tuple[str, ...]

    @property
    def title(self) -> str:
        """The term with its spelled-out form, where that says more."""
        return self.name if self.spelled == self.name else f"{self.spelled} ({self.name})"


def _term(key: str, chapter: str, names: str | tuple[str, str], sentence: str, *forms: str) -> Term:
    """Return a term; ``names`` is its name, or its name and spelled-out form."""
    name, spelled = (names, names) if isinstance(names, str) else names
    return Term(
        key=key, name=name, spelled=spelled, sentence=sentence, chapter=chapter, forms=forms
    )


TERMS: tuple[Term, ...] = (
    _term(
        "token",
        "forward-pass",
        "token",
        "A piece of text, often a word or part of one; the model reads and writes nothing smaller.",
        "token",
        "tokens",
    ),
    _term(
        "prefill",
        "forward-pass",
        "prefill",
        "The steps that feed the prompt, many tokens at once, and choose the first output token.",
        "prefill",
    ),
    _term(
        "decode",
        "forward-pass",
        "decode",
        "The steps after prefill: each feeds one token per sequence and chooses the next one.",
        "decode",
    ),
    _term(
        "step_time",
        "forward-pass",
        "step time",
        "How long one forward pass and the choice of its token took; drawing and pauses are not "
        "in it.",
        "step time",
        "step times",
        "step latency",
        "time of a step",
        "time of each step",
    ),
    _term(
        "ttft",
        "forward-pass",
        ("TTFT", "time to first token"),
        "How long a request takes until its first output token is there: its wait for a place in "
        "the batch, and prefill.",
        "TTFT",
        "time to first token",
    ),
    _term(
        "itl",
        "cache",
        ("ITL", "inter-token latency"),
        "The time between two output tokens of the same sequence.",
        "ITL",
        "ITLs",
        "inter-token latency",
    ),
    _term(
        "tpot",
        "cache",
        ("TPOT", "time per output token"),
        "The mean time between two output tokens, the first one left out.",
        "TPOT",
        "time per output token",
    ),
    _term(
        "percentile",
        "cache",
        ("p50, p95", "50th and 95th percentile"),
        "Half of the values lie below p50, the median; 95 in 100 lie below p95.",
        "p50",
        "p95",
        "median",
        "95th percentile",
    ),
    _term(
        "greedy",
        "forward-pass",
        "greedy",
        "Always take the likeliest token, so that the same prompt gives the same answer.",
        "greedy",
    ),
    _term(
        "sampling",
        "forward-pass",
        "sampling",
        "The next token is drawn at random, with the probabilities that the model gives.",
        "sampling",
    ),
    _term(
        "temperature",
        "forward-pass",
        "temperature",
        "Scores are divided by it before sampling: below 1 favours likely tokens, above 1 helps "
        "unlikely ones.",
        "temperature",
    ),
    _term(
        "logit",
        "forward-pass",
        "logit",
        "The model's score for one possible next token, before scores become probabilities.",
        "logit",
        "logits",
    ),
    _term(
        "entropy",
        "forward-pass",
        "entropy",
        "How undecided the model is: 0 bit where one token is certain, 1 bit where two are equally "
        "likely.",
        "entropy",
    ),
    _term(
        "fed",
        "forward-pass",
        ("T", "tokens fed in this step"),
        "How many tokens a step feeds: the whole prompt or a chunk of it in prefill, one for each "
        "sequence in decode.",
        "T",
    ),
    _term(
        "length",
        "context",
        ("L", "context length"),
        "How many tokens the newest token can attend to, itself included.",
        "L",
        "context length",
    ),
    _term(
        "cold",
        "forward-pass",
        "cold",
        "The first step of its kind after the model was loaded, with costs that later ones lack.",
        "cold",
    ),
    _term(
        "observed",
        "forward-pass",
        "observed",
        "Something was captured within the step, which takes time, so latencies leave it out.",
        "observed",
    ),
    _term(
        "disturbed",
        "forward-pass",
        "disturbed",
        "Other programs had the processors for more than a twentieth of the step, so latencies "
        "leave it out.",
        "disturbed",
    ),
    _term(
        "attention",
        "mask",
        "attention",
        "The part of a layer in which a token takes in what earlier tokens stored.",
        "attention",
    ),
    _term(
        "layer",
        "cache",
        "layer",
        "One of the blocks that every token passes through in turn; each keeps K/V of its own.",
        "layer",
        "layers",
    ),
    _term(
        "head",
        "mask",
        "head",
        "One of several attentions that a layer does side by side, each with weights of its own.",
        "head",
        "heads",
    ),
    _term(
        "grouped_heads",
        "cache",
        "grouped heads",
        "Several query heads share one head of keys and values, which makes the K/V cache smaller.",
        "grouped heads",
        "grouped-query attention",
        "K/V head",
        "K/V heads",
    ),
    _term(
        "query",
        "mask",
        "query",
        "The vector by which a token asks which stored tokens matter to it; it is never stored.",
        "query",
        "queries",
    ),
    _term(
        "key",
        "cache",
        "key",
        "The vector that a token stores in each layer so that later tokens can find it.",
        "key",
        "keys",
    ),
    _term(
        "value",
        "cache",
        "value",
        "The vector that a token stores beside its key: what it passes on to later tokens.",
        "value",
        "values",
    ),
    _term(
        "kv_cache",
        "cache",
        ("K/V cache", "key/value cache"),
        "The keys and values of all tokens fed so far, kept so that none is fed twice.",
        "K/V cache",
        "KV cache",
        "K/V",
        "key/value cache",
    ),
    _term(
        "causal_mask",
        "mask",
        "causal mask",
        "The rule that a token may read itself and those before it, never one that comes later.",
        "causal mask",
        "causal",
        "mask",
    ),
    _term(
        "sliding_window",
        "mask",
        "sliding window",
        "In such a layer a token reads only the last few tokens before it.",
        "sliding window",
        "window",
    ),
    _term(
        "chunked_prefill",
        "mask",
        "chunked prefill",
        "The prompt is fed in several steps, a part in each, so that no single step takes long.",
        "chunked prefill",
        "prefill chunk",
        "chunk",
        "chunks",
    ),
    _term(
        "sequence",
        "batching",
        "sequence",
        "One prompt with its answer.",
        "sequence",
        "sequences",
    ),
    _term(
        "row",
        "batching",
        "row",
        "One sequence of a batch, as it stands in one step.",
        "row",
        "rows",
    ),
    _term(
        "batch",
        "batching",
        "batch",
        "Several sequences that go through the model in the same step.",
        "batch",
        "batches",
        "batching",
    ),
    _term(
        "slot",
        "batching",
        "slot",
        "A place in a batch, taken by one sequence at a time.",
        "slot",
        "slots",
    ),
    _term(
        "padding",
        "batching",
        "padding",
        "Places in a batch that hold no token, so that all rows are equally long.",
        "padding",
    ),
    _term(
        "weight_reuse",
        "weight-reuse",
        "weight reuse",
        "How many tokens each weight serves once it has been read from memory.",
        "weight reuse",
    ),
    _term(
        "counted",
        "weight-reuse",
        ("counted", "a calculated minimum"),
        "Not measured: the least that the model's shape requires, worked out from it.",
        "counted",
        "calculated minimum",
    ),
    _term(
        "measured",
        "weight-reuse",
        "measured",
        "Read off a clock or a counter on the machine that made the run.",
        "measured",
    ),
    _term(
        "linear",
        "weight-reuse",
        "linear operations",
        "Products of the tokens fed with weight matrices: all of a step but attention and small "
        "parts.",
        "linear operations",
        "linear",
    ),
    _term(
        "flop",
        "weight-reuse",
        ("FLOP", "floating-point operation"),
        "One multiplication or one addition; FLOP/s is how many of them are done in a second.",
        "FLOP",
        "FLOPs",
        "FLOP/s",
        "GFLOP",
        "GFLOP/s",
        "TFLOP/s",
    ),
    _term(
        "bandwidth",
        "roofline",
        ("GB/s", "gigabytes a second"),
        "How many thousand million bytes a second the memory delivers.",
        "GB/s",
        "TB/s",
        "bandwidth",
    ),
    _term(
        "roofline",
        "roofline",
        "roofline",
        "A chart of the speed that a device allows: limited by memory on the left, by computing "
        "on the right.",
        "roofline",
        "roof",
        "roofs",
    ),
    _term(
        "ridge",
        "roofline",
        "ridge",
        "Where the two roofs meet: with fewer FLOPs per byte memory is the limit, with more it is "
        "computing.",
        "ridge",
    ),
    _term(
        "arithmetic_intensity",
        "roofline",
        "arithmetic intensity",
        "How many FLOPs a step does for each byte that it reads or writes.",
        "arithmetic intensity",
        "FLOPs per byte",
        "FLOP per byte",
        "FLOP/byte",
    ),
    _term(
        "memory_bound",
        "roofline",
        "memory-bound",
        "The time goes into reading from memory, so faster arithmetic would not help.",
        "memory-bound",
    ),
    _term(
        "compute_bound",
        "roofline",
        "compute-bound",
        "The time goes into arithmetic, so faster memory would not help.",
        "compute-bound",
    ),
    _term(
        "overhead_bound",
        "roofline",
        "overhead-bound",
        "Neither memory nor arithmetic limits the step, but launches and work on the host.",
        "overhead-bound",
    ),
    _term(
        "launch",
        "roofline",
        "launch",
        "The host hands one operation to the device; many small ones can cost more time than the "
        "work in them.",
        "launch",
        "launches",
    ),
    _term(
        "device_busy",
        "roofline",
        "device busy",
        "The share of time in which the device did anything, however little; it says nothing of "
        "speed.",
        "device busy",
        "GPU busy",
    ),
    _term(
        "host_ahead",
        "roofline",
        "host ahead",
        "By how much the processor had handed out work before the device came to it.",
        "host ahead",
        "host was ahead",
        "ahead of the device",
    ),
    _term(
        "goodput",
        "batching",
        "goodput",
        "Requests a second that keep the limits set for TTFT and TPOT.",
        "goodput",
    ),
)
