"""Prompts in JSON: strings, objects with a prompt, chats of OpenAI's form, ShareGPT conversations.

Of a conversation, the prompt is everything up to the last turn that is not an answer. No torch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from inference.prompts.decoding import check_bytes, decoded
from inference.records.errors import InputError
from inference.records.prompts import (
    ChatMessage,
    Entry,
    LeftOut,
    Upload,
    UploadedPrompt,
    UploadSettings,
)

KEYS = ("prompt", "text", "messages", "conversations")
LISTS = ("data", "prompts", "rows", "examples")
ROLES = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bot": "assistant",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}
TOO_DEEP = "its lists and objects are nested too deep to be read; flatten it"


def json_entries(file: Upload, settings: UploadSettings) -> Iterator[Entry]:
    """Yield the prompts of a JSON file: of a list, one an element.

    Raises:
        InputError: It is no JSON, or holds nothing that could be a prompt.
    """
    check_bytes(file)
    text, note = decoded(file.content)
    if note:
        yield note
    value = _parsed(text)
    if isinstance(value, dict):
        named = next((value[name] for name in LISTS if isinstance(value.get(name), list)), None)
        value = named if named is not None and not _keys_in(value, settings) else [value]
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        msg = f"it holds {_kind(value)} where a list of prompts was expected"
        raise InputError(msg)
    if _is_chat(value):
        value = [{"messages": value}]
    for number, element in enumerate(value, start=1):
        yield prompt_of(element, (file.name, f"item {number}"), settings)


def json_lines_entries(file: Upload, settings: UploadSettings) -> Iterator[Entry]:
    """Yield the prompts of a file with one JSON value a line; a bad line leaves the others alone.

    Raises:
        InputError: It is no text.
    """
    check_bytes(file)
    text, note = decoded(file.content)
    if note:
        yield note
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        place = (file.name, f"line {number}")
        try:
            value = _parsed(line)
        except InputError as error:
            yield LeftOut(source=place[0], place=place[1], reason=str(error))
            continue
        yield prompt_of(value, place, settings)


def prompt_of(value: object, place: tuple[str, str], settings: UploadSettings) -> Entry:
    """Return the prompt of one element, or why it has none; ``place`` is file and place in it."""
    source, where = place
    try:
        content = _content(value, settings)
        if isinstance(content, str):
            return UploadedPrompt(source=source, place=where, text=content)
        turns = _asked(_turns(content))
    except InputError as error:
        return LeftOut(source=source, place=where, reason=str(error))
    if len(turns) == 1 and turns[0][0] == "user":
        return UploadedPrompt(source=source, place=where, text=turns[0][1])
    text = "\n\n".join(f"{role}: {content}" for role, content in turns)
    return UploadedPrompt(source=source, place=where, text=text, turns=turns)


def _parsed(text: str) -> Any:  # noqa: ANN401  JSON is anything
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except RecursionError as error:
        raise InputError(TOO_DEEP) from error
    except ValueError as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        msg = f"not valid JSON: {reason.lower()} in line {line}; check its quotes and commas"
        raise InputError(msg) from error


def _content(value: object, settings: UploadSettings) -> str | list[Any]:
    """Return the text of an element, or the list of its turns."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        msg = f"it is {_kind(value)}, no text"
        raise InputError(msg)
    keys = _keys_in(value, settings)
    if not keys:
        wanted = settings.column or ", ".join(KEYS)
        has = ", ".join(str(key) for key in list(value)[:8]) or "nothing"
        msg = f"it has none of {wanted}; it has {has}"
        raise InputError(msg)
    content = value[keys[0]]
    if isinstance(content, str | list):
        return content
    msg = f"its {keys[0]} is {_kind(content)}, no text"
    raise InputError(msg)


def _keys_in(value: dict[str, Any], settings: UploadSettings) -> list[str]:
    wanted = (settings.column,) if settings.column else KEYS
    return [key for key in wanted if value.get(key) is not None]


def _is_chat(value: Sequence[object]) -> bool:
    """Tell whether a list is one conversation and not a list of prompts."""
    return bool(value) and all(isinstance(one, dict) and _role(one) is not None for one in value)


def _role(message: dict[str, Any]) -> str | None:
    role = message.get("role", message.get("from"))
    return str(role) if role is not None and ("content" in message or "value" in message) else None


def _turns(content: Sequence[object]) -> list[ChatMessage]:
    """Return the turns of a conversation of either form.

    Raises:
        InputError: One of them is no turn.
    """
    turns: list[ChatMessage] = []
    for number, message in enumerate(content, start=1):
        if not isinstance(message, dict) or (role := _role(message)) is None:
            msg = f"turn {number} of its conversation has no role and content"
            raise InputError(msg)
        if role not in ROLES:
            msg = f"turn {number} of its conversation has the unknown role {role!r}"
            raise InputError(msg)
        turns.append((ROLES[role], _turn_text(message, number)))
    return turns


def _turn_text(message: dict[str, Any], number: int) -> str:
    content = message.get("content", message.get("value"))
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        if len(parts) != len(content) or not all(isinstance(part, str) for part in parts):
            msg = f"turn {number} of its conversation holds something other than text"
            raise InputError(msg)
        return "\n".join(str(part) for part in parts)
    if not isinstance(content, str):
        msg = f"turn {number} of its conversation holds {_kind(content)}, no text"
        raise InputError(msg)
    return content


def _asked(turns: list[ChatMessage]) -> tuple[ChatMessage, ...]:
    """Return the turns up to the last that the model is to answer.

    Raises:
        InputError: There is none.
    """
    last = max((index for index, (role, _) in enumerate(turns) if role == "user"), default=None)
    if last is None:
        msg = "its conversation has no turn of a user"
        raise InputError(msg)
    return tuple(turns[: last + 1])


def _kind(value: object) -> str:
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
