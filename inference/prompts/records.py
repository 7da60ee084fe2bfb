"""One record of a data set to its prompt: a text, a conversation, or why it is neither. No torch.

A record is an element of a JSON list, a line of JSON Lines or a row of a table.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from inference.prompts.conversations import (
    ROLES,
    TOOL_ROLES,
    alternating,
    asked_turns,
    is_chat,
    kind_of,
    parent_of,
    role_of,
)
from inference.records.errors import InputError
from inference.records.prompts import (
    ChatMessage,
    Entry,
    LeftOut,
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
    "query",
    "dialog",
    "dialogue",
    "data",
    "input",
    "content",
)
USUAL_KEYS = KEYS[:4]  # what a refusal names first
CHATS = frozenset({"messages", "conversations", "conversation", "turns", "dialog", "dialogue"})
# In these a bare list is the user's and the model's texts in turn; in ``turns`` all are a user's.
ALTERNATING = frozenset({"data", "conversations", "conversation", "dialog", "dialogue"})
SYSTEMS = ("system", "system_prompt")
UNDER_INSTRUCTION = ("input", "context")
# Columns of a table that change what its prompts are, beside the one that holds them.
COMPANIONS = (
    *SYSTEMS,
    *UNDER_INSTRUCTION,
    "history",
    "role",
    "parent_id",
    "parent",
    "parent_message_id",
)
USUAL_NAMES = frozenset((*KEYS, *COMPANIONS))
BETWEEN_OBJECTS = re.compile(r"\}\s*\n\s*\{")
LONGEST_INSIDE = 1 << 20
LONGEST_LITERAL = 1 << 15  # of Python's notation, whose reader takes a hundred times its text
SHOWN_KEYS = 8


def prompt_of(value: object, place: tuple[str, str], settings: UploadSettings) -> Entry:
    """Return the prompt of one record, or why it has none; ``place`` is file and place in it."""
    source, where = place
    try:
        turns, dropped = _turns_of(value, settings)
    except InputError as error:
        return LeftOut(source=source, place=where, reason=str(error))
    where = ", ".join([where, *dropped])
    if len(turns) == 1 and turns[0][0] == "user":
        return UploadedPrompt(source=source, place=where, text=turns[0][1])
    text = "\n\n".join(f"{role}: {content}" for role, content in turns)
    return UploadedPrompt(source=source, place=where, text=text, turns=tuple(turns))


def prompts_of(value: object, place: tuple[str, str], settings: UploadSettings) -> Iterator[Entry]:
    """Yield the prompts of one value of a JSON file: of a list of texts as ``prompt``, one each."""
    parts = _apart(value, settings)
    for number, part in enumerate(parts, start=1):
        source, where = place
        of = f", prompt {number} of {len(parts)}" if len(parts) > 1 else ""
        yield prompt_of(part, (source, f"{where}{of}"), settings)


def _apart(value: object, settings: UploadSettings) -> list[object]:
    """Return a request for completions of several prompts as a record for each of them."""
    if not isinstance(value, dict):
        return [value]
    record = with_usual_names(value)
    body = record.get("body")
    if isinstance(body, dict) and not keys_in(record, settings):
        return _apart(body, settings) if "prompt" in body else [value]
    texts = record.get("prompt")
    if not isinstance(texts, list) or keys_in(record, settings)[:1] != ["prompt"]:
        return [value]
    is_several = len(texts) > 1 and all(isinstance(one, str) for one in texts)
    return [{**record, "prompt": one} for one in texts] if is_several else [value]


def with_usual_names(record: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a record with the usual names in small letters, as tables are read too."""
    small = {name: name.casefold() for name in record if isinstance(name, str)}
    return {
        small[name] if small.get(name) in USUAL_NAMES and small[name] not in record else name: value
        for name, value in record.items()
    }


def keys_in(value: Mapping[Any, object], settings: UploadSettings) -> list[str]:
    """Return the keys of a record that may hold its prompt, the likeliest first."""
    wanted = (settings.column,) if settings.column else KEYS
    if any(key in value for key in wanted):
        return [key for key in wanted if value.get(key) is not None]
    small = {
        name.casefold(): name
        for name, held in value.items()
        if isinstance(name, str) and held is not None
    }
    return [small[key.casefold()] for key in wanted if key.casefold() in small]


def _turns_of(value: object, settings: UploadSettings) -> tuple[list[ChatMessage], list[str]]:
    """Return the turns to be fed, and what was dropped on the way, in words."""
    if isinstance(value, str):
        inner = _inside(value)
        if isinstance(inner, dict) and keys_in(inner, settings):
            turns, dropped = _turns_of(inner, settings)
            return turns, ["JSON inside a string", *dropped]
        return [("user", value)], []
    if isinstance(value, list):
        return _turns_of_list(value)
    if not isinstance(value, dict):
        msg = f"it is {kind_of(value)}, no text"
        raise InputError(msg)
    record = with_usual_names(value)
    body = record.get("body")
    if isinstance(body, dict) and not keys_in(record, settings):
        return _turns_of(body, settings)  # a request, as batches of OpenAI's have them
    return _turns_of_record(record, settings)


def _turns_of_list(value: Sequence[object]) -> tuple[list[ChatMessage], list[str]]:
    if any(is_message(one) for one in value):
        return asked_turns(value), []
    texts = [one for one in value if isinstance(one, str)]
    if len(texts) == 1:
        return [("user", texts[0])], []
    msg = (
        f"it is a list of {len(value):,} values without names, so which is the prompt is not said "
        "(pandas: orient='values'); write objects with a prompt each"
    )
    raise InputError(msg)


def _turns_of_record(
    record: dict[str, Any], settings: UploadSettings
) -> tuple[list[ChatMessage], list[str]]:
    keys = keys_in(record, settings)
    if not keys:
        raise InputError(_lacks_a_prompt(record, settings))
    key = keys[0]
    _check_is_asked(key, record)
    turns, dropped = _turns_under(key, record)
    dropped += [f"without its {name}" for name in _not_read(key, keys[1:], record)]
    if parent_of(record) is not None and "role" in record:
        dropped.append("without the turns before it")
    system = next((record[name] for name in SYSTEMS if isinstance(record.get(name), str)), "")
    has_system = any(role == "system" for role, _ in turns)
    is_its_own = key in SYSTEMS
    if system and not has_system and not is_its_own:
        turns = [("system", system), *turns]
    return turns, dropped


def _not_read(key: str, others: Sequence[str], record: Mapping[str, object]) -> list[str]:
    """Return what a record holds beside its prompt that could belong to it, and is not read."""
    names = [*others, "context", *([] if _pairs(record) else ["history"])]
    if key == "instruction":
        joined = next((one for one in UNDER_INSTRUCTION if _has_text(record.get(one))), None)
        names = [one for one in names if one != joined]
    return [one for one in dict.fromkeys(names) if one != key and _holds(record.get(one))]


def _holds(value: object) -> bool:
    """Return whether a value is text, a list or an object that is not empty."""
    return _has_text(value) or (isinstance(value, list | dict) and bool(value))


def _turns_under(key: str, record: dict[str, Any]) -> tuple[list[ChatMessage], list[str]]:
    """Return the turns that a key of a record holds, and what is dropped of them."""
    content = record[key]
    if isinstance(content, dict):
        inner = content.get("text", content.get("content"))
        content = inner if isinstance(inner, str) else content
    if isinstance(content, str):
        listed = _listed_in(key, content)
        if listed is None:
            return [*_history(record), ("user", _with_input(key, content, record))], []
        content = listed
    dropped = ["without its history"] if _pairs(record) else []
    if not isinstance(content, list):
        msg = f"its {key} is {kind_of(content)}, no text"
        raise InputError(msg)
    texts = [one for one in content if isinstance(one, str)]
    if not content or len(texts) != len(content):
        return asked_turns(content), dropped
    if key in ALTERNATING and len(texts) > 1:
        return alternating(texts), dropped
    return [("user", texts[0])], [
        *([f"first of {len(texts)} turns"] if len(texts) > 1 else []),
        *dropped,
    ]


def _listed_in(key: str, text: str) -> list[object] | None:
    """Return the conversation that a text spells; None where it is a text like any other.

    Raises:
        InputError: It begins like a conversation where one is expected, and is none.
    """
    inner = _inside(text)
    if isinstance(inner, list) and (key in CHATS or is_chat(inner)):
        return inner
    if key in CHATS and text.lstrip().startswith("[{"):
        msg = f"its {key} begin like a list and are neither whole JSON nor Python's notation"
        raise InputError(msg)
    return None


def _with_input(key: str, content: str, record: Mapping[str, object]) -> str:
    if key != "instruction":
        return content
    more = next((record[one] for one in UNDER_INSTRUCTION if _has_text(record.get(one))), None)
    return content if more is None else f"{content}\n\n{more}"


def _has_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _pairs(record: Mapping[str, object]) -> list[list[object]]:
    """Return the earlier turns of a record as pairs, which tables hold as text; none if it is not.

    What else stands under ``history`` is not read.
    """
    pairs = record.get("history")
    pairs = _inside(pairs) if isinstance(pairs, str) else pairs
    if not isinstance(pairs, list) or not all(isinstance(one, list) for one in pairs):
        return []
    return pairs


def _history(record: Mapping[str, object]) -> list[ChatMessage]:
    """Return the earlier turns of a record.

    Raises:
        InputError: They are lists, and not pairs of texts.
    """
    pairs = _pairs(record)
    texts = [text for pair in pairs for text in pair if isinstance(text, str)]
    if any(len(pair) != 2 for pair in pairs) or len(texts) != 2 * len(pairs):  # noqa: PLR2004  as above
        msg = "its history does not hold pairs of two texts"
        raise InputError(msg)
    return [(("user", "assistant")[index % 2], text) for index, text in enumerate(texts)]


def _check_is_asked(key: str, record: Mapping[str, object]) -> None:
    """Raise InputError where a row of a conversation tree is the model's and not the asker's."""
    role = record.get("role")
    is_row = isinstance(record.get(key), str)
    meant = ROLES.get(str(role)) or ("tool" if str(role) in TOOL_ROLES else "user")
    if role is None or not is_row or meant == "user":
        return
    what = "an answer, no prompt" if meant == "assistant" else "no prompt"
    msg = f"its role is {role}: it is {what}"
    raise InputError(msg)


def _lacks_a_prompt(record: Mapping[str, object], settings: UploadSettings) -> str:
    empty = [name for name in record if name in KEYS or name == settings.column]
    has = ", ".join(str(key)[:40] for key in list(record)[:SHOWN_KEYS]) or "nothing"
    if empty:
        return f"its {empty[0]} holds nothing (null); it has {has}. Fill it, or leave the entry out"
    wanted = settings.column or ", ".join(USUAL_KEYS)
    msg = f"it has none of {wanted}; it has {has}"
    if not settings.column:
        msg += f", and none of {', '.join(KEYS[len(USUAL_KEYS) :])}"
    return f"{msg}. Name the key that holds the prompt (--column)"


def _inside(text: str) -> object:
    """Return the list or object that a text spells, in JSON or as Python prints it; None if none.

    Tables keep conversations so: JSON where a program wrote it, Python's notation where pandas did.
    """
    text = text.strip()
    if text[:1] not in ("[", "{") or len(text) > LONGEST_INSIDE:
        return None
    is_python = len(text) <= LONGEST_LITERAL and text.startswith(("[{'", "{'", '[{"'))
    for read in (json.loads, _as_python_prints) if is_python else (json.loads,):
        try:
            value = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
        return value if isinstance(value, list | dict) else None
    return None


def _as_python_prints(text: str) -> object:
    """Return what Python's notation spells; NumPy leaves out the commas between objects."""
    return ast.literal_eval(BETWEEN_OBJECTS.sub("}, {", text))


def is_message(value: object) -> bool:
    """Return whether a value is one turn of a conversation."""
    return isinstance(value, dict) and role_of(value) is not None
