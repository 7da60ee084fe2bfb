"""The source of a run at an address, as AppTest runs it."""

from __future__ import annotations

from visuals.pages.endpoint_source import endpoint_source
from visuals.pages.session import enter_page

if __name__ == "__main__":  # not in a process spawned by what the page shows
    enter_page("endpoint")
    endpoint_source()
