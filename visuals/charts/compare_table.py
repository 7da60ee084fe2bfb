"""The figures of runs side by side as text: a table with spreads, and what a difference means.

No torch, no page.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from inference.runs.comparisons import FigureSpread, SubjectFigures, difference
from visuals.charts.units import amount, mebibytes, significant

BATCH_COLUMN = "all rows, tok/s"  # shown where there is a batch
COLUMNS = (
    "",
    "subject",
    "runs",
    "prompt tokens",
    "output tokens",
    "TTFT, ms",
    "ITL p50, ms",
    "ITL p95, ms",
    "TPOT, ms",
    "decode, tok/s",
    BATCH_COLUMN,
    "decode against the first",
    "K/V at the end",
    "ended",
)
NUMBER_COLUMNS = range(2, 11)
WORD_COLUMNS = (1, 11)
FINISHES = {
    "eos": "end of text",
    "length": "length",
    "context": "context full",
}
FOOTNOTE = (
    "Medians over the repeats, in brackets the smallest and the largest. All times are measured "
    "step times; a cold run holds first-call costs. K/V is read off the cache's tensors, and "
    "counted from the model's shape for a row of a batch."
)


def table_rows(figures: Sequence[SubjectFigures]) -> list[tuple[str, ...]]:
    """Return the cells of the table, a row for each subject."""
    return [_cells(one, figures[0]) for one in figures]


def table_html(figures: Sequence[SubjectFigures]) -> str:
    """Return the table as HTML in which nothing of the prompts is markup."""
    rows = table_rows(figures)
    places = [
        index for index, name in enumerate(COLUMNS) if name != BATCH_COLUMN or _has_batch(figures)
    ]
    head = "".join(f'<th scope="col">{escape(COLUMNS[index])}</th>' for index in places)
    body = "".join(f"<tr>{_row_html(cells, places)}</tr>" for cells in rows)
    return (
        '<div class="scroll"><table class="figures"><caption>Figures side by side</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        f'<p class="footnote">{escape(FOOTNOTE)}</p>'
    )


def verdict(first: FigureSpread, second: FigureSpread) -> str:
    """Return how the second differs from the first, and whether repeats differ as much."""
    found = difference(first, second)
    if found is None:
        return "not known"
    ratio, is_meant = found
    share = f"{abs(ratio) * 100:.0f} % {'faster' if ratio > 0 else 'slower'}"
    if is_meant is None:
        return f"{share}; without repeats no spread is known"
    if is_meant:
        return f"{share}, more than the spread"
    return f"{share}, smaller than the spread"


def spread_text(spread: FigureSpread, factor: float = 1.0) -> str:
    """Return a median and the ends of its spread."""
    if spread.middle is None:
        return significant(None)
    middle = significant(spread.middle * factor)
    if spread.width is None or spread.low is None or spread.high is None:
        return middle
    return f"{middle} ({significant(spread.low * factor)}\u2013{significant(spread.high * factor)})"


def _cells(one: SubjectFigures, first: SubjectFigures) -> tuple[str, ...]:
    is_first = one is first
    cold = " (cold)" if one.is_cold else ""
    return (
        one.subject.label,
        one.subject.title,
        str(len(one.subject.samples)),
        f"{one.prompt_tokens:,}",
        f"{one.output_tokens:,}",
        spread_text(one.ttft_s, 1e3) + cold,
        spread_text(one.itl_p50_s, 1e3),
        spread_text(one.itl_p95_s, 1e3),
        spread_text(one.tpot_s, 1e3),
        spread_text(one.tokens_per_s),
        spread_text(one.batch_tokens_per_s),
        "\u2013" if is_first else verdict(first.tokens_per_s, one.tokens_per_s),
        amount(mebibytes(one.kv_bytes), "MiB"),
        FINISHES.get(one.finish, one.finish),
    )


def _has_batch(figures: Sequence[SubjectFigures]) -> bool:
    return any(one.batch_tokens_per_s.count for one in figures)


def _row_html(cells: Sequence[str], places: Sequence[int]) -> str:
    """Return a row's cells at these places."""
    html = f'<th scope="row">{escape(cells[0])}</th>'
    for place in places[1:]:
        cell = cells[place]
        kind = ' class="number"' if place in NUMBER_COLUMNS else ""
        kind = kind or (' class="words"' if place in WORD_COLUMNS else "")
        value, bracket, spread = cell.partition(" (")
        is_parted = place in NUMBER_COLUMNS and bool(bracket)
        text = f"{escape(value)} <small>({escape(spread)}</small>" if is_parted else escape(cell)
        html += f"<td{kind}>{text}</td>"
    return html
