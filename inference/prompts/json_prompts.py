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

KEYS = (
    "prompt",
    "text",
    "messages",
    "conversations",
    "conversation",
    "turns",
    "instruction",
    "question",
)
CHATS = ("messages", "conversations", "conversation", "turns")
LISTS = ("data", "prompts", "rows", "examples")
ROLES = {
    "human": "user",
    "prompter": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bot": "assistant",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}
MOST_VALUES = 2**22  # of one JSON text: parsed, each takes up to a hundred bytes
MOST_LINES = 2**20
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
    try:
        value = _parsed(text)
    except InputError:
        if not _is_json_lines(text):
            raise
        yield "it holds one JSON value a line (JSON Lines), and was read so"
        yield from _line_entries(text, file, settings)
        return
    value = _listed(value, settings)
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
    yield from _line_entries(text, file, settings)


def _listed(value: object, settings: UploadSettings) -> list[Any]:
    """Return the elements of a JSON file, whatever stands around them."""
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
    return value


def _is_json_lines(text: str) -> bool:
    """Tell whether the first line that is not blank is a whole JSON value, and not the only one."""
    lines = [line for line in text.split("\n", 50) if line.strip()]
    try:
        return len(lines) > 1 and isinstance(_parsed(lines[0]), (dict, list, str))
    except InputError:
        return False


def _line_entries(text: str, file: Upload, settings: UploadSettings) -> Iterator[Entry]:
    lines = text.count("\n")
    if lines > MOST_LINES:
        msg = f"it has {lines:,} lines and {MOST_LINES:,} are the most; cut it into parts"
        raise InputError(msg)
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        place = (file.name, f"line {number}")
        try:
            value = _parsed(line, is_line=True)
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
        if content and all(isinstance(one, str) for one in content):
            more = f", first of {len(content)} turns" if len(content) > 1 else ""
            return UploadedPrompt(source=source, place=f"{where}{more}", text=content[0])
        turns = _asked([*_system_of(value, content), *_turns(content)])
    except InputError as error:
        return LeftOut(source=source, place=where, reason=str(error))
    if len(turns) == 1 and turns[0][0] == "user":
        return UploadedPrompt(source=source, place=where, text=turns[0][1])
    text = "\n\n".join(f"{role}: {content}" for role, content in turns)
    return UploadedPrompt(source=source, place=where, text=text, turns=turns)


def _parsed(text: str, *, is_line: bool = False) -> Any:  # noqa: ANN401  JSON is anything
    values = text.count(",") + text.count("[") + text.count("{")
    if values > MOST_VALUES:
        msg = f"it holds {values:,} values and {MOST_VALUES:,} are the most; cut it into parts"
        raise InputError(msg)
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except RecursionError as error:
        raise InputError(TOO_DEEP) from error
    except ValueError as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        where = "" if is_line else f" in line {line}"  # the entry's own place says which line it is
        msg = f"not valid JSON: {reason.lower()}{where}; check its quotes and commas"
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
        wanted = settings.column or ", ".join(KEYS[:4])
        has = ", ".join(str(key) for key in list(value)[:8]) or "nothing"
        msg = f"it has none of {wanted}; it has {has}"
        if not settings.column:
            msg += f", and none of {', '.join(KEYS[4:])}"
        raise InputError(msg)
    _check_is_asked(value)
    return _content_under(keys[0], value)


def _content_under(key: str, value: dict[str, Any]) -> str | list[Any]:
    content: Any = value[key]
    if key in CHATS and isinstance(content, str) and content.lstrip().startswith("["):
        content = _parsed(content)
    if key == "instruction" and isinstance(content, str):
        more = value.get("input")
        return f"{content}\n\n{more}" if isinstance(more, str) and more.strip() else content
    if isinstance(content, str | list):
        return content
    msg = f"its {key} is {_kind(content)}, no text"
    raise InputError(msg)


def _check_is_asked(value: dict[str, Any]) -> None:
    """Raise InputError where a row of a conversation tree is the model's and not the asker's."""
    role = str(value.get("role"))
    if isinstance(value.get("text"), str) and ROLES.get(role) == "assistant":
        msg = f"its role is {role}: it is an answer, no prompt"
        raise InputError(msg)


def _system_of(value: object, content: Sequence[object]) -> list[ChatMessage]:
    """Return the record's own system turn, where its conversation has none."""
    system = value.get("system") if isinstance(value, dict) else None
    has_one = any(isinstance(one, dict) and _role(one) == "system" for one in content)
    return [("system", system)] if isinstance(system, str) and system and not has_one else []


def _keys_in(value: dict[str, Any], settings: UploadSettings) -> list[str]:
    wanted = (settings.column,) if settings.column else KEYS
    return [key for key in wanted if value.get(key) is not None]


def _is_chat(value: Sequence[object]) -> bool:
    """Tell whether a list is one conversation and not a list of prompts."""
    return bool(value) and all(isinstance(one, dict) and _role(one) is not None for one in value)


def _role(message: dict[str, Any]) -> str | None:
    # Data sets merged from both dialects fill the other's keys with null.
    role = message.get("from") if message.get("role") is None else message["role"]
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
    content = message.get("value") if message.get("content") is None else message["content"]
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
