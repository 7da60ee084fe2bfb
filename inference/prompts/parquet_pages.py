"""How far the pages of a Parquet column unfold, told by their headers before any is unpacked.

A page is unpacked as a whole, so a file of kilobytes may take gigabytes; the sizes in the file's
footer need not be true, those in the pages' headers are what is allocated. No torch.

Source:
    Apache Parquet, ``parquet.thrift``: PageHeader; Apache Thrift, compact protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from inference.records.errors import InputError

# Field numbers of a page's header, and of the part that each kind of page has in it.
UNFOLDED, PACKED = 2, 3
PARTS = (5, 7, 8)
VALUES = 1
# Kinds of the compact protocol.
YES_OR_NO = (1, 2)
BYTE, NUMBERS, DOUBLE, BINARY, STRUCT = 3, (4, 5, 6), 7, 8, 12
MOST_PAGES = 2**17  # of one column of a row group; usual ones hold a mebibyte each
DEEPEST = 8
LONGEST_NUMBER = 10  # bytes of 64 bits, seven in each


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSizes:
    """What the pages of one column of a row group unfold to.

    Attributes:
        largest_bytes: Of the largest page.
        total_bytes: Of all pages.
        value_count: Values in all pages, those of a dictionary too.
    """

    largest_bytes: int
    total_bytes: int
    value_count: int


def page_sizes(content: bytes, start: int, length: int) -> PageSizes:
    """Return what the pages from ``start`` on, ``length`` bytes with their headers, unfold to.

    Raises:
        InputError: They are damaged, or too many.
    """
    largest = total = values = 0
    for number, (unfolded, held) in enumerate(_pages(content, start, start + length)):
        if number >= MOST_PAGES:
            msg = f"a column of it has more than {MOST_PAGES:,} pages; write it in larger ones"
            raise InputError(msg)
        largest, total, values = max(largest, unfolded), total + unfolded, values + held
    return PageSizes(largest_bytes=largest, total_bytes=total, value_count=values)


def _pages(content: bytes, at: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the unfolded bytes and the values of each page."""
    while at < end:
        try:
            header, at = _struct(content, at, DEEPEST)
        except IndexError as error:
            raise InputError(_damaged()) from error
        unfolded, packed = header.get(UNFOLDED), header.get(PACKED)
        if (
            not isinstance(unfolded, int)
            or not isinstance(packed, int)
            or min(unfolded, packed) < 0
        ):
            raise InputError(_damaged())
        part = next((header[field] for field in PARTS if field in header), {})
        held = part.get(VALUES, 0) if isinstance(part, dict) else 0
        yield unfolded, held if isinstance(held, int) else 0
        at += packed


def _struct(content: bytes, at: int, depth: int) -> tuple[dict[int, object], int]:
    """Return the numbers and structs among the fields, by number, and where they end."""
    fields: dict[int, object] = {}
    field = 0
    while head := content[at]:
        at += 1
        if head >> 4:
            field += head >> 4
        else:
            field, at = _signed(content, at)
        fields[field], at = _value(content, at, head & 15, depth)
    return fields, at + 1


def _value(content: bytes, at: int, kind: int, depth: int) -> tuple[object, int]:
    if kind in YES_OR_NO:
        return None, at
    if kind in NUMBERS:
        return _signed(content, at)
    if kind == BINARY:
        size, at = _unsigned(content, at)
        return None, at + size
    if kind == STRUCT and depth:
        return _struct(content, at, depth - 1)
    widths = {BYTE: 1, DOUBLE: 8}
    if kind not in widths:  # a page's header has no lists
        raise InputError(_damaged())
    return None, at + widths[kind]


def _signed(content: bytes, at: int) -> tuple[int, int]:
    number, at = _unsigned(content, at)
    return (number >> 1) ^ -(number & 1), at


def _unsigned(content: bytes, at: int) -> tuple[int, int]:
    number = 0
    for place in range(LONGEST_NUMBER):
        byte = content[at + place]
        number |= (byte & 127) << (7 * place)
        if byte < 128:  # noqa: PLR2004  the bit that says that more follow
            return number, at + place + 1
    raise InputError(_damaged())


def _damaged() -> str:
    return "it is damaged: a page of it has no proper header; make it again"
