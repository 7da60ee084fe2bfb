"""Where page and test meet, since AppTest runs the script in a namespace of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from inference.runs.load_store import LoadStore
from inference.runs.playlist_store import PlaylistStore
from inference.runs.remote_store import RemoteStore
from inference.runs.store import RunStore
from tests.visuals.live_doubles import HubUnderTest
from visuals.live.endpoint_runs import EndpointRuns
from visuals.live.groups import Groups
from visuals.live.load_runs import LoadRuns
from visuals.live.presenting import Presenting
from visuals.live.serving_watch import ServingWatches
from visuals.pages.markdown import INVISIBLE_SPACE


@dataclass(slots=True)
class Stage:
    """The hub that the page script shows, and what hangs on it.

    Attributes:
        store: Of a folder that is not there until a test puts another store here.
        playlists: Likewise.
        endpoint_runs: Runs at addresses, likewise.
        watches: Watches of engines elsewhere.
        loads: Loads on them.
        is_watching: The visitor may only watch.
        problem: Why runs cannot be kept.
        page: Which page is shown, where the script has several.
        presenting: The presentation that the watchers' page follows.
    """

    under_test: HubUnderTest = field(default_factory=HubUnderTest)
    store: RunStore = field(default_factory=lambda: RunStore(Path("no-such-folder")))
    playlists: PlaylistStore = field(default_factory=lambda: PlaylistStore(Path("no-such-folder")))
    endpoint_runs: EndpointRuns = field(
        default_factory=lambda: EndpointRuns(RemoteStore(Path("no-such-folder")))
    )
    watches: ServingWatches = field(default_factory=ServingWatches)
    loads: LoadRuns = field(default_factory=lambda: LoadRuns(LoadStore(Path("no-such-folder"))))
    is_watching: bool = False
    problem: str = ""
    page: str = "live"
    presenting: Presenting = field(default_factory=lambda: Presenting(HubUnderTest().hub))
    _groups: Groups | None = None

    @property
    def groups(self) -> Groups:
        """The groups of the hub under test."""
        if self._groups is None:
            self._groups = Groups(self.under_test.hub)
        return self._groups

    def reset(self, folder: Path) -> None:
        """Begin anew with a fresh hub and a store in a folder."""
        self.under_test, self.store = HubUnderTest(), RunStore(folder)
        self.playlists = PlaylistStore(folder)
        self.endpoint_runs = EndpointRuns(RemoteStore(folder))
        self.loads, self.is_watching = LoadRuns(LoadStore(folder)), False
        self.problem, self.page, self._groups = "", "live", None


STAGE = Stage()


def shown(markdown: str) -> str:
    """Return text as a reader sees it: without the marks that keep it from being Markdown."""
    return re.sub(r"\\(.)", r"\1", markdown).replace(INVISIBLE_SPACE, "")
