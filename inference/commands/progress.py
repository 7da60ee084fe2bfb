"""One line on standard error that says what a command is doing."""

from __future__ import annotations

import sys
from typing import Self, TextIO

from inference.records.status import LoadStage

BAR_CELLS = 30


class ProgressLine:
    """One line that is drawn over on a terminal; elsewhere one line a stage."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._is_terminal = self._stream.isatty()
        self._stage = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def show(self, progress: LoadStage) -> None:
        """Draw the stage and, on a terminal, how far it is."""
        is_next = progress.stage != self._stage
        if self._is_terminal:
            start = "\n" if is_next and self._stage else "\r"
            self._stream.write(f"{start}{progress_text(progress)}")
        elif is_next:
            self._stream.write(f"{progress.stage}\n")
        self._stage = progress.stage
        self._stream.flush()

    def show_ratio(self, ratio: float, stage: str) -> None:
        """Draw the stage and how far it is, for what reports them as two values."""
        self.show(LoadStage(stage=stage, ratio=ratio))

    def close(self) -> None:
        """End the line that was drawn over."""
        if self._is_terminal and self._stage:
            self._stream.write("\n")


def progress_text(progress: LoadStage) -> str:
    """Return a bar with its percentage before the stage, or the stage alone."""
    if progress.ratio is None:
        return f"{progress.stage} …"
    filled = round(progress.ratio * BAR_CELLS)
    return f"[{'#' * filled:<{BAR_CELLS}}] {progress.ratio:4.0%}  {progress.stage}"
