"""The example prompts shipped with the project, each of which makes a point."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

DEFAULT_EXAMPLE = 1
ASSETS = Path(__file__).resolve().parents[2] / "assets"


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One prompt and the point it makes."""

    name: str
    prompt: str


@cache
def example_prompts() -> tuple[Example, ...]:
    """Return the examples in the order they are offered."""
    entries = json.loads((ASSETS / "examples.json").read_text(encoding="utf-8"))
    return tuple(
        Example(
            name=entry["name"],
            prompt=entry.get("prompt")
            or (ASSETS / entry["prompt_file"]).read_text(encoding="utf-8"),
        )
        for entry in entries
    )


def first_prompt() -> str:
    """Return the example that stands in the prompt box at first."""
    return example_prompts()[DEFAULT_EXAMPLE].prompt
