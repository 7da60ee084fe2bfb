"""Tokens as a reader sees them, and their bytes joined to text."""

from __future__ import annotations

import pytest

from inference.records.model import TokenPiece
from visuals.charts.tokens import held_back, hex_bytes, probability, shown, text_added

FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467"


def _piece(raw: bytes, *, is_special: bool = False) -> TokenPiece:
    return TokenPiece(token_id=7, raw=raw, is_special=is_special)


@pytest.mark.parametrize(
    ("raw", "text", "kind"),
    [
        pytest.param(b" the", "\u00b7the", "normal", id="space"),
        pytest.param(b"a\n\tb", "a\u23ce\u21e5b", "normal", id="newline and tab"),
        pytest.param(b"\xf0\x9f", "f0 9f", "fragment", id="half an emoji"),
        pytest.param("\u6f22".encode(), "\u6f22", "normal", id="CJK"),
        pytest.param("\u200d".encode(), "U+200D", "normal", id="joiner alone"),
        pytest.param(FAMILY.encode(), FAMILY, "normal", id="joined emoji"),
        pytest.param("\u0301".encode(), "\u25cc\u0301", "normal", id="accent alone"),
        pytest.param("\u202eab".encode(), "U+202Eab", "normal", id="direction override"),
        pytest.param(b"\x00", "U+0000", "normal", id="control character"),
        pytest.param(b"<b>", "<b>", "normal", id="HTML"),
        pytest.param(b"", "\u2205", "normal", id="no bytes"),
    ],
)
def test_a_token_is_shown_so_that_all_of_it_is_seen(raw: bytes, text: str, kind: str) -> None:
    assert shown(_piece(raw)) == (text, kind)


def test_a_control_token_is_told_apart() -> None:
    assert shown(_piece(b"<|end|>", is_special=True)) == ("<|end|>", "special")


def test_a_very_long_token_is_cut_and_says_so() -> None:
    text, _ = shown(_piece(b" " * 200))

    assert text == "\u00b7" * 24 + "\u2026"
    assert hex_bytes(b"a" * 40) == "61 " * 32 + "\u2026"


@pytest.mark.parametrize(
    "text", [FAMILY, "\u6f22\u5b57\u304b\u306a", "na\u00efve \U0001f389!", "plain"]
)
def test_text_joined_byte_by_byte_is_the_text_and_never_a_broken_character(text: str) -> None:
    raw = text.encode()
    joined = ""
    for index in range(len(raw)):
        added, _ = text_added(raw[:index], raw[index : index + 1])
        assert "\ufffd" not in added
        joined += added

    assert joined == text


def test_bytes_that_are_no_utf8_read_as_they_do_in_one_piece() -> None:
    raw = b"a\x80\xe2\x82b\xf0\x9f\xff\xc3"
    for index in range(len(raw) + 1):
        head, held = text_added(b"", raw[:index])
        tail, rest = text_added(raw[:index], raw[index:])
        assert held == held_back(raw[:index])
        whole = head + tail + rest.decode(errors="replace")
        assert whole == raw.decode(errors="replace")


def test_a_probability_is_never_above_one_and_may_be_unknown() -> None:
    assert probability(0.0000001) == 1.0
    assert probability(-0.5) == 0.6065
    assert probability(None) is None
