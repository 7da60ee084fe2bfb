"""Hand-written doubles of the engine's surroundings, scripted in advance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch

from inference.process.messages import Command, Reply
from inference.records.attention import AttentionChoice, AttentionMap
from inference.records.options import CacheKind, DecodeMode
from inference.records.steps import CacheState


class ScriptedClock:
    """A StepClock whose time moves only when it is told to.

    Each step time takes the next scripted duration, plus whatever ``advance`` adds while the step
    time runs: so work done inside a step time shows in it, and work done between step times does
    not.

    Attributes:
        time_s: What ``now_s`` returns.
        step_times_s: Step times handed out so far.
        host_s: What ``launched`` returns.
    """

    def __init__(self, step_times_s: Iterable[float] = (), *, name: str = "host") -> None:
        self.name = name
        self.host_s: float | None = None
        self.time_s = 0.0
        self.step_times_s: list[float] = []
        self._script = iter(step_times_s)
        self._started_s: float | None = None

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.time_s += seconds

    def now_s(self) -> float:
        """Return the scripted time."""
        return self.time_s

    def start_timing(self) -> None:
        """Begin a step time."""
        assert self._started_s is None, "a step time is running already"
        self._started_s = self.time_s

    def launched(self) -> float | None:
        """Return the scripted host time."""
        assert self._started_s is not None, "no step time is running"
        return self.host_s

    def end_timing(self) -> float:
        """Let the next scripted duration pass and end the step time."""
        assert self._started_s is not None, "no step time is running"
        self.advance(next(self._script))
        step_time_s = self.time_s - self._started_s
        self._started_s = None
        self.step_times_s.append(step_time_s)
        return step_time_s


class ScriptedEngine:
    """An engine process that remembers its commands and says only what a test makes it say.

    Attributes:
        commands: Everything sent to it, in order.
        reply: Hands one reply to whoever started it.
        is_closed: True once it was told to end.
    """

    def __init__(self, on_reply: Callable[[Reply], None]) -> None:
        self.commands: list[Command] = []
        self.reply = on_reply
        self.is_closed = False

    def send(self, command: Command) -> None:
        """Remember a command."""
        self.commands.append(command)

    def close(self) -> None:
        """Remember that it ended."""
        self.is_closed = True


class ScriptedBackend:
    """A backend whose next token is always the number of tokens stored, modulo the vocabulary.

    Attributes:
        decode: How it says that its steps were handed over.
    """

    def __init__(self, vocabulary: int) -> None:
        self.decode = DecodeMode.EAGER
        self._vocabulary = vocabulary
        self._stored = 0

    def prepare(self, mode: DecodeMode, rows: int, columns: int) -> str:
        """Say that every mode can be had."""
        del rows, columns
        self.decode = mode
        return ""

    def start(self, kind: CacheKind = CacheKind.DYNAMIC, max_tokens: int | None = None) -> None:
        """Forget everything; the kind of cache makes no difference."""
        del kind, max_tokens
        self._stored = 0

    def check_prompts(self, lengths: Sequence[int], chunk_tokens: int | None) -> None:
        """Accept every prompt and every chunk."""

    def forward(
        self, ids: Sequence[Sequence[int]], lengths: Sequence[int] | None = None
    ) -> torch.Tensor:
        """Return logits [row, vocab] that favour the number of tokens stored."""
        assert lengths is None or len(lengths) == len(ids)
        self._stored += len(ids[0])
        logits = torch.zeros(len(ids), self._vocabulary)
        logits[:, self._stored % self._vocabulary] = 1.0
        return logits

    def cache_state(self, row_tokens: Sequence[int]) -> CacheState:
        """Return a cache of one layer with eight bytes a token."""
        held = 8 * sum(row_tokens)
        return CacheState(
            tokens_per_layer=(max(row_tokens),), used_bytes=held, allocated_bytes=held
        )

    def capture(self, choice: AttentionChoice | None) -> None:
        """Refuse: it has no attention."""
        assert choice is None, "a scripted backend attends to nothing"

    def attention(self, *, is_prompt: bool) -> AttentionMap | None:
        """Return None: nothing is looked at."""
        del is_prompt
        return None

    def recall(self, query: int | None = None) -> tuple[AttentionMap, ...]:
        """Return nothing: nothing was looked at."""
        del query
        return ()
