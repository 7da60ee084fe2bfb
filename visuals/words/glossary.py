"""The glossary: every term by its key, and where terms stand in a text.

The page's marks, the HTML report and README all say the sentences of ``terms``. A form in small
letters stands for any letter case, another only for itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from visuals.words.terms import TERMS, Term


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a text: a term as it stands there, or what lies between two."""

    text: str
    term: Term | None = None


TERM_OF = {term.key: term for term in TERMS}


def pieces(text: str) -> tuple[Piece, ...]:
    """Return a text cut at the terms in it, each where it first stands.

    Of two forms that begin at one place the longer one counts; none counts within a longer word.
    """
    found: list[Piece] = []
    seen: set[str] = set()
    end = 0
    for match in _pattern().finditer(text):
        term = term_of(match.group())
        if term.key in seen:
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


def term_of(form: str) -> Term:
    """Return the term that a page writes like this."""
    return _by_form().get(form) or _by_form()[form.lower()]


def form_pattern() -> str:
    """Return a regular expression for any form of any term, as Python and JavaScript read it."""
    exact = [form for form in _by_form() if form != form.lower()]
    loose = [form for form in _by_form() if form == form.lower()]
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
