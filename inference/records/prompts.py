"""The records of uploaded prompts. No torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

ChatMessage: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file as it came: its name is shown and never opened.

    Attributes:
        separator: What separates its prompts unless the settings say otherwise; empty for
            one prompt.
    """

    name: str
    content: bytes
    separator: str = ""

    @property
    def suffix(self) -> str:
        """The end of the name after the last dot, in small letters."""
        return self.name.rpartition(".")[2].lower() if "." in self.name else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadSettings:
    """How to read the files.

    Attributes:
        separator: What separates the prompts of a text file; empty when a file is one prompt.
        column: The column of a table or the key of an object that holds the prompt; empty for
            the usual ones, ``prompt`` first.
        has_header: The first line of a CSV names its columns.
    """

    separator: str = ""
    column: str = ""
    has_header: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedPrompt:
    """One prompt of a file.

    Attributes:
        source: The file's name.
        place: Where in the file, in words.
        text: The prompt; of a conversation, its turns in plain text.
        turns: Pairs of role and content of a conversation; empty for a plain prompt.
    """

    source: str
    place: str
    text: str
    turns: tuple[ChatMessage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """An entry of a file, or the whole file, that gives no prompt, and why."""

    source: str
    place: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploads:
    """What was read from all files.

    Attributes:
        notes: What a user should know of how the files were read.
    """

    prompts: tuple[UploadedPrompt, ...]
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]


# What is read of a file one after another; text is a note about the whole file.
Entry: TypeAlias = UploadedPrompt | LeftOut | str
