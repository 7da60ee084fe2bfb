"""Bytes of an uploaded file to text: archives and pictures refused, the encoding recognised."""

from __future__ import annotations

import codecs
import re

from charset_normalizer import from_bytes

from inference.records.errors import InputError
from inference.records.prompts import Upload

WESTERN = "cp1252"
SAMPLE_BYTES = 256 * 1024  # enough to tell an encoding by
SHOWN_CHARACTERS = 24  # on each side of the first that is not ASCII
MOST_ACCENTED = 0.3  # of the letters; Portuguese has a fifth in a short sentence
# What Western Windows has no use for, or not within words: control characters, three accented
# letters in a row, signs and quotation marks between letters, and letters where Czech, Turkish
# and Hungarian have their own.
NOT_WESTERN = re.compile(
    r"[\x80-\x9f\u2020\u2021\u02c6]|[\xc0-\xff]{3}|[\xd5\xf5](?!e)|[\xdd\xfd]"
    r"|(?<=[a-z\xc0-\xff])[\xa1-\xa9\xab-\xb6\xb8\xb9\xbb-\xbf\u201c\u201d](?=[a-z\xc0-\xff])"
)
TURKISH_OR_ICELANDIC = re.compile(r"[\xd0\xde\xf0\xfe]")
ONLY_ICELANDIC = re.compile(r"[\xe1\xe6\xed\xf3\xfa]")
# Source: the first bytes that each format's own specification prescribes.
SIGNATURES = (
    (b"PK\x03\x04", "a ZIP archive or an Office document"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"%PDF-", "a PDF document"),
    (b"\x89PNG\r\n", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"\x7fELF", "a program"),
    (b"MZ\x90", "a program"),
    (b"PAR1", "a Parquet table"),
    (b"GGUF", "a model's weights"),
    (b"SQLite format 3\x00", "a database"),
    (b"\xd0\xcf\x11\xe0", "an old Office document"),
)
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def check_bytes(file: Upload) -> None:
    """Raise InputError when the first bytes are those of something that is no text.

    Raises:
        InputError: It is an archive, a picture, a program and so on.
    """
    for signature, kind in SIGNATURES:
        if file.content.startswith(signature):
            msg = f"it is {kind}, whatever its name says; give a text file, or unpack it first"
            raise InputError(msg)


def decoded(content: bytes) -> tuple[str, str]:
    """Return the text and a note on its encoding, empty where that is plain UTF-8.

    Lines that end with a carriage return alone, as old Macintosh programs write them, get a line
    feed in its place.

    Raises:
        InputError: No encoding fits.
    """
    text, note = _decoded(content)
    return (text, note) if "\n" in text else (text.replace("\r", "\n"), note)


def _decoded(content: bytes) -> tuple[str, str]:
    for mark, encoding in MARKS:
        if content.startswith(mark):
            return _strictly(content, encoding), ""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return _recognised(content)
    if "\x00" in text:
        return _recognised(content)
    return text, ""


def _strictly(content: bytes, encoding: str) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        msg = f"it says it is {encoding.removesuffix('-sig').upper()} and byte {error.start + 1} "
        msg += "is not; save it as UTF-8"
        raise InputError(msg) from error


def _recognised(content: bytes) -> tuple[str, str]:
    """Return the text in the likeliest encoding that gives every byte a meaning."""
    for encoding in ("utf-16-le", "utf-16-be"):
        zeros = content[int(encoding == "utf-16-le") :: 2].count(0)
        if zeros > len(content) // 4:
            return _strictly(content, encoding), f"read as {encoding[:6].upper()}"
    if b"\x00" in content:
        msg = "it is binary: it holds zero bytes, which no text has; give a text file"
        raise InputError(msg)
    encoding = _likeliest(content)
    if encoding is None:
        msg = "its encoding cannot be recognised; save it as UTF-8"
        raise InputError(msg)
    text = _strictly(content, encoding)
    name = encoding.replace("_", "-")
    return text, f"not UTF-8; read as {name}: \u201c{_sample(text)}\u201d. Check accented letters"


def _sample(text: str) -> str:
    """Return the words around the first letter that is not ASCII, on one line."""
    place = next((index for index, one in enumerate(text) if not one.isascii()), 0)
    around = text[max(place - SHOWN_CHARACTERS, 0) : place + SHOWN_CHARACTERS]
    return " ".join(around.split())


def _likeliest(content: bytes) -> str | None:
    """Return the likeliest encoding: that of Western Windows where the text could be in it.

    Source:
        WHATWG, Encoding Standard, section 4.2: windows-1252 is the web's default for Latin text.
    """
    if _is_western(content):
        return WESTERN
    best = from_bytes(content[:SAMPLE_BYTES]).best()
    return None if best is None else best.encoding


def _is_western(content: bytes) -> bool:
    """Return whether the bytes are Western text: few accents, each a letter or a usual mark.

    Cyrillic, Greek and East Asian text is made of such bytes, not sprinkled with them; Polish,
    Turkish and other Latin letters stand where Western Windows has signs, in the midst of words.
    """
    try:
        text = content.decode(WESTERN)
    except UnicodeDecodeError:
        return False
    letters = sum(one.isalpha() for one in text)
    accented = sum(one.isalpha() and not one.isascii() for one in text)
    if accented > letters * MOST_ACCENTED:
        return False
    if TURKISH_OR_ICELANDIC.search(text):
        return ONLY_ICELANDIC.search(text) is not None
    return not NOT_WESTERN.search(text)
