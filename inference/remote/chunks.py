"""What one event of a stream says, whichever engine's it is, before it has a time."""

from __future__ import annotations

from dataclasses import dataclass

from inference.records.arrivals import Channel, EngineTimes, SaidToken, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """What one event says.

    Attributes:
        texts: Pairs of channel and text, none of them empty.
        prompt_fed: Tokens of the prompt fed so far, where the event is about that.
        running_tokens: The engine's count of output tokens up to here.
        usage: Its final counts, as far as they are known.
        finish: Its word for why it ended; empty before that.
        error: What it says went wrong; None where nothing did.
        is_end: Nothing of the answer follows.
        has_choice: It is about the answer and not about counts alone.
    """

    texts: tuple[tuple[Channel, str], ...] = ()
    token_ids: tuple[int, ...] = ()
    tokens: tuple[SaidToken, ...] = ()
    prompt_fed: int | None = None
    prompt_total: int | None = None
    running_tokens: int | None = None
    usage: Usage | None = None
    times: EngineTimes | None = None
    finish: str = ""
    error: str | None = None
    is_end: bool = False
    has_choice: bool = True


END = Chunk(is_end=True)
