"""What the pages ask for besides the settings of a run, and the defaults of it. No Streamlit."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from inference.records.options import AttentionKind, CacheKind, DecodeMode
from visuals.pages.examples import first_prompt
from visuals.pages.run_settings import AUTO, DEFAULT_MODEL


class CompareKind(StrEnum):
    """What a comparison compares, as the page says it."""

    PROMPTS = "Several prompts"
    SETTINGS = "One prompt, several settings"


class Together(StrEnum):
    """How the prompts of a comparison run, as the page says it."""

    ALONE = "one after another"
    BATCH = "as one batch"


class RunSequence(StrEnum):
    """In which order the runs of a comparison are made, as the page says it."""

    LISTED = "as listed"
    SHUFFLED = "shuffled each round"


class Separator(StrEnum):
    """Where text is split into prompts, as the page says it."""

    NOTHING = "nothing (one prompt per file)"
    BLANK_LINES = "blank lines"
    MARK = "lines of ---"
    OTHER = "other \u2026"


AT_ONCE, ALONE, GREEDY = "at once", "alone", "greedy"
CHUNKS: dict[str, int | None] = {AT_ONCE: None, "32 per step": 32, "128 per step": 128}
ROWS: dict[str, int] = {ALONE: 1, **{f"batch of {count}": count for count in (2, 4, 8, 16)}}
TEMPERATURES: dict[str, float] = {GREEDY: 0.0, "temperature 0.7": 0.7, "temperature 1": 1.0}
FIRST_COLUMN = "prompt, text, messages \u2026"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareInputs:
    """What the Compare page asks for.

    Attributes:
        chosen: Indices of the prompts that are compared.
        reference: The label of the answer that the others are marked against.
    """

    kind: CompareKind = CompareKind.PROMPTS
    pasted: str = ""
    separator: Separator = Separator.NOTHING
    other_separator: str = ""
    column: str = FIRST_COLUMN
    has_header: bool = True
    chosen: tuple[int, ...] = ()
    together: Together = Together.ALONE
    repeats: int = 1
    sequence: RunSequence = RunSequence.LISTED
    is_warmed: bool = True
    dtypes: tuple[str, ...] = (AUTO,)
    attentions: tuple[str, ...] = (AttentionKind.AUTO.value,)
    chunks: tuple[str, ...] = (AT_ONCE,)
    caches: tuple[str, ...] = (CacheKind.DYNAMIC.value,)
    decodes: tuple[str, ...] = (DecodeMode.EAGER.value,)
    rows: tuple[str, ...] = (ALONE,)
    temperatures: tuple[str, ...] = (GREEDY,)
    models: tuple[str, ...] = (DEFAULT_MODEL,)
    reference: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineInputs:
    """What the Roofline page asks for: the step that is moved, and the what-if questions."""

    step_rows: int = 1
    step_tokens: int = 1
    step_context: int = 512
    step_attention: str = "causal"
    model: str = "Llama-3.1-8B"
    dtype: str = "bfloat16"
    device: str = "H100 SXM"
    stored: str = ""
    kv_dtype: str = "as the weights"
    device_name: str = ""
    matrix_tflops_per_s: float = 0.0
    tflops_per_s: float = 989.4
    gigabytes_per_s: float = 3350.0
    memory_gib: float = 0.0
    batch: int = 1
    prompt_tokens: int = 1024
    context_tokens: int = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchingInputs:
    """What the Batching page asks for.

    Attributes:
        here_bytes: The context of the chart of bytes, as it is offered; empty for the longest.
        recorded_bytes: The same for the recorded sweep.
        elsewhere_bytes: The same for the device that is not here.
        run: The name of the run whose requests are shown; empty for the first.
    """

    rows: tuple[int, ...] = (1, 2, 4, 8)
    contexts: tuple[str, ...] = ("64", "512", "2,048")
    here_bytes: str = ""
    recorded_bytes: str = ""
    dtype: str = "bfloat16"
    model: str = "Llama-3.1-8B"
    device: str = "H100 SXM"
    device_name: str = ""
    matrix_tflops_per_s: float = 0.0
    tflops_per_s: float = 989.4
    gigabytes_per_s: float = 3350.0
    memory_gib: float = 0.0
    elsewhere_contexts: tuple[str, ...] = ("2,048", "8,192", "32,768")
    elsewhere_bytes: str = ""
    run: str = ""
    ttft_s: float = 2.0
    tpot_ms: float = 200.0


class Source(StrEnum):
    """Where tokens are made, as the page says it."""

    HERE = "this machine"
    ENDPOINT = "an address"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointInputs:
    """Which engine the pages ask for; a key is no part of it.

    Attributes:
        model: A name on the server's list; another one for the first of the list.
        token: Of those with candidates, the one shown, counted from 1.
    """

    source: Source = Source.HERE
    address: str = ""
    model: str = ""
    token: int = 1


class PromptsFrom(StrEnum):
    """Where the prompts of a load come from, as the page says it."""

    MADE = "of a length"
    FILES = "from files"


class LoadKind(StrEnum):
    """How the requests of a load follow one another, as the page says it."""

    CLOSED = "so many at a time"
    POISSON = "at random moments"
    CONSTANT = "at equal distances"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingInputs:
    """What the Serving page asks for.

    Attributes:
        count: Prompts to make.
        tokens: Of each of them.
        concurrency: Requests at a time, one step for each number.
        rates: Requests a second, likewise.
        requests: Measured ones of each step.
        new_tokens: Asked for by each request.
        is_cold: Each prompt begins with words of its own.
        load: The kept load shown; empty for the newest.
        step: Of its sweep; empty for the first.
    """

    prompts: PromptsFrom = PromptsFrom.MADE
    count: int = 8
    tokens: int = 128
    kind: LoadKind = LoadKind.CLOSED
    concurrency: str = "1,2,4"
    rates: str = "1,2"
    requests: int = 16
    new_tokens: int = 64
    is_cold: bool = False
    load: str = ""
    step: str = ""
    ttft_ms: float = 1000.0
    tpot_ms: float = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsInputs:
    """What the Runs and Device pages ask for.

    Attributes:
        search: Words that a run must have.
        speed: How fast a run is played again, as it is offered; empty for its own speed.
        device_run: The run shown on the Device page; empty for the newest.
    """

    search: str = ""
    speed: str = ""
    device_run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaylistInputs:
    """What the Playlists page asks for.

    Attributes:
        adding: Runs chosen to be added, as they are offered.
        has_all_panels: All panels are shown where an item names one.
    """

    adding: tuple[str, ...] = ()
    has_all_panels: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StepInputs:
    """After how many steps the run is shown, on the Live page and where a run plays again."""

    live: int = 0
    replay: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TourInputs:
    """What the tour asks for: the reader's prompt, and what is tried in each chapter.

    Attributes:
        forward_pass: The variant tried in the chapter of that name, as it is offered, and so on;
            empty for the chapter's own run.
    """

    prompt: str = field(default_factory=first_prompt)
    forward_pass: str = ""
    cache: str = ""
    mask: str = ""
    weight_reuse: str = ""
    roofline: str = ""
    batching: str = ""
    context: str = ""
