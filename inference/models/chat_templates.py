"""Chat templates, rendered where a bad one does no harm. No torch.

A template is a program that comes with a model. The library runs it in a sandbox, which keeps it
from files and modules but not from an endless loop or gigabytes of text. The app process therefore
renders in a process of its own, kept warm, with a limit on time and on memory.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import resource
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from inference.models.process_memory import limit_growth
from inference.records.errors import PromptError

Turns = tuple[tuple[str, str], ...]  # pairs of role and content

RENDER_LIMIT_S = 5.0
START_LIMIT_S = 60.0  # importing the renderer takes one to two seconds of an idle core
MEMORY_LIMIT_BYTES = 1 << 30  # beyond what the process has when it starts
SPARE_CHARACTERS = 1_000_000  # that a template may write around the conversation
REFUSED_FOR_S = 30.0  # how long a template that was ended is not tried again
ADVICE = "run it without the chat template, or choose another model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What a template is applied to.

    Attributes:
        template: In Jinja, as the model brings it.
        special_tokens: Names that the template may use, with their text.
    """

    template: str
    turns: Turns
    special_tokens: tuple[tuple[str, str], ...] = ()

    @property
    def characters(self) -> int:
        """The length of what was said."""
        return sum(len(content) for _, content in self.turns)


Render = Callable[[Conversation], str]  # raises PromptError where the template cannot be applied


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why there is no text."""

    reason: str


def render_here(conversation: Conversation) -> str:
    """Return the turns as the template writes them, ready for the model's answer.

    In this process and without a limit: for the command line, which Ctrl-C ends.

    Raises:
        PromptError: The template refuses them.
    """
    # Over a second to import, so only where a template is applied.
    from transformers.utils.chat_template_utils import render_jinja_template  # noqa: PLC0415

    names: dict[str, Any] = dict(conversation.special_tokens)
    turns = [{"role": role, "content": content} for role, content in conversation.turns]
    try:
        rendered, _ = render_jinja_template(
            conversations=[turns],
            chat_template=conversation.template,
            add_generation_prompt=True,
            **names,
        )
    except MemoryError:
        raise
    except Exception as error:  # a template may raise anything
        msg = f"the model's chat template refuses this prompt: {error}; "
        msg += "run it without the chat template"
        raise PromptError(msg) from error
    return rendered[0]


class TemplateProcess:
    """Renders in a process that is ended when it takes too long or too much.

    One conversation is rendered at a time; callers on other threads wait their turn.
    """

    def __init__(
        self,
        *,
        render_limit_s: float = RENDER_LIMIT_S,
        memory_limit_bytes: int = MEMORY_LIMIT_BYTES,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._render_limit_s = render_limit_s
        self._memory_limit_bytes = memory_limit_bytes
        self._now = now
        self._lock = threading.Lock()
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._is_ready = False
        self._refused: dict[str, tuple[float, str]] = {}

    @property
    def process_id(self) -> int | None:
        """The process that renders; None before the first start and after the end."""
        process = self._process
        return process.pid if process is not None and process.is_alive() else None

    def start(self) -> None:
        """Start the process, so that the first prompt need not wait for it."""
        with self._lock:
            self._started()

    def render(self, conversation: Conversation) -> str:
        """Return the turns as the template writes them, ready for the model's answer.

        Raises:
            PromptError: The template refuses them, or was ended for taking too much.
        """
        with self._lock:
            self._check_refused(conversation.template)
            answer = self._answer(conversation)
        if isinstance(answer, _Refusal):
            raise PromptError(answer.reason)
        return answer

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _check_refused(self, template: str) -> None:
        """Raise PromptError while a template that was ended is not to be tried again."""
        until_s, reason = self._refused.get(template, (0.0, ""))
        if reason and self._now() < until_s:
            raise PromptError(reason)
        self._refused.pop(template, None)

    def _answer(self, conversation: Conversation) -> str | _Refusal:
        connection = self._started()
        try:
            if not self._is_ready and not connection.poll(START_LIMIT_S):
                return self._ended("the process that applies chat templates did not start")
            if not self._is_ready:
                connection.recv()
                self._is_ready = True
            connection.send(conversation)
            if not connection.poll(self._render_limit_s):
                return self._refuse(conversation, f"took more than {self._render_limit_s:g} s")
            answer: str | _Refusal | None = connection.recv()
        except (EOFError, OSError):
            return self._refuse(conversation, "ended the process that applied it")
        if answer is None:
            limit = f"{self._memory_limit_bytes / (1 << 20):,.0f} MiB"
            return self._refuse(conversation, f"took more than {limit} of memory")
        return answer

    def _refuse(self, conversation: Conversation, what: str) -> _Refusal:
        reason = f"the model's chat template {what} and was stopped; {ADVICE}"
        self._refused[conversation.template] = (self._now() + REFUSED_FOR_S, reason)
        return self._ended(reason)

    def _ended(self, reason: str) -> _Refusal:
        """End the process, and have another ready for the next prompt."""
        self._end()
        self._started()
        return _Refusal(reason)

    def _started(self) -> Connection:
        if self._process is not None and self._process.is_alive() and self._connection is not None:
            return self._connection
        self._end()
        context = multiprocessing.get_context("spawn")
        connection, theirs = context.Pipe()
        process = context.Process(
            target=_serve,
            args=(theirs, self._memory_limit_bytes, self._render_limit_s),
            name="token-by-token-templates",
            daemon=True,
        )
        process.start()
        theirs.close()
        self._process, self._connection, self._is_ready = process, connection, False
        return connection

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._connection is not None:
            self._connection.close()
        self._process = self._connection = None


def _serve(connection: Connection, memory_limit_bytes: int, render_limit_s: float) -> None:
    """Render one conversation after another until the app is gone; the child's main function."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the app, which ends this process
    with contextlib.suppress(PromptError):  # the first call imports the renderer
        render_here(Conversation(template="", turns=(("user", ""),)))
    limit_growth(memory_limit_bytes)
    with contextlib.suppress(EOFError, OSError):
        connection.send("ready")
        while True:
            conversation = connection.recv()
            _limit_processor_time(2 * render_limit_s)  # where the app is no longer there to end it
            connection.send(_rendered(conversation))


def _rendered(conversation: Conversation) -> str | _Refusal | None:
    """Return the text, or why there is none; None when memory ran out."""
    try:
        text = render_here(conversation)
    except PromptError as error:
        return _Refusal(str(error))
    except MemoryError:
        return None
    limit = conversation.characters + SPARE_CHARACTERS
    if len(text) > limit:
        return _Refusal(
            f"the model's chat template makes {len(text):,} characters of a prompt of "
            f"{conversation.characters:,}; {ADVICE}"
        )
    return text


def _limit_processor_time(spare_s: float) -> None:
    """Let the system end this process once it has computed for so much longer."""
    with contextlib.suppress(OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (ceil(time.process_time() + spare_s), hard))
