"""Keeps self-checks in the user's cache folder, one file for each subject. No torch.

With another program, library, model, weights or machine the file has another name, so a check that
was kept is one of exactly what is loaded.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from inference.records.checks import CheckSubject, SelfCheck
from inference.storage.atomic_write import replace_file
from inference.storage.folders import cache_folder


def saved_check(subject: CheckSubject, folder: Path | None = None) -> SelfCheck | None:
    """Return the whole check kept for this subject; None where there is none."""
    try:
        content = _path(subject, folder).read_bytes()
        kept = TypeAdapter(SelfCheck).validate_json(content)
    except (OSError, ValidationError):
        return None  # none yet, or a file that can no longer be read: it is done again
    return kept if kept.subject == subject and kept.is_whole else None


def save_check(check: SelfCheck, folder: Path | None = None) -> bool:
    """Write a whole check in one stroke; return whether it could be kept."""
    path = _path(check.subject, folder)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, TypeAdapter(SelfCheck).dump_json(check, indent=1))
    except OSError:
        return False
    return True


def _path(subject: CheckSubject, folder: Path | None) -> Path:
    key = hashlib.sha256(TypeAdapter(CheckSubject).dump_json(subject)).hexdigest()
    return (folder or cache_folder("checks")) / f"{key[:32]}.json"
