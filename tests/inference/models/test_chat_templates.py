"""Chat templates: the library's own text, and a bad one costs a sentence and not the app."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from inference.models.chat_templates import (
    REFUSED_FOR_S,
    SPARE_CHARACTERS,
    Conversation,
    TemplateProcess,
    render_here,
)
from inference.records.errors import PromptError

USUAL = (
    "{{ bos_token }}{% for message in messages %}<|{{ message.role }}|>{{ message.content }}\n"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
ENDLESS = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
GIGABYTES = (
    "{% set all = namespace(text='x') %}"
    "{% for _ in range(40) %}{% set all.text = all.text ~ all.text %}{% endfor %}{{ all.text }}"
)
LONG = "{{ 'x' * 2000000 }}"
LIMIT_S = 1.0
ROOT = Path(__file__).resolve().parents[3]


class ScriptedTime:
    """A time that moves when it is set."""

    time_s = 0.0

    def __call__(self) -> float:
        return self.time_s


@pytest.fixture(scope="module")
def now() -> ScriptedTime:
    return ScriptedTime()


@pytest.fixture(scope="module")
def templates(now: ScriptedTime) -> Iterator[TemplateProcess]:
    process = TemplateProcess(render_limit_s=LIMIT_S, memory_limit_bytes=1 << 28, now=now)
    process.start()
    yield process
    process.close()


def hello(template: str) -> Conversation:
    return Conversation(
        template=template, turns=(("user", "hello"),), special_tokens=(("bos_token", "<s>"),)
    )


def test_the_process_writes_what_the_library_writes(templates: TemplateProcess) -> None:
    assert templates.render(hello(USUAL)) == "<s><|user|>hello\n<|assistant|>"
    assert templates.render(hello(USUAL)) == render_here(hello(USUAL))


def test_a_template_that_refuses_says_why_and_costs_no_process(templates: TemplateProcess) -> None:
    templates.render(hello(USUAL))
    before = templates.process_id

    with pytest.raises(PromptError, match="no users"):
        templates.render(hello("{{ raise_exception('no users') }}"))

    assert templates.process_id == before


@pytest.mark.parametrize(
    ("template", "said"),
    [
        pytest.param(ENDLESS, "took more than 1 s and was stopped", id="endless"),
        pytest.param(GIGABYTES, "took more than 256 MiB of memory and was stopped", id="gigabytes"),
    ],
)
def test_a_template_that_takes_too_much_is_ended_and_the_next_prompt_is_rendered(
    templates: TemplateProcess, template: str, said: str
) -> None:
    with pytest.raises(PromptError, match=said):
        templates.render(hello(template))

    assert templates.render(hello(USUAL)) == "<s><|user|>hello\n<|assistant|>"


def test_a_template_that_was_ended_is_not_waited_for_again_at_once(
    templates: TemplateProcess, now: ScriptedTime
) -> None:
    template = ENDLESS + "another"
    with pytest.raises(PromptError):
        templates.render(hello(template))
    ready = templates.process_id

    with pytest.raises(PromptError, match="was stopped"):
        templates.render(hello(template))
    assert templates.process_id == ready

    now.time_s += REFUSED_FOR_S
    with pytest.raises(PromptError, match="was stopped"):
        templates.render(hello(template))
    assert templates.process_id != ready


def test_a_text_far_longer_than_the_prompt_is_refused(templates: TemplateProcess) -> None:
    assert len(LONG) < SPARE_CHARACTERS
    with pytest.raises(PromptError, match=r"makes 2,000,000 characters of a prompt of 5"):
        templates.render(hello(LONG))


def test_prompts_of_several_threads_are_each_answered_with_their_own(
    templates: TemplateProcess,
) -> None:
    texts: dict[int, str] = {}

    def render(number: int) -> None:
        conversation = Conversation(
            template="{{ messages[0].content }}", turns=(("u", str(number)),)
        )
        texts[number] = templates.render(conversation)

    threads = [threading.Thread(target=render, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert texts == {number: str(number) for number in range(8)}


ORPHAN = """
import os, signal, sys, threading
from inference.models.chat_templates import Conversation, TemplateProcess
if __name__ == "__main__":
    process = TemplateProcess(render_limit_s=1.0)
    hello = Conversation(template="hello", turns=(("user", "hello"),))
    process.render(hello)
    print(process.process_id, flush=True)
    endless = Conversation(template=sys.argv[1], turns=hello.turns)
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGKILL)).start()
    process.render(endless)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the system must hold a process to its limit")
def test_an_endless_template_does_not_outlive_an_app_that_was_killed(tmp_path: Path) -> None:
    script = tmp_path / "orphan.py"
    script.write_text(ORPHAN)
    killed = subprocess.run(
        [sys.executable, str(script), ENDLESS],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert killed.returncode == -signal.SIGKILL
    renderer = int(killed.stdout)

    end_s = time.monotonic() + 60
    while is_running(renderer):
        assert time.monotonic() < end_s, "the process still computes"
        time.sleep(0.05)


def is_running(process_id: int) -> bool:
    """Tell whether a process computes; one that has ended may wait for its parent to notice."""
    try:
        return psutil.Process(process_id).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_closed_process_is_gone() -> None:
    process = TemplateProcess()
    process.start()
    assert process.process_id is not None

    process.close()

    assert process.process_id is None
