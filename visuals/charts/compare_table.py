"""The figures of runs side by side as text: a table with spreads, and what a difference means.

No torch, no page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from inference.runs.comparisons import FigureSpread, SubjectFigures, difference
from visuals.charts.endings import ending
from visuals.charts.units import amount, counted, mebibytes, significant
from visuals.words.glossary import spelled_out

BATCH_COLUMN = "all rows, tok/s"  # shown where there is a batch
AGAINST_COLUMN = "decode against the first"  # shown where there are several
COLUMNS = spelled_out(
    (
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
        AGAINST_COLUMN,
        "K/V at the end",
        "ended",
    )
)
NUMBER_COLUMNS = range(2, 11)
SUBJECT_COLUMN = 1  # a prompt, or the settings that are compared
WORD_COLUMNS = (SUBJECT_COLUMN, 11)
FOOTNOTE = (
    "Medians over the repeats, in brackets the smallest and the largest. All times are measured "
    "step times; a cold run includes first-call costs. K/V is read from the cache's tensors; a "
    "row of a batch has its part of them."
)


def table_rows(figures: Sequence[SubjectFigures]) -> list[tuple[str, ...]]:
    """Return the cells of the table, a row for each subject."""
    return [_cells(subject, figures[0]) for subject in figures]


def table_html(figures: Sequence[SubjectFigures], marked: Callable[[str], str] = escape) -> str:
    """Return the table as HTML in which nothing of the prompts is markup.

    Args:
        figures: A row for each.
        marked: Makes HTML of the table's own words.
    """
    rows = table_rows(figures)
    left_out = {BATCH_COLUMN} - ({BATCH_COLUMN} if _has_batch(figures) else set())
    left_out |= {AGAINST_COLUMN} if len(figures) == 1 else set()
    columns = [index for index, name in enumerate(COLUMNS) if name not in left_out]
    caption = "Figures side by side" if len(figures) > 1 else "Figures of the run"
    head = "".join(f'<th scope="col">{marked(COLUMNS[index])}</th>' for index in columns)
    body = "".join(f"<tr>{_row_html(cells, columns)}</tr>" for cells in rows)
    return (
        f'<div class="scroll" role="region" aria-label="{caption}" tabindex="0">'
        f'<table class="figures"><caption>{caption}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        f'<p class="footnote">{marked(" ".join((FOOTNOTE, *disturbed_notes(figures))))}</p>'
    )


def disturbed_notes(figures: Sequence[SubjectFigures]) -> tuple[str, ...]:
    """Return a sentence for each subject whose steps other programs disturbed."""
    return tuple(
        f"{subject.subject.label}: {_disturbed(subject)}."
        for subject in figures
        if subject.disturbance.disturbed
    )


def _disturbed(figures: SubjectFigures) -> str:
    """Return how many steps were disturbed and which figures hold them."""
    left_out = (
        "with no others in a run, its ITL, TPOT and tokens/s hold them too"
        if figures.is_all_disturbed
        else "left out of ITL, TPOT and tokens/s"
    )
    runs = len(figures.subject.samples)
    ttft = f", in the TTFT of {figures.disturbed_ttfts} of {counted(runs, 'run')}"
    count = figures.disturbance.sentence
    return f"{count}, {left_out}{ttft if figures.disturbed_ttfts else ''}"


def verdict(first: FigureSpread, second: FigureSpread) -> str:
    """Return how the second differs from the first, and whether repeats differ as much."""
    compared = difference(first, second)
    if compared is None:
        return "unknown"
    ratio, is_meant = compared
    share = _how_fast(ratio)
    if is_meant is None:
        return f"{share}; without repeats the spread is unknown"
    if is_meant:
        return f"{share}, more than the spread"
    return f"{share}, smaller than the spread"


def _how_fast(ratio: float) -> str:
    """Return a relative difference of rates in words."""
    if ratio >= 1:
        return f"{1 + ratio:.1f} times as fast"
    return f"{abs(ratio) * 100:.0f} % {'faster' if ratio > 0 else 'slower'}"


def spread_text(spread: FigureSpread, factor: float = 1.0) -> str:
    """Return a median and the ends of its spread."""
    if spread.middle is None:
        return significant(None)
    middle = significant(spread.middle * factor)
    if spread.width is None or spread.low is None or spread.high is None:
        return middle
    return f"{middle} ({significant(spread.low * factor)}\u2013{significant(spread.high * factor)})"


def _cells(figures: SubjectFigures, first: SubjectFigures) -> tuple[str, ...]:
    is_first = figures is first
    cold = " (cold)" if figures.is_cold else ""
    return (
        figures.subject.label,
        figures.subject.title,
        str(len(figures.subject.samples)),
        f"{figures.prompt_tokens:,}",
        f"{figures.output_tokens:,}",
        spread_text(figures.ttft_s, 1e3) + cold,
        spread_text(figures.itl_p50_s, 1e3),
        spread_text(figures.itl_p95_s, 1e3),
        spread_text(figures.tpot_s, 1e3),
        spread_text(figures.tokens_per_s),
        spread_text(figures.batch_tokens_per_s),
        "\u2013" if is_first else verdict(first.tokens_per_s, figures.tokens_per_s),
        amount(mebibytes(figures.kv_bytes), "MiB"),
        ending(figures.finish),
    )


def _has_batch(figures: Sequence[SubjectFigures]) -> bool:
    return any(subject.batch_tokens_per_s.count for subject in figures)


def _row_html(cells: Sequence[str], columns: Sequence[int]) -> str:
    """Return a row's cells in these columns."""
    html = f'<th scope="row">{escape(cells[0])}</th>'
    for column in columns[1:]:
        cell = cells[column]
        kind = ' class="number"' if column in NUMBER_COLUMNS else ""
        kind = kind or (' class="words"' if column in WORD_COLUMNS else "")
        kind += ' translate="no"' if column == SUBJECT_COLUMN else ""
        value, bracket, spread = cell.partition(" (")
        has_spread = column in NUMBER_COLUMNS and bool(bracket)
        text = f"{escape(value)} <small>({escape(spread)}</small>" if has_spread else escape(cell)
        html += f"<td{kind}>{text}</td>"
    return html
