"""Chat templates of any parts in any order: text, or a sentence, and the app goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.models.chat_templates import SPARE_CHARACTERS, Conversation, TemplateProcess
from inference.records.errors import PromptError
from tests.faults.fuzzing import ODD_TEXTS, check_sentence, fuzzed

LIMIT_S = 2.0
PARTS = (
    "{{ bos_token }}",
    "{% for message in messages %}",
    "{% endfor %}",
    "{{ message.role }}",
    "{{ message['content'] }}",
    "{{ messages[0].content | upper }}",
    "{% if add_generation_prompt %}",
    "{% endif %}",
    "{% set x = namespace(n=0) %}",
    "{% set x.n = x.n + 1 %}",
    "{{ x }}",
    "{{ 1 / 0 }}",
    "{{ [].pop() }}",
    "{{ 'x' * 100000 }}",
    "{{ ''.__class__.__mro__ }}",
    "{{ self.__init__.__globals__ }}",
    "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "{% include 'x' %}",
    "{% import 'x' as y %}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{{ raise_exception('no') }}",
    "{{ strftime_now('%Y') }}",
    "{% generation %}",
    "{% endgeneration %}",
    "{{ '%c' | format(1114112) }}",
    "{{ messages | tojson }}",
    "{{ '\ud800' }}",
    "{#",
    "#}",
    "{{",
    "%}",
)


@pytest.fixture(scope="module")
def templates() -> Iterator[TemplateProcess]:
    process = TemplateProcess(render_limit_s=LIMIT_S, memory_limit_bytes=1 << 28)
    process.start()
    yield process
    process.close()


@fuzzed(150, share=0.2)
@given(
    parts=st.lists(st.sampled_from(PARTS) | st.text(max_size=6), max_size=6),
    said=st.sampled_from(("hello", *ODD_TEXTS)),
    role=st.sampled_from(("user", "system", "", "\x00")),
)
def test_any_template_gives_text_or_a_sentence(
    templates: TemplateProcess, parts: list[str], said: str, role: str
) -> None:
    conversation = Conversation(
        template="".join(parts), turns=((role, said),), special_tokens=(("bos_token", "<s>"),)
    )

    try:
        text = templates.render(conversation)
    except PromptError as error:
        check_sentence(error)
        return

    assert len(text) <= conversation.characters + SPARE_CHARACTERS
    assert "root:" not in text
    assert "uid=" not in text
