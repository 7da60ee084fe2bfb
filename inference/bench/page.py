"""The part of ``bench`` that needs the page: what watching costs, and how long the page takes.

The page measures itself in a process of its own (``visuals/live/page_bench.py``), named here by
its module only, since nothing in this package may import what draws. No torch.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.bench.rounds import Spread, Target, ratio_of, spread_of

MODULE = "visuals.live.page_bench"
ROOT = Path(__file__).resolve().parents[2]
LONGEST_S = 1800
MOST_FRAME_BYTES = 65536
MOST_FRAME_MS = 15.0
LONGEST_START_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFigures:
    """What the page measured of itself.

    Attributes:
        tokens_per_s: Of runs headless, with a viewer that draws nothing, and with a browser.
        viewer_ratio: The speed with that viewer, divided by that of the same round's headless run.
        browser_ratio: Likewise, with a browser that draws on the same processors.
        ttft_ratio: TTFT of a run started and watched in a browser, divided by that of a run with
            nobody watching of the same round.
        first_steps_ratio: Likewise, of the first decode steps.
        main_thread_ms: Processor time of the browser's main thread for each frame, by the number
            of the run's tokens; lengths that had too few frames are left out.
        frame_bytes: The median and the largest frame.
        start_s: Seconds until the server answered, from there to the page, and so on.
    """

    tokens_per_s: dict[str, Spread]
    viewer_ratio: Spread
    browser_ratio: Spread
    ttft_ratio: Spread
    first_steps_ratio: Spread
    main_thread_ms: dict[str, Spread]
    frame_bytes: dict[str, float]
    start_s: dict[str, float]


def measure_page(rounds: int) -> PageFigures | str:
    """Return the figures, or a sentence that says why there are none."""
    command = (sys.executable, "-m", MODULE, "--rounds", str(rounds))
    try:
        ended = subprocess.run(
            command, cwd=ROOT, capture_output=True, check=False, timeout=LONGEST_S
        )
    except subprocess.TimeoutExpired:
        return f"the page was not measured within {LONGEST_S} s"
    if ended.returncode != 0:
        lines = ended.stderr.decode(errors="replace").strip().splitlines()
        reason = lines[-1] if lines else f"it ended with code {ended.returncode}"
        return f"the page was not measured: {reason}"
    return figures_of(json.loads(ended.stdout))


def figures_of(printed: dict[str, Any]) -> PageFigures:
    """Return the figures that the page printed, rates with their spread."""
    rates: dict[str, list[float]] = printed["tokens_per_s"]
    return PageFigures(
        tokens_per_s={way: spread_of(values) for way, values in rates.items()},
        viewer_ratio=ratio_of(rates["viewer"], rates["headless"]),
        browser_ratio=ratio_of(rates["browser"], rates["headless"]),
        ttft_ratio=_watched_ratio(printed["ttft_s"]),
        first_steps_ratio=_watched_ratio(printed["first_steps_s"]),
        main_thread_ms={
            length: spread_of(values)
            for length, values in printed["main_thread_ms"].items()
            if values
        },
        frame_bytes=printed["frame_bytes"],
        start_s=printed["start_s"],
    )


def _watched_ratio(seconds: dict[str, list[float]]) -> Spread:
    return ratio_of(seconds["browser"], seconds["headless"])


def page_targets(figures: PageFigures | None) -> list[Target]:
    """Return what is to be reached beside what was measured."""
    started_s = figures.start_s["server"] + figures.start_s["page"] if figures else None
    largest = figures.frame_bytes["largest"] if figures else None
    drawing = list(figures.main_thread_ms.values()) if figures else []
    return [
        Target(
            name="a viewer that draws nothing ÷ headless",
            wanted=0.97,
            found=figures.viewer_ratio if figures else None,
        ),
        Target(
            name="a browser on the same cores ÷ headless",
            wanted=0.85,
            found=figures.browser_ratio if figures else None,
        ),
        Target(
            name="TTFT in a browser ÷ headless",
            wanted=1.15,
            found=figures.ttft_ratio if figures else None,
            is_at_most=True,
        ),
        Target(
            name="first 8 decode steps in a browser ÷ headless",
            wanted=1.15,
            found=figures.first_steps_ratio if figures else None,
            is_at_most=True,
        ),
        Target(
            name="main thread a frame, ms, at the length that takes most",
            wanted=MOST_FRAME_MS,
            found=max(drawing, key=lambda one: one.median, default=None),
            is_at_most=True,
        ),
        Target(
            name="largest frame, bytes",
            wanted=MOST_FRAME_BYTES,
            found=None if largest is None else spread_of([largest]),
            is_at_most=True,
        ),
        Target(
            name="start to a page that takes a prompt, s",
            wanted=LONGEST_START_S,
            found=None if started_s is None else spread_of([started_s]),
            is_at_most=True,
        ),
    ]
