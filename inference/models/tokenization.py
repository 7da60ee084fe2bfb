"""Text to token ids and back, byte for byte, without torch and without loading the model.

The engine process sends ``TokenizerFiles``; the app process makes a ``TextCodec`` of them. A token
is often only a part of a character, so each is shown as the bytes it stands for, and text is
decoded from the bytes of all of them together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import cache
from typing import Any

from tokenizers import Tokenizer

from inference.models.chat_templates import Conversation, Render, render_here
from inference.records.errors import PromptError, UnsupportedModelError
from inference.records.model import TokenizerFiles, TokenPiece

# Longer than the longest context on offer (ten million tokens, about four characters each).
MAX_PROMPT_CHARACTERS = 40_000_000
MOST_NAMED = 4  # control tokens in a sentence
BYTE_TOKEN_LENGTH = len("<0xFF>")


class Spelling(StrEnum):
    """How a tokenizer spells bytes in its vocabulary."""

    BYTE_LEVEL = "byte level"  # one printable character for each byte
    METASPACE = "metaspace"  # ▁ for a space, <0xE2> for a byte that has no token
    OTHER = "other"  # as the tokenizer's own decoder says


class TextCodec:
    """Encodes prompts and spells tokens, as one model's tokenizer does."""

    def __init__(self, files: TokenizerFiles, render: Render = render_here) -> None:
        self._files = files
        self._render = render
        self._tokenizer = Tokenizer.from_str(files.tokenizer_json)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        settings = json.loads(files.tokenizer_json)
        added: list[dict[str, Any]] = settings.get("added_tokens") or []
        self._added = {int(token["id"]): str(token["content"]) for token in added}
        self._special_ids = {int(token["id"]) for token in added if token.get("special")}
        self._special_ids.update(files.special_ids)
        self._spelling = spelling(settings.get("decoder"), settings.get("pre_tokenizer"))
        self._pieces: dict[int, TokenPiece] = {}

    @classmethod
    def from_files(cls, files: TokenizerFiles, render: Render = render_here) -> TextCodec:
        """Return a codec of what the engine process sent.

        Args:
            files: The tokenizer and the chat template.
            render: Applies the chat template.

        Raises:
            UnsupportedModelError: The tokenizer cannot be read.
        """
        try:
            return cls(files, render)
        except Exception as error:  # the tokenizers library raises Exception itself
            msg = f"the model's tokenizer cannot be read: {error}; choose another model"
            raise UnsupportedModelError(msg) from error

    @property
    def has_chat_template(self) -> bool:
        """True when the model says how a conversation is written."""
        return self._files.chat_template is not None

    def encode(self, prompt: str, *, is_raw: bool) -> tuple[int, ...]:
        """Return exactly the ids that the model is fed.

        Args:
            prompt: What the user typed.
            is_raw: Leave the chat template off; the tokenizer's own start token stays. A model
                without a template is always fed like this.

        Raises:
            PromptError: The prompt is empty, too long, or not Unicode text.
        """
        check_prompt(prompt, is_raw=is_raw)
        is_templated = self.has_chat_template and not is_raw
        text = self.templated(prompt) if is_templated else prompt
        encoding = self._tokenizer.encode(text, add_special_tokens=not is_templated)
        if not encoding.ids:
            msg = "the tokenizer makes no token of this prompt; type something else"
            raise PromptError(msg)
        return tuple(encoding.ids)

    def templated(self, prompt: str) -> str:
        """Return the prompt as one user turn of the chat template, or as it is without one.

        Raises:
            PromptError: The model's template refuses it.
        """
        return self._rendered((("user", prompt),))

    def encode_turns(self, turns: Sequence[tuple[str, str]], *, is_raw: bool) -> tuple[int, ...]:
        """Return the ids of a conversation, given as pairs of role and content.

        Raises:
            PromptError: The template refuses it, or it holds no text.
        """
        if is_raw or not self.has_chat_template:
            return self.encode("\n\n".join(content for _, content in turns), is_raw=True)
        for _, content in turns:
            check_prompt(content, is_raw=True)
        encoding = self._tokenizer.encode(self._rendered(turns), add_special_tokens=False)
        return tuple(encoding.ids)

    def _rendered(self, turns: Sequence[tuple[str, str]]) -> str:
        """Return the turns as the model's template writes them, ready for its answer."""
        template = self._files.chat_template
        if template is None:
            return "\n\n".join(content for _, content in turns)
        return self._render(
            Conversation(
                template=template,
                turns=tuple(turns),
                special_tokens=tuple(self._files.special_tokens),
            )
        )

    def piece(self, token_id: int) -> TokenPiece:
        """Return the bytes of one token; none for an id that the tokenizer does not know."""
        if token_id not in self._pieces:
            self._pieces[token_id] = TokenPiece(
                token_id=token_id,
                raw=self._bytes(token_id),
                is_special=token_id in self._special_ids,
            )
        return self._pieces[token_id]

    def pieces(self, ids: Iterable[int]) -> tuple[TokenPiece, ...]:
        """Return the piece of each id, in order."""
        return tuple(self.piece(token_id) for token_id in ids)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of the ids, control tokens left out; bytes that are no UTF-8 become �."""
        raw = b"".join(piece.raw for piece in self.pieces(ids) if not piece.is_special)
        return raw.decode("utf-8", errors="replace")

    def _bytes(self, token_id: int) -> bytes:
        token = self._tokenizer.id_to_token(token_id)
        if token is None:
            return b""
        if token_id in self._added:
            return self._added_text(token_id).encode()
        if self._spelling is Spelling.BYTE_LEVEL:
            return _byte_level(token)
        if self._spelling is Spelling.METASPACE:
            return _metaspace(token)
        decoder = self._tokenizer.decoder
        return (decoder.decode([token]) if decoder else token).encode()

    def _added_text(self, token_id: int) -> str:
        """Return the text of a token that was added beside the vocabulary.

        Where the tokenizer writes spaces as "\u2581", runs of them may be added tokens (all Gemmas
        have some); control tokens stand for themselves.
        """
        content = self._added[token_id]
        if self._spelling is Spelling.BYTE_LEVEL or token_id in self._special_ids:
            return content
        return content.replace("\u2581", " ")

    def remarks(self, texts: Sequence[str], ids: Sequence[int]) -> str:
        """Return what is to be known of typed texts that became these ids; empty for nothing.

        Control tokens that were typed have the model's own meaning, and some tokenizers do not
        keep every character: both change what the model reads, and neither shows in the prompt.

        Args:
            texts: What the user typed: a prompt, or the contents of a conversation's turns.
            ids: All that the model is fed, the template's included.
        """
        typed = self._typed_control_tokens(texts, ids)
        raw = b"".join(piece.raw for piece in self.pieces(ids))
        is_whole = all(text.strip().encode() in raw for text in texts)
        notes = (
            f"The prompt holds {_listed(typed)}, which the model reads as control tokens and not "
            "as text."
            if typed
            else "",
            ""
            if is_whole
            else "This tokenizer does not keep the prompt exactly: the tokens' text differs from "
            "what was typed.",
        )
        return " ".join(note for note in notes if note)

    def _typed_control_tokens(self, texts: Sequence[str], ids: Sequence[int]) -> list[str]:
        fed = self._special_ids.intersection(ids)
        contents = {self._added.get(one, "") for one in fed} - {""}
        return sorted(one for one in contents if any(one in text for text in texts))


def _listed(names: Sequence[str]) -> str:
    shown = list(names[:MOST_NAMED])
    more = len(names) - len(shown)
    return ", ".join([*shown, *([f"{more} more"] if more else [])])


def check_prompt(prompt: str, *, is_raw: bool) -> None:
    """Raise PromptError for a prompt that no model can be fed."""
    if not (prompt if is_raw else prompt.strip()):
        msg = "the prompt is empty; type some text"
        raise PromptError(msg)
    if len(prompt) > MAX_PROMPT_CHARACTERS:
        msg = f"the prompt has {len(prompt):,} characters; at most {MAX_PROMPT_CHARACTERS:,} fit"
        raise PromptError(msg)
    try:
        prompt.encode()
    except UnicodeEncodeError as error:
        msg = (
            f"character {error.start + 1} of the prompt, U+{ord(prompt[error.start]):04X}, is half "
        )
        msg += "of a surrogate pair and no text; remove it"
        raise PromptError(msg) from error


def spelling(decoder: dict[str, Any] | None, pre_tokenizer: dict[str, Any] | None) -> Spelling:
    """Return how the vocabulary spells bytes, from the tokenizer's own settings."""
    kinds = _kinds(decoder) | _kinds(pre_tokenizer)
    if "ByteLevel" in kinds:
        return Spelling.BYTE_LEVEL
    if kinds & {"ByteFallback", "Metaspace"}:
        return Spelling.METASPACE
    return Spelling.OTHER


def _kinds(component: dict[str, Any] | None) -> set[str]:
    """Return the types of a component and of all that it is made of."""
    if component is None:
        return set()
    parts: list[dict[str, Any]] = component.get("decoders") or component.get("pretokenizers") or []
    return {str(component.get("type"))}.union(*(_kinds(part) for part in parts))


@cache
def byte_of_character() -> dict[str, int]:
    """Return the byte that each character of a byte-level vocabulary stands for.

    Source:
        Radford et al. 2019, section 2.2 (byte-level BPE), and the encoder released with it:
        printable Latin-1 characters stand for themselves, the other bytes in order for U+0100
        and on.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {
        chr(0x100 + index): byte for index, byte in enumerate(others)
    }


def _byte_level(token: str) -> bytes:
    byte_of = byte_of_character()
    if all(character in byte_of for character in token):
        return bytes(byte_of[character] for character in token)
    return token.encode()


def _metaspace(token: str) -> bytes:
    if len(token) == BYTE_TOKEN_LENGTH and token.startswith("<0x") and token.endswith(">"):
        return bytes.fromhex(token[3:5])
    return token.replace("▁", " ").encode()
