"""Why a request or a run ended, in the same words everywhere. No torch."""

from __future__ import annotations

from inference.records.status import RunState
from inference.records.steps import Finish

FINISHES = {
    Finish.EOS: "end-of-text token",
    Finish.LENGTH: "token limit reached",
    Finish.CONTEXT: "context window full",
}
STATES = {
    RunState.DONE: "finished",
    RunState.STOPPED: "stopped",
    RunState.FAILED: "failed",
    RunState.ABANDONED: "stopped: nobody was watching",
}


def ending(value: str) -> str:
    """Return the words for a finish or a run's state as records spell it; others as they are."""
    words = {one.value: text for one, text in (*FINISHES.items(), *STATES.items())}
    return words.get(value, value)
