"""The one hub of the app process and what works with it, each made when it is first asked for."""

from __future__ import annotations

import os
from functools import cache

from inference.models.chat_templates import TemplateProcess
from inference.models.process_memory import MemoryShares, shares_from
from inference.process.client import EngineClient
from inference.runs.load_store import LoadStore
from inference.runs.playlist_store import PlaylistStore
from inference.runs.remote_store import RemoteStore
from inference.runs.store import RunStore
from inference.runs.store_room import room_from_environment
from visuals.live.access import AccessKeys, keys_for
from visuals.live.endpoint_runs import EndpointRuns
from visuals.live.fair_use import FairUse, limits_from
from visuals.live.groups import Groups
from visuals.live.hub import Hub
from visuals.live.idle_model import IDLE_S
from visuals.live.load_runs import LoadRuns
from visuals.live.memory_watch import MemoryWatch
from visuals.live.page_hold import HOLD_S
from visuals.live.presenting import Presenting
from visuals.live.run_saver import RunSaver
from visuals.live.serving_watch import ServingWatches
from visuals.live.surroundings import GRACE_S, PAUSE_LIMIT_S, Surroundings


@cache
def app_store() -> RunStore:
    """Return the process's one store."""
    return RunStore(most_bytes=room_from_environment())


@cache
def app_endpoint_runs() -> EndpointRuns:
    """Return the process's runs at addresses, with the store that keeps them."""
    return EndpointRuns(RemoteStore(most_bytes=room_from_environment()))


@cache
def app_playlists() -> PlaylistStore:
    """Return the process's one store of playlists."""
    return PlaylistStore()


@cache
def app_saver() -> RunSaver:
    """Return the process's one saver of runs, in its one store."""
    return RunSaver(app_store())


@cache
def app_templates() -> TemplateProcess:
    """Return the process's one renderer of chat templates."""
    return TemplateProcess()


@cache
def app_shares() -> MemoryShares:
    """Return what the process and its engine may take of the memory."""
    return shares_from()


@cache
def app_hub() -> Hub:
    """Return the process's one hub; the engine starts with its first command."""
    return Hub(
        EngineClient,
        Surroundings(
            grace_s=float(os.environ.get("TOKEN_BY_TOKEN_GRACE_S", GRACE_S)),
            pause_limit_s=float(os.environ.get("TOKEN_BY_TOKEN_PAUSE_LIMIT_S", PAUSE_LIMIT_S)),
            render=app_templates().render,
            recall=app_saver().recall,
            on_end=(app_saver().wake,),
            hold_s=float(os.environ.get("TOKEN_BY_TOKEN_HOLD_S", HOLD_S)),
            idle_limit_s=float(os.environ.get("TOKEN_BY_TOKEN_IDLE_S", IDLE_S)),
            memory=MemoryWatch(app_shares()),
        ),
    )


@cache
def app_groups() -> Groups:
    """Return the process's groups, on its one hub."""
    return Groups(app_hub())


@cache
def app_presenting() -> Presenting:
    """Return the process's one presentation, of runs of its one hub."""
    return Presenting(app_hub())


@cache
def app_keys(address: str) -> AccessKeys | None:
    """Return the process's keys, for the address it listens on; None where nobody is asked."""
    return keys_for(address)


@cache
def app_load_runs() -> LoadRuns:
    """Return the process's loads on engines elsewhere, with the store that keeps them."""
    return LoadRuns(LoadStore(most_bytes=room_from_environment()))


@cache
def app_serving_watches() -> ServingWatches:
    """Return the process's watches of engines elsewhere."""
    return ServingWatches()


@cache
def app_fair_use() -> FairUse:
    """Return what each visitor of the process took."""
    return FairUse(limits_from(), app_store())
