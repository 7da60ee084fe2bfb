"""What pages say as app and engine come near the memory that they may take."""

from __future__ import annotations

import pytest

from inference.models.process_memory import MemoryShares
from inference.records.errors import InputError
from inference.records.run import RunTrace
from inference.records.status import RunState
from tests.builders import order
from tests.visuals.live_doubles import HubUnderTest
from visuals.live.memory_watch import MemoryWatch

SHARES = MemoryShares(engine_bytes=8_000_000_000, app_bytes=2_000_000_000)
ENGINE = 77


class Held:
    """What the two processes hold, as a test says."""

    def __init__(self) -> None:
        self.app: int | None = 400_000_000
        self.engine: int | None = 900_000_000

    def __call__(self, process_id: int | None) -> int | None:
        return self.app if process_id is None else self.engine


@pytest.fixture
def held() -> Held:
    return Held()


@pytest.fixture
def watch(held: Held) -> MemoryWatch:
    return MemoryWatch(SHARES, held)


def test_nothing_is_said_while_there_is_room(watch: MemoryWatch) -> None:
    watch.look(ENGINE)

    assert (watch.words, watch.is_full, watch.is_app_near) == ("", False, False)


def test_an_engine_near_its_share_is_said_until_it_is_not(watch: MemoryWatch, held: Held) -> None:
    held.engine = 7_400_000_000
    watch.look(ENGINE)
    assert "The engine holds 7.4 of the 8.0 GB of memory that it may take" in watch.words
    assert "TOKEN_BY_TOKEN_MEMORY_MB" in watch.words
    assert not watch.is_full

    watch.look(None)

    assert watch.words == ""


def test_what_is_unknown_or_without_a_limit_is_not_near(held: Held) -> None:
    held.app = held.engine = 10**12
    endless = MemoryWatch(MemoryShares(engine_bytes=None, app_bytes=None), held)
    endless.look(ENGINE)
    assert endless.words == ""

    held.app = held.engine = None
    unknown = MemoryWatch(SHARES, held)
    unknown.look(ENGINE)
    assert unknown.words == ""


def test_a_server_without_memory_takes_no_run_until_there_is_some(
    watch: MemoryWatch, held: Held
) -> None:
    under_test = HubUnderTest(memory=watch)
    under_test.load()
    held.app = 1_990_000_000
    under_test.hub.look_at_memory()

    with pytest.raises(InputError, match=r"holds 2\.0 of the 2\.0 GB .* takes no more runs"):
        under_test.hub.submit(order("hello"))
    assert "takes no more runs" in under_test.hub.engine_words()

    held.app = 500_000_000
    under_test.hub.look_at_memory()
    assert under_test.hub.submit(order("hello")).state is not RunState.FAILED


def test_near_its_share_the_server_forgets_runs_that_nobody_watches(
    watch: MemoryWatch, held: Held
) -> None:
    under_test = HubUnderTest(memory=watch)
    going = under_test.begin()
    under_test.hub.adopt(_finished(under_test))
    assert len(under_test.hub.runs()) == 2
    held.app = 1_800_000_000

    under_test.hub.look_at_memory()

    assert under_test.hub.runs() == (going,)
    assert "soon takes no more runs" in under_test.hub.engine_words()


def _finished(under_test: HubUnderTest) -> RunTrace:
    trace = under_test.hub.snapshot(under_test.hub.runs()[0])
    assert trace is not None
    return trace
