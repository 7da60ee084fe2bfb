"""The glossary as the browser reads it: one file, whose address names its version. No page."""

from __future__ import annotations

import json
from functools import cache
from hashlib import sha256

from visuals.tour.chapters import CHAPTERS
from visuals.tour.texts import TEXTS
from visuals.words.glossary import form_pattern
from visuals.words.terms import TERMS

_DIGEST_LETTERS = 16


@cache
def terms_file() -> bytes:
    """Return all terms as JSON, with the pattern that finds them and the titles of the tour."""
    content = {
        "pattern": form_pattern(),
        "terms": [
            {
                "key": term.key,
                "title": term.title,
                "sentence": term.sentence,
                "chapter": term.chapter,
                "forms": term.forms,
            }
            for term in TERMS
        ],
        "chapters": {chapter.slug: TEXTS[chapter.slug].title for chapter in CHAPTERS},
    }
    return json.dumps(content, ensure_ascii=False).encode()


@cache
def terms_version() -> str:
    """Return the digest by which the file's address changes with any term."""
    return sha256(terms_file()).hexdigest()[:_DIGEST_LETTERS]
