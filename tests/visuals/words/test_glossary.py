"""Every term has a sentence and a chapter, and README says the same as the pages."""

from __future__ import annotations

import re
from pathlib import Path

from visuals.tour.chapters import Slug
from visuals.words.glossary import (
    TERM_OF,
    form_pattern,
    in_full,
    pieces,
    readme_table,
    spelled_out,
    terms_in,
)
from visuals.words.terms import TERMS

ROOT = Path(__file__).resolve().parents[3]
LONGEST_SENTENCE = 140  # letters; it stands in a small window


def test_every_term_has_one_sentence_that_ends_and_a_chapter_that_exists() -> None:
    slugs = {slug.value for slug in Slug}

    assert len(TERM_OF) == len(TERMS)
    assert {term.chapter for term in TERMS} == slugs
    for term in TERMS:
        assert term.sentence.endswith("."), term.key
        assert term.sentence.count(". ") == 0, term.key
        assert len(term.sentence) <= LONGEST_SENTENCE, term.key


def test_a_form_belongs_to_one_term() -> None:
    forms = [form for term in TERMS for form in term.forms]

    assert len(forms) == len(set(forms))


def test_readme_has_the_sentences_of_the_pages() -> None:
    assert readme_table() in (ROOT / "README.md").read_text(encoding="utf-8")


def test_a_text_is_cut_at_its_terms_and_loses_nothing() -> None:
    text = "Prefill: T=41, L=41; 2\u00b7T\u00b7d_in, K/V cache of a T4, prefill again."

    parts = pieces(text)

    assert "".join(part.text for part in parts) == text
    marked = [(part.text, part.term.key) for part in parts if part.term]
    assert marked == [
        ("Prefill", "prefill"),
        ("T", "fed"),
        ("L", "length"),
        ("K/V cache", "kv_cache"),
    ]


def test_a_term_within_a_longer_word_or_in_the_wrong_case_is_none() -> None:
    assert terms_in("keyboard, arrow, t=3, browser, ttft, T4, TL") == ()


def test_the_longer_of_two_forms_counts() -> None:
    assert [term.key for term in terms_in("FLOPs per byte, K/V heads")] == [
        "arithmetic_intensity",
        "grouped_heads",
    ]


def test_the_pattern_holds_nothing_that_only_python_reads() -> None:
    assert re.search(r"\(\?P|\\Z|\\A|\(\?i", form_pattern()) is None


def test_an_everyday_use_of_a_word_is_no_term() -> None:
    assert [term.key for term in terms_in("Arrow keys move; keys are stored")] == ["key"]
    assert terms_in("the arrow keys") == ()


def test_an_abbreviation_stands_behind_its_words_and_everything_else_as_it_is() -> None:
    assert in_full("TTFT") == "time to first token (TTFT)"
    assert in_full("FLOP") == "floating-point operation (FLOP)"
    for form in ("FLOPs", "T", "K/V", "prefill", "arrow keys", "no term"):
        assert in_full(form) == form


def test_texts_in_turn_have_each_abbreviation_in_full_once() -> None:
    assert spelled_out(("TTFT, ms", "ITL p50, ms", "ITL p95, ms", "tokens")) == (
        "time to first token (TTFT), ms",
        "inter-token latency (ITL) p50, ms",
        "ITL p95, ms",
        "tokens",
    )
