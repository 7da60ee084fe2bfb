"""Turns of a conversation, in the forms that data sets have, up to the last one to be answered.

OpenAI's ``role`` and ``content``, ShareGPT's ``from`` and ``value``, pairs of ``human`` and
``assistant``, and plain lists in which user and model take turns. No torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inference.records.errors import InputError
from inference.records.prompts import ChatMessage

ROLES = {
    "human": "user",
    "prompter": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bot": "assistant",
    "model": "assistant",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}
TOOL_ROLES = frozenset(
    {"tool", "function", "function_call", "function_response", "ipython", "observation"}
)
CALLS = ("tool_calls", "function_call")
PAIRS = (("human", "assistant"), ("user", "assistant"), ("question", "answer"))


def is_chat(value: object) -> bool:
    """Return whether a list is one conversation and not a list of prompts."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, dict) and role_of(one) is not None for one in value)
        and not any(parent_of(one) for one in value)
    )


def role_of(message: Mapping[str, object]) -> str | None:
    """Return the role that a turn states; None where it is no turn."""
    # Data sets merged from both dialects fill the other's keys with null.
    role = message.get("from") if message.get("role") is None else message["role"]
    has_content = any(name in message for name in ("content", "value", *CALLS))
    return str(role) if role is not None and has_content else None


def parent_of(row: Mapping[str, object]) -> object:
    """Return what a row of a conversation tree answers; None for the first of its thread."""
    names = ("parent_id", "parent", "parent_message_id", "parentId")
    return next((row[name] for name in names if row.get(name) not in (None, "")), None)


def asked_turns(content: Sequence[object]) -> list[ChatMessage]:
    """Return the turns of a conversation up to the last that the model is to answer.

    Raises:
        InputError: One of them is no turn, or holds something other than text; or nobody asks.
    """
    messages = _one_a_turn(content)
    roles = [_stated_role(message, number) for number, message in enumerate(messages, start=1)]
    last = max((index for index, role in enumerate(roles) if ROLES.get(role) == "user"), default=-1)
    kept = messages[: last + 1] if last >= 0 else messages
    turns = [
        (_known_role(role, number), _text_of(message, number))
        for number, (message, role) in enumerate(zip(kept, roles, strict=False), start=1)
    ]
    if last < 0:
        msg = "its conversation has no turn of a user"
        raise InputError(msg)
    return turns


def alternating(texts: Sequence[str]) -> list[ChatMessage]:
    """Return a list of texts as turns of user and model up to the user's last."""
    roles = ("user", "assistant")
    kept = texts[: len(texts) - (len(texts) % 2 == 0)]
    return [(roles[index % 2], text) for index, text in enumerate(kept)]


def _one_a_turn(content: Sequence[object]) -> list[object]:
    """Return the turns, with those written as a pair in one object apart."""
    turns: list[object] = []
    for message in content:
        pair = _pair_in(message)
        if pair is None:
            turns.append(message)
            continue
        asked, answered = pair
        turns += [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
    return turns


def _pair_in(message: object) -> tuple[object, object] | None:
    if isinstance(message, list) and len(message) == 2:  # noqa: PLR2004  what was asked, and the answer
        return message[0], message[1]
    if not isinstance(message, dict) or role_of(message) is not None:
        return None
    names = next((pair for pair in PAIRS if isinstance(message.get(pair[0]), str)), None)
    return None if names is None else (message[names[0]], message.get(names[1]) or "")


def _stated_role(message: object, number: int) -> str:
    role = role_of(message) if isinstance(message, dict) else None
    if role is None:
        msg = f"turn {number} of its conversation has no role and content"
        raise InputError(msg)
    return role


def _known_role(role: str, number: int) -> str:
    if role in TOOL_ROLES:
        msg = f"turn {number} of its conversation has the role {role!r}: tools are not run here"
        raise InputError(msg)
    if role not in ROLES:
        msg = f"turn {number} of its conversation has the unknown role {role!r}"
        raise InputError(msg)
    return ROLES[role]


def _text_of(message: object, number: int) -> str:
    """Return the text of a turn that has a role."""
    turn: Mapping[str, object] = message if isinstance(message, dict) else {}
    content = turn.get("value") if turn.get("content") is None else turn["content"]
    called = next((name for name in CALLS if turn.get(name)), None)
    if called is not None and not (isinstance(content, str) and content):
        msg = f"turn {number} of its conversation calls a tool ({called}) and has no text"
        raise InputError(msg)
    if isinstance(content, list):
        return "\n".join(_text_of_part(part, number) for part in content)
    if not isinstance(content, str):
        msg = f"turn {number} of its conversation holds {kind_of(content)}, no text"
        raise InputError(msg)
    return content


def _text_of_part(part: object, number: int) -> str:
    if isinstance(part, str):
        return part
    text = part.get("text") if isinstance(part, dict) else None
    if isinstance(text, str):
        return text
    kind = part.get("type") if isinstance(part, dict) else None
    named = f" ({kind})" if isinstance(kind, str) else ""
    msg = f"turn {number} of its conversation holds something other than text{named}"
    raise InputError(msg)


def kind_of(value: object) -> str:
    """Return what a value is, in words."""
    if value is None:
        return "nothing"
    names: dict[type, str] = {
        bool: "yes or no",
        int: "a number",
        float: "a number",
        str: "text",
        list: "a list",
    }
    return names.get(type(value), "an object")
