"""What the live panel needs for presenter mode, as the page passes it. No Streamlit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import segno

from visuals.live.present_route import PRESENT_PATH
from visuals.live.viewer_link import ViewerLink
from visuals.words.presenter import IDEAS

Stage = dict[str, object]


def presenter_stage(
    *,
    is_on: bool,
    panels: Sequence[str] = (),
    sentence: str = "",
    link: ViewerLink | None = None,
) -> Stage:
    """Return what a presenter's panel is given.

    Args:
        is_on: The address asks for presenter mode.
        panels: That the address names.
        sentence: What is wrong with the address; empty for nothing.
        link: By which others follow.
    """
    return {
        **_stage("presenter"),
        "on": is_on,
        "panels": list(panels),
        "says": sentence,
        "link": None if link is None else _link_item(link),
    }


def viewer_stage(*, is_on: bool) -> Stage:
    """Return what a viewer's panel is given; it is on where the page knows of a presenter."""
    return {**_stage("viewer"), "on": is_on, "panels": [], "says": "", "link": None}


def qr_rows(text: str) -> list[str]:
    """Return the QR code of a text: a row of ``1`` for dark and ``0`` for light each.

    Source:
        ISO/IEC 18004, by segno; error correction M, of which 15 % may be lost.
    """
    code = segno.make(text, error="m", micro=False)
    return ["".join(str(module) for module in row) for row in code.matrix]


def _stage(role: str) -> Stage:
    ideas = [{"name": name, **asdict(idea)} for name, idea in IDEAS.items()]
    return {"role": role, "address": PRESENT_PATH, "ideas": ideas}


def _link_item(link: ViewerLink) -> Stage:
    return {"url": link.url, "note": link.note, "code": [] if link.note else qr_rows(link.url)}
