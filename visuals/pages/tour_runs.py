"""Which run a chapter of the tour shows: the reader's own, or a recorded one with the reason."""

from __future__ import annotations

from dataclasses import dataclass

from inference.process.messages import Action
from inference.records.errors import TokenByTokenError
from inference.records.run import RunTrace
from inference.runs.recordings import FIRST_RUN, recorded_runs
from visuals.live.hub import Hub
from visuals.live.live_run import LiveRun
from visuals.pages.markdown import escaped
from visuals.pages.page_states import RunKey, TourPageState
from visuals.tour.chapters import Chapter, Variant, order_of, recorded_for
from visuals.tour.facts import RunFacts, facts_of
from visuals.tour.texts import ELSEWHERE, LOADING, NO_MODEL, NO_ROOFS


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRun:
    """The run on the page.

    Attributes:
        run: None where there is neither an own nor a recorded one.
        facts: Its figures, once it has ended; of a recorded one at once.
        recorded: The recorded run that is shown; None for the reader's own.
        why: Why it is a recorded one, in a sentence; empty otherwise.
    """

    run: LiveRun | None
    facts: RunFacts | None
    recorded: RunTrace | None = None
    why: str = ""


def run_shown(
    hub: Hub, state: TourPageState, chapter: Chapter, variant: Variant, prompt: str
) -> ShownRun:
    """Return the run that a chapter shows; the reader's own is begun where it was not made yet."""
    key = (chapter.slug, variant.name, prompt)
    why = _why_not(hub, chapter)
    run = None if why else _own_run(hub, state, chapter, variant, key)
    if run is None:
        return _recorded(hub, state, chapter, why)
    trace = hub.snapshot(run)
    facts = facts_of(trace) if trace is not None and run.state.is_final else None
    if facts is not None:
        _remember(state, key, facts)
    return ShownRun(run=run, facts=facts)


def forget(state: TourPageState, key: RunKey) -> None:
    """Have the chapter's run made, or its recording played, from the beginning."""
    state.run_ids.pop(key, None)
    state.replays.pop(key[0], None)
    state.sentence = ""


def _why_not(hub: Hub, chapter: Chapter) -> str:
    """Return why the reader's own run cannot be shown; empty where it can."""
    status = hub.engine_status()
    if status.ready is None and status.error:
        return NO_MODEL.format(reason=escaped(status.error))
    if status.ready is None:
        return LOADING if status.stage is not None else ELSEWHERE
    if chapter.has_roofs and hub.measure_status().ceilings is None:
        return NO_ROOFS
    return ""


def _own_run(
    hub: Hub, state: TourPageState, chapter: Chapter, variant: Variant, key: RunKey
) -> LiveRun | None:
    """Return the run of this key, begun if need be; None where it cannot be run."""
    run = hub.find(state.run_ids.get(key, ""))
    if run is not None:
        return run
    try:
        prepared = hub.prepare(order_of(chapter, variant, key[2]))
        prepared.is_kept = False  # the Runs page would fill with the tour's runs
        run = hub.enqueue(prepared)
    except TokenByTokenError as error:
        state.sentence = str(error)
        return None
    state.sentence = ""
    state.run_ids[key] = run.run_id
    return run


def _recorded(hub: Hub, state: TourPageState, chapter: Chapter, why: str) -> ShownRun:
    runs = recorded_runs(FIRST_RUN)
    if not runs:
        return ShownRun(run=None, facts=None, why=why)
    run = hub.find(state.replays.get(chapter.slug, ""))
    if run is None or run.replay is None:
        run = hub.replay(recorded_for(chapter, runs[0]))
        if chapter.steps_per_s is not None:
            hub.control(run, Action.PACE, chapter.steps_per_s)
        state.replays[chapter.slug] = run.run_id
    trace = run.replay.trace if run.replay is not None else None
    return ShownRun(run=run, facts=facts_of(trace), recorded=trace, why=why)


def _remember(state: TourPageState, key: RunKey, facts: RunFacts) -> None:
    """Keep what a run gave, and what the one before it in the chapter did."""
    slug = key[0]
    known = state.facts.get(key)
    is_same = known is not None and known.info.run_id == facts.info.run_id
    if is_same and state.shown.get(slug) == key:
        state.facts[key] = facts  # its roofs may have come since
        return
    shown = state.shown.get(slug)
    if shown is not None and shown in state.facts:
        state.before[slug] = (
            shown[1] if shown[2] == key[2] else "another prompt",
            state.facts[shown],
        )
    state.facts[key] = facts
    state.shown[slug] = key
