"""A run that is over as one HTML page that plays it: the live panel itself, opened from a file.

Nothing is loaded from anywhere and nothing can be: the modules, the chart library and the run are
inside, and the page's own policy runs no other script and sends no request. What was generated is
base64 of gzip until a script reads it, and text and never markup after that. No Streamlit.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from html import escape

from inference.records.run import RunTrace
from inference.runs.store_entries import entry_of
from visuals.charts.inline_script import inline_script
from visuals.charts.made_with import made_with
from visuals.charts.units import byte_text, counted, date_text
from visuals.live.playback import SPEEDS, ending
from visuals.live.recorded_frames import RecordedFrames, recorded_frames, stops_of
from visuals.live.recorded_weights import RecordedWeights, recorded_weights
from visuals.live.vega_bundle import bundle
from visuals.panel.contents import EXPLANATIONS, chart_specs
from visuals.panel.modules import all_scripts, player_styles, styles, term_styles
from visuals.panel.one_script import one_script
from visuals.panel.terms_file import terms_file
from visuals.words.terms import TERMS

MOST_BYTES = 5_000_000
WEIGHT_CHARACTERS = 2_000_000  # of these, attention weights may take so many
REST_BYTES = 32 * 1024  # what is written around the frames once they are known
ENTRY = "player/player.js"
TITLE_CHARACTERS = 120
WAIT = (
    "The run is being unpacked. If this line stays, the file was cut when it was saved, or this "
    "browser is too old or runs no scripts."
)
KEYS = "Space plays and holds, the arrow keys go one step."


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayerPage:
    """The page.

    Attributes:
        content: The file.
        remarks: What it does not show of its run, a sentence each; the page says them too.
    """

    content: bytes
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recorded:
    """What is shown of a run: all of it, or what fits."""

    trace: RunTrace
    frames: RecordedFrames
    weights: RecordedWeights


def player_page(trace: RunTrace, *, title: str = "", most_bytes: int = MOST_BYTES) -> PlayerPage:
    """Return the page of a run that is over.

    Args:
        trace: The run, one that failed or has no step too.
        title: Its heading; the beginning of the prompt unless given.
        most_bytes: That it may take; what leads to the first step is there in any case.
    """
    weights = recorded_weights(trace, stops_of(len(trace.events)), WEIGHT_CHARACTERS)
    if not weights.items:
        trace = replace(trace, attention=())  # the panel then begins with the mask
    vega, script = inline_script(bundle().decode()), inline_script(one_script(ENTRY, all_scripts()))
    taken = len(vega) + len(script) + weights.characters + len(styles()) + REST_BYTES
    taken += len(_packed((_contents(trace), json.loads(terms_file()))))
    room = max(0, most_bytes - taken) * 3 // 4  # of base64
    run = _Recorded(trace=trace, frames=recorded_frames(trace, room), weights=weights)
    remarks = _remarks(run, most_bytes)
    heading = (title or entry_of(trace, trace.info.run_id, 0).title)[:TITLE_CHARACTERS]
    parts = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy(vega, script)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(heading)}</title>",
        f"<style>{styles()}\n{term_styles()}\n{player_styles()}</style></head><body>",
        _head(run, heading, remarks),
        f'<main id="player"><p>{WAIT}</p></main>',
        _foot(run),
        _held("about", _packed(_about(run))),
        _held("frames", base64.b64encode(run.frames.packed).decode()),
        f'<script type="module">{vega}</script><script type="module">{script}</script>',
        "</body></html>",
    )
    return PlayerPage(content="".join(parts).encode(errors="replace"), remarks=remarks)


def policy(*scripts: str) -> str:
    """Return what the page allows: these scripts, and to load from nowhere."""
    digests = [base64.b64encode(sha256(one.encode()).digest()).decode() for one in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    # Vega compiles the expressions of a chart, and its tips bring a style of their own.
    return (
        f"default-src 'none'; script-src {allowed} 'unsafe-eval'; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'"
    )


def _contents(trace: RunTrace) -> dict[str, object]:
    """Return what the panel is given of every run, as a page of the server passes it."""
    return {
        "run_id": trace.info.run_id,
        "token": "",
        "label": "",
        "state": ending(trace).value,
        "entry": ENTRY,
        "scripts": "",
        "vega": "",
        "specs": chart_specs(),
        "explanations": EXPLANATIONS,
        "panels": None,
    }


def _about(run: _Recorded) -> dict[str, object]:
    """Return all that the page's script needs besides the frames."""
    return {
        "panel": _contents(run.trace),
        "stops": run.frames.stops,
        "ends_s": run.frames.ends_s,
        "speeds": SPEEDS,
        "weights": run.weights.items,
        "terms": json.loads(terms_file()),
        "no_weights": _no_weights(run.weights),
    }


def _no_weights(weights: RecordedWeights) -> str:
    """Return what is said where weights are asked for that the page does not hold."""
    if not weights.captured:
        return "This page holds no attention weights."
    return f"This page holds the attention weights of {'; '.join(weights.captured)} only."


def _remarks(run: _Recorded, most_bytes: int) -> tuple[str, ...]:
    """Return what the page does not show, and why."""
    steps, held = len(run.trace.events), run.frames.steps
    remarks: list[str] = []
    if held < steps:
        remarks.append(
            f"This page holds the first {held:,} of {counted(steps, 'step')}: with more it would "
            f"take over {byte_text(most_bytes)}. The run file has all of them."
        )
    if len(run.frames.stops) < held + 1:
        stride = run.frames.stops[-2] - run.frames.stops[-3]
        remarks.append(
            f"All {held:,} steps are drawn, and the run can be held after every {stride:,} of them."
        )
    if run.weights.left_out:
        remarks.append(
            f"Attention weights that the run file has and this page does not: "
            f"{'; '.join(run.weights.left_out)}."
        )
    return tuple(remarks)


def _head(run: _Recorded, heading: str, remarks: tuple[str, ...]) -> str:
    info = run.trace.info
    made = (
        f"Recorded on {info.device.name} in {info.device.dtype}, {date_text(info.started_at)} "
        f"(UTC). Nothing is computed here. {KEYS}"
    )
    lines = [f'<h1 translate="no">{escape(heading)}</h1>', f"<p>{escape(made)}</p>"]
    lines += [f'<p class="player-remark">{escape(one)}</p>' for one in remarks]
    return f'<header class="player-head">{"".join(lines)}</header>'


def _foot(run: _Recorded) -> str:
    """Return the run's settings and the terms of the field, folded away; none of them is marked."""
    terms = {term.title: term.sentence for term in TERMS}
    return (
        f"<footer>{_folded('Settings of this run', made_with((run.trace,)))}"
        f"{_folded('Terms', terms)}</footer>"
    )


def _folded(summary: str, pairs: Mapping[str, str]) -> str:
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in pairs.items()
    )
    return f'<details><summary>{escape(summary)}</summary><dl translate="no">{rows}</dl></details>'


def _packed(value: object) -> str:
    """Return a value as base64 of gzip of JSON, which is safe in any element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _held(name: str, content: str) -> str:
    """Return an element that holds what no browser reads by itself."""
    return f'<script type="text/plain" id="{name}">{content}</script>'
