"""The terms of a report: each marked where it first stands, with a card inside the file.

No page: the report opens offline, so a card names the tour's chapter and links to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from visuals.charts.figures import Figure
from visuals.charts.units import DASH
from visuals.words.glossary import in_full, pieces
from visuals.words.terms import Term

SCRIPT = (Path(__file__).parent / "report_terms.js").read_text(encoding="utf-8")
_PERCENTILES = {"itl_p50": "p50 ", "itl_p95": "p95 "}
_FIGURES = {
    "ttft": {"ttft": ""},
    "tpot": {"tpot": ""},
    "itl": _PERCENTILES,
    "percentile": _PERCENTILES,
}


class ReportTerms:
    """Marks the texts of one report in their order, each term once."""

    def __init__(self, numbers: Mapping[str, str]) -> None:
        """Begin a report.

        Args:
            numbers: What a term is in the run that the report is about, by its key.
        """
        self._numbers = numbers
        self._seen: set[str] = set()

    def marked(self, text: str) -> str:
        """Return a text as HTML: none of it is markup but the marks of terms not marked before."""
        return "".join(
            escape(piece.text) if piece.term is None else self._mark(piece.text, piece.term)
            for piece in pieces(text)
        )

    def _mark(self, text: str, term: Term) -> str:
        if term.key in self._seen:
            return escape(text)
        self._seen.add(term.key)
        number = self._numbers.get(term.key)
        in_this_run = f" <i>In this run: {escape(number)}.</i>" if number else ""
        chapter = term.chapter.replace("-", " ")
        card = (
            f"<b>{escape(term.title)}</b> {escape(term.sentence)}{in_this_run} "
            f"<small>Tour: {escape(chapter)}</small>"
        )
        name = f"term-{term.key}"
        return (
            f'<span class="term" tabindex="0" aria-describedby="{name}">{escape(in_full(text))}'
            f'<span class="about" role="tooltip" id="{name}">{card}</span></span>'
        )


def numbers_of(figures: Sequence[Figure]) -> dict[str, str]:
    """Return the terms that headline figures are numbers of, with number and unit."""
    known = {one.key: f"{one.value} {one.unit}" for one in figures if one.value != DASH}
    found = {
        term: ", ".join(f"{name}{known[key]}" for key, name in names.items() if key in known)
        for term, names in _FIGURES.items()
    }
    return {term: words for term, words in found.items() if words}
