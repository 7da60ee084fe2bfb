"""The glossary: every term by its key, and where terms stand in a text.

The page's marks, the HTML report and README all say the sentences of ``terms``. A form in small
letters stands for any letter case, another only for itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from visuals.words.terms import TERMS, Term

ABBREVIATION = re.compile(r"[A-Z]{3,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a text: a term as it stands there, or what lies between two."""

    text: str
    term: Term | None = None


TERM_OF = {term.key: term for term in TERMS}
# Everyday uses of a term's word: found, so that no shorter form is found within, and passed over.
EVERYDAY = ("api key", "arrow key", "arrow keys", "output head")


def pieces(text: str) -> tuple[Piece, ...]:
    """Return a text cut at the terms in it, each where it first stands.

    Of two forms that begin at one place the longer one counts; none counts within a longer word.
    """
    found: list[Piece] = []
    seen: set[str] = set()
    end = 0
    for match in _pattern().finditer(text):
        term = term_of(match.group())
        if term is None or term.key in seen:
            continue
        seen.add(term.key)
        if match.start() > end:
            found.append(Piece(text=text[end : match.start()]))
        found.append(Piece(text=match.group(), term=term))
        end = match.end()
    if end < len(text):
        found.append(Piece(text=text[end:]))
    return tuple(found)


def terms_in(text: str) -> tuple[Term, ...]:
    """Return the terms that stand in a text, in their order."""
    return tuple(piece.term for piece in pieces(text) if piece.term is not None)


def term_of(form: str) -> Term | None:
    """Return the term that a page writes like this; None for an everyday use of its word."""
    return _by_form().get(form) or _by_form().get(form.lower())


def in_full(form: str) -> str:
    """Return a term's abbreviation behind its words, as it should stand first; others as they are.

    ``TTFT`` becomes ``time to first token (TTFT)``.
    """
    term = term_of(form)
    is_abbreviation = term is not None and form == term.name and ABBREVIATION.fullmatch(form)
    return term.title if term is not None and is_abbreviation else form


def spelled_out(texts: Sequence[str]) -> tuple[str, ...]:
    """Return texts that are read in this order with each abbreviation in full where it is first."""
    seen: set[str] = set()
    return tuple(_spelled_out(text, seen) for text in texts)


def _spelled_out(text: str, seen: set[str]) -> str:
    parts: list[str] = []
    for piece in pieces(text):
        is_first = piece.term is not None and piece.term.key not in seen
        parts.append(in_full(piece.text) if is_first else piece.text)
        seen.update([] if piece.term is None else [piece.term.key])
    return "".join(parts)


def form_pattern() -> str:
    """Return a regular expression for any form of any term, as Python and JavaScript read it.

    It also finds what ``term_of`` says to be no term.
    """
    exact = [form for form in _by_form() if form != form.lower()]
    loose = [form for form in _by_form() if form == form.lower()] + list(EVERYDAY)
    spelled = [re.escape(form).replace("/", "\\/") for form in exact]
    spelled += ["".join(_either_case(letter) for letter in form) for form in loose]
    longest_first = sorted(spelled, key=len, reverse=True)
    # A letter, digit or hyphen beside it makes another word of it: 2·T·d_in has T, T4 has not.
    return f"(?<![\\w/-])(?:{'|'.join(longest_first)})(?![\\w/-])"


def readme_table() -> str:
    """Return README's glossary: a Markdown table of all terms."""
    rows = [f"| {term.title} | {term.sentence} | `{term.chapter}` |" for term in TERMS]
    return "\n".join(("| term | what it means | chapter of the tour |", "|---|---|---|", *rows))


def _either_case(letter: str) -> str:
    return f"[{letter}{letter.upper()}]" if letter.isalpha() else re.escape(letter)


@cache
def _by_form() -> dict[str, Term]:
    return {form: term for term in TERMS for form in term.forms}


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(form_pattern())
