"""Hand-written doubles of the engine's surroundings, scripted in advance."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.connection import Connection
from typing import cast

import torch

from inference.engine.batch import RowPadding
from inference.engine.cache_rows import CacheLane
from inference.process.messages import Command, Generate, Reply
from inference.process.step_gate import StepGate
from inference.records.attention import AttentionChoice, AttentionMap
from inference.records.options import CacheKind, DecodeMode
from inference.records.steps import CacheState

GATED_RUN = "run"


class ScriptedClock:
    """A StepClock whose time moves only when a test moves it.

    Each timing takes the next scripted duration, plus whatever ``advance`` adds while it runs: so
    work done inside a step shows in its step time, and work done between two steps does not.

    Attributes:
        time_s: What ``now_s`` returns.
        step_times_s: Step times returned so far.
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
        """Begin a timing."""
        assert self._started_s is None, "a timing is running already"
        self._started_s = self.time_s

    def launched(self) -> float | None:
        """Return the scripted host time."""
        assert self._started_s is not None, "no timing is running"
        return self.host_s

    def end_timing(self) -> float:
        """Let the next scripted duration pass, end the timing, and return it."""
        assert self._started_s is not None, "no timing is running"
        self.advance(next(self._script))
        step_time_s = self.time_s - self._started_s
        self._started_s = None
        self.step_times_s.append(step_time_s)
        return step_time_s


class ScriptedDelays:
    """A reader of run delays that gives what a test wrote down, and after that nothing lost.

    Attributes:
        calls: What was asked of it, in order.
    """

    def __init__(self, *lost_s: float | None) -> None:
        self.calls: list[str] = []
        self._lost_s = iter(lost_s)

    def __enter__(self) -> ScriptedDelays:
        """Note it."""
        self.calls.append("open")
        return self

    def __exit__(self, *error: object) -> None:
        """Note it."""
        self.calls.append("close")

    def start(self) -> None:
        """Note it."""
        self.calls.append("start")

    def stop(self) -> float | None:
        """Return the next scripted delay."""
        self.calls.append("stop")
        return next(self._lost_s, 0.0)


class ScriptedEngine:
    """An engine process that remembers its commands and says only what a test makes it say.

    Attributes:
        commands: Everything sent to it, in order.
        reply: Gives one reply to whoever started it.
        is_closed: True once it was closed.
        is_killed: True once it was killed.
        is_retired: True once it was let go.
        process_id: None: there is no process.
    """

    def __init__(self, on_reply: Callable[[Reply], None]) -> None:
        self.commands: list[Command] = []
        self.reply = on_reply
        self.is_closed = False
        self.is_killed = False
        self.is_retired = False
        self.process_id: int | None = None

    def send(self, command: Command) -> None:
        """Remember a command."""
        self.commands.append(command)

    def kill(self) -> None:
        """Remember that it was killed."""
        self.is_killed = True

    def retire(self) -> None:
        """Remember that it was let go."""
        self.is_retired = True

    def close(self) -> None:
        """Remember that it ended."""
        self.is_closed = True


class ScriptedBackend:
    """A backend whose next token is always the number of tokens stored, modulo the vocabulary.

    Attributes:
        decode: How it says that its steps were launched.
    """

    def __init__(self, vocabulary: int) -> None:
        self.decode = DecodeMode.EAGER
        self._vocabulary = vocabulary
        self._stored = 0

    def prepare(self, mode: DecodeMode, rows: int, columns: int) -> str:
        """Say that every mode can be used."""
        del rows, columns
        self.decode = mode
        return ""

    def start(self, kind: CacheKind = CacheKind.DYNAMIC, max_tokens: int | None = None) -> None:
        """Forget everything; the kind of cache makes no difference."""
        del kind, max_tokens
        self._stored = 0

    def check_prompts(self, lengths: Sequence[int], chunk_tokens: int | None) -> None:
        """Accept every prompt and every chunk."""

    def check_right_padding(self) -> None:
        """Accept padding on the right."""

    def forward(
        self,
        ids: Sequence[Sequence[int]],
        padding: RowPadding | None = None,
        lane: CacheLane | None = None,
    ) -> torch.Tensor:
        """Return logits [row, vocab] that favour the number of tokens stored."""
        assert padding is None or len(padding.lengths) == len(ids)
        assert lane is None, "a scripted backend has one cache"
        self._stored += len(ids[0])
        logits = torch.zeros(len(ids), self._vocabulary)
        logits[:, self._stored % self._vocabulary] = 1.0
        return logits

    def cache_state(self, row_tokens: Sequence[int], lane: CacheLane | None = None) -> CacheState:
        """Return a cache of one layer with eight bytes a token."""
        assert lane is None, "a scripted backend has one cache"
        held = 8 * sum(row_tokens)
        return CacheState(
            tokens_per_layer=(max(row_tokens),), used_bytes=held, allocated_bytes=held
        )

    def capture(self, choice: AttentionChoice | None) -> None:
        """Refuse: it has no attention."""
        assert choice is None, "a scripted backend attends to nothing"

    def attention(self, *, is_prompt: bool) -> AttentionMap | None:
        """Return None: nothing is captured."""
        del is_prompt
        return None

    def recall(self, query: int | None = None) -> tuple[AttentionMap, ...]:
        """Return nothing: nothing was captured."""
        del query
        return ()


class ScriptedPipe:
    """A connection on which commands arrive; waiting for more than there is fails the test."""

    def __init__(self, clock: ScriptedClock, commands: list[Command]) -> None:
        self._clock = clock
        self._commands = deque(commands)
        self.waits_s: list[float | None] = []

    def poll(self, timeout: float | None = 0.0) -> bool:
        if self._commands:
            return True
        assert timeout is not None, "the gate waits for a command that never comes"
        self.waits_s.append(timeout)
        self._clock.advance(timeout)
        return False

    def recv(self) -> Command:
        return self._commands.popleft()

    def say(self, *commands: Command) -> None:
        self._commands.extend(commands)


class GateUnderTest:
    """A step gate, its pipe, its clock, and what it reported."""

    def __init__(
        self,
        *commands: Command,
        is_paused: bool = False,
        hold_s: float = 0.0,
        steps_per_s: float | None = None,
    ) -> None:
        self.clock = ScriptedClock()
        self.pipe = ScriptedPipe(self.clock, list(commands))
        self.replies: list[Reply] = []
        generate = Generate(
            run_id=GATED_RUN,
            requests=(),
            seed=0,
            is_paused=is_paused,
            hold_s=hold_s,
            steps_per_s=steps_per_s,
        )
        self.gate = StepGate(
            cast("Connection", self.pipe), generate, self.clock, self.replies.append
        )
