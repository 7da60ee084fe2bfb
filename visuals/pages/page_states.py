"""What a browser tab is at on each page, besides what its widgets say. No Streamlit."""

from __future__ import annotations

from dataclasses import dataclass, field

from inference.prompts.prompt_files import Upload
from inference.records.endpoints import EndpointInfo
from inference.records.run import RunTrace
from inference.remote.address import Endpoint
from inference.runs.playlists import Playlist, PlaylistItem
from visuals.pages.run_settings import RunSettings
from visuals.tour.chapters import CHAPTERS
from visuals.tour.facts import RunFacts

SHOWN = 20  # runs listed on the Runs page before more are asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierStep:
    """A run of the Live page as it stood after one of its earlier steps.

    Attributes:
        of: The run's id.
        trace: The run as it was when it was looked back at.
        run_id: What the hub shows it as.
    """

    of: str
    trace: RunTrace
    run_id: str


@dataclass(slots=True)
class EndpointState:
    """The engine at an address that this browser tab asked.

    Attributes:
        endpoint: Its address, and its key, which is in memory only; None before one answered.
        info: What it said of itself.
        sentence: Why it could not be asked; empty when it could.
    """

    endpoint: Endpoint | None = None
    info: EndpointInfo | None = None
    sentence: str = ""


@dataclass(slots=True)
class ServingPageState:
    """What this browser tab has on the Serving page.

    Attributes:
        files: The prompt files that were uploaded.
        shown: The load started here that is to be shown once it is kept; empty for none.
        sentence: What went wrong with the last press; empty when nothing did.
    """

    files: tuple[Upload, ...] = ()
    shown: str = ""
    sentence: str = ""


@dataclass(slots=True)
class LivePageState:
    """What this browser tab follows on the Live page.

    Attributes:
        run_id: The run shown; None for the recorded one.
        dead_run_id: The run that the address names and nobody has; None where it names none such.
        matched_run_id: The run that the prompt box and the pace were last made to match.
        sentence: What went wrong with the last press; empty when nothing did.
        note: What should be known of the run shown, such as where it came from.
    usual: The settings that a reload begins with; the address says what differs from them.
    said: What the address was last made to say of the settings; None before it was read.
        earlier: The earlier step that is looked at; None for the newest.
    """

    run_id: str | None = None
    dead_run_id: str | None = None
    matched_run_id: str | None = None
    sentence: str = ""
    note: str = ""
    usual: RunSettings = field(default_factory=RunSettings)
    said: dict[str, str] | None = None
    earlier: EarlierStep | None = None


@dataclass(slots=True)
class ComparePageState:
    """What this browser tab compares.

    Attributes:
        group_id: The newest comparison made here, finished or not; None before the first.
        run_ids: The runs whose results are shown.
        traces: Those runs.
        missing: Runs in the address that are not kept.
        sentence: What went wrong with the last press; empty when nothing did.
        files: The prompt files uploaded, kept when the page is left.
        prompts_hash: Which prompts the choice among them was made for.
    """

    group_id: str | None = None
    run_ids: tuple[str, ...] = ()
    traces: tuple[RunTrace, ...] = ()
    missing: tuple[str, ...] = ()
    sentence: str = ""
    files: tuple[Upload, ...] = ()
    prompts_hash: int | None = None


@dataclass(slots=True)
class RunsPageState:
    """What this browser tab does with the runs.

    Attributes:
        shown: Entries listed at most.
        deleted: Keys that one press brings back.
        remote_deleted: The same of runs of engines elsewhere.
        sentence: What went wrong with the last press; empty when nothing did.
        wants_compared: Keys to be taken to the Compare page.
        wants_live: To be taken to the Live page, whose settings are those of a run shown here.
        wants_recorded: To be taken to the playlist of the recorded runs.
        uploads: How many files were taken, so that the uploader is empty after each.
        notes: What came of the files taken, to be said once.
        removed_seen: How many runs that made room were said to have.
    """

    shown: int = SHOWN
    deleted: tuple[str, ...] = ()
    remote_deleted: tuple[str, ...] = ()
    sentence: str = ""
    wants_compared: tuple[str, ...] = ()
    wants_live: bool = False
    wants_recorded: bool = False
    uploads: int = 0
    notes: list[str] = field(default_factory=list)
    removed_seen: int = 0


@dataclass(slots=True)
class ReplayState:
    """What this browser tab plays.

    Attributes:
        key: The run kept on disk.
        trace: Its content.
        run_id: What the hub plays it as.
        sentence: Why the last press did nothing; empty when it did something.
    """

    key: str
    trace: RunTrace
    run_id: str
    sentence: str = ""


@dataclass(slots=True)
class PlaylistsPageState:
    """What this browser tab does with the playlists.

    Attributes:
        key: The playlist that was changed last.
        former: What it was before each of the last changes, the newest last.
        revision: How often its items changed their places, so that their widgets are others.
        sentence: What went wrong with the last press; empty when nothing did.
        notes: What came of the files taken, to be said once.
        uploads: How many files were taken, so that the uploader is empty after each.
        deleted: Key of the playlist that one press brings back.
        replay: The run that plays.
        shown: The item that it is of.
    """

    key: str = ""
    former: tuple[Playlist, ...] = ()
    revision: int = 0
    sentence: str = ""
    notes: list[str] = field(default_factory=list)
    uploads: int = 0
    deleted: str = ""
    replay: ReplayState | None = None
    shown: PlaylistItem | None = None


RunKey = tuple[str, str, str]  # a chapter's slug, the variant's name, the reader's prompt


@dataclass(slots=True)
class TourPageState:
    """How far this browser tab is in the tour.

    Attributes:
        slug: The chapter shown.
        run_ids: The runs made for it, by what they are of.
        replays: The recordings that play, by the chapter.
        facts: What the runs that have ended gave.
        shown: The newest run that has ended, by the chapter; before, the one before that.
        answers: What was answered, by the chapter.
        done: Chapters whose question was answered right.
        sentence: What went wrong with the last run asked for; empty when nothing did.
    """

    slug: str = CHAPTERS[0].slug
    run_ids: dict[RunKey, str] = field(default_factory=dict)
    replays: dict[str, str] = field(default_factory=dict)
    facts: dict[RunKey, RunFacts] = field(default_factory=dict)
    shown: dict[str, RunKey] = field(default_factory=dict)
    before: dict[str, tuple[str, RunFacts]] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    sentence: str = ""
