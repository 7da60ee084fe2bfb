"""The hold before a run's first step, until the pages that follow the run have drawn themselves.

A page that draws takes the processors from the prefill: a run started on it had three times the
TTFT of one that nobody watched. The engine holds the run, for ``HOLD_S`` at most whatever the pages
do; a page that is drawn and quiet says so, and the last one that does lets the run begin. No torch.
"""

from __future__ import annotations

from dataclasses import dataclass

HOLD_S = 1.0


@dataclass(slots=True)
class PageHold:
    """Which pages follow a run, and whether it waits for them.

    Attributes:
        is_on: The engine holds the run.
        unquiet: Pages that follow the run and have not said that they are quiet.
        was_quiet: Some page has said so.
    """

    is_on: bool = False
    unquiet: int = 0
    was_quiet: bool = False

    def page_opened(self) -> None:
        """Count one page more to wait for."""
        self.unquiet += 1

    def page_is_quiet(self) -> None:
        """Count one page less to wait for, since it is drawn."""
        self.unquiet -= 1
        self.was_quiet = True

    def page_left(self) -> None:
        """Count one page less to wait for, since it is gone."""
        self.unquiet -= 1

    @property
    def is_needless(self) -> bool:
        """True when the run is held and every page that follows it is drawn."""
        return self.is_on and self.was_quiet and not self.unquiet
