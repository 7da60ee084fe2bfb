"""The Serving page: an engine's own figures, and loads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from time import monotonic, sleep

import pytest
from streamlit.testing.v1 import AppTest

from inference.records.endpoints import EngineKind
from tests.app.stage import STAGE, shown
from tests.inference.remote.metrics_pages import SGLANG, vllm_page
from tests.inference.remote.scripted_server import Received, Script, ScriptedServer, running_server
from tests.inference.remote.streams import CHAT, engine_routes

pytestmark = pytest.mark.app

PATIENCE_S = 30.0
SCRIPT = str(Path(__file__).with_name("serving_script.py"))


@pytest.fixture(scope="module")
def shared_engine() -> Iterator[ScriptedServer]:
    with running_server() as server:
        yield server


@pytest.fixture
def engine(shared_engine: ScriptedServer, tmp_path: Path) -> Iterator[ScriptedServer]:
    """Yield a server that is vLLM, whose counters grow with each reading."""
    shared_engine.clear()
    shared_engine.routes |= engine_routes(EngineKind.VLLM)
    numbers = count()

    def page(_request: Received) -> Script:
        number = next(numbers)
        text = vllm_page(
            running=3, prompt=100 * number, output=40 * number, ttfts=(0, 5 * number, 6 * number)
        )
        return Script((text.encode(),), kind="text/plain")

    shared_engine.routes["/metrics"] = page
    STAGE.reset(tmp_path)
    yield shared_engine
    STAGE.watches.end()
    STAGE.loads.end()


def opened(engine: ScriptedServer) -> AppTest:
    """Return the page once the engine was asked who it is."""
    page = AppTest.from_file(SCRIPT, default_timeout=30).run()
    page.text_input(key="endpoint-address").set_value(engine.address)
    page.run()
    return page.button(key="endpoint-ask").click().run()


def until(page: AppTest, is_so: Callable[[], bool]) -> None:
    """Draw the page again, as its timer would, until something is so."""
    limit_s = monotonic() + PATIENCE_S
    while not is_so():
        assert monotonic() < limit_s, tables(page)
        sleep(0.1)
        page.run()


def tables(page: AppTest) -> str:
    return " ".join(one.value for one in page.get("html"))


def test_before_an_address_is_asked_the_page_says_how_an_engine_is_started(
    engine: ScriptedServer,
) -> None:
    page = AppTest.from_file(SCRIPT, default_timeout=30).run()

    assert "llama-server -m MODEL.gguf --metrics" in page.info[0].value
    assert engine.received == []


def test_an_engines_figures_are_read_and_shown_on_one_clock(engine: ScriptedServer) -> None:
    page = opened(engine)

    until(page, lambda: "between 40 and 60 ms" in tables(page))

    assert not page.exception
    assert "this version does not say" in tables(page)  # preemptions
    charts = page.get("vega_lite_chart")
    assert len(charts) == 2  # of shares nothing is said
    assert any("K/V in use" in shown(one.value) for one in page.caption)


def test_a_metrics_page_that_goes_away_is_said_and_asked_again(engine: ScriptedServer) -> None:
    page = opened(engine)
    until(page, lambda: "Running" in tables(page))

    engine.routes["/metrics"] = Script(status=503)

    until(page, lambda: any("could not be read" in one.value for one in page.warning))


def test_an_engine_without_a_metrics_page_says_why(engine: ScriptedServer) -> None:
    del engine.routes["/metrics"]

    page = opened(engine)

    assert "no metrics page" in shown(page.info[0].value)
    assert len(engine.asked("/metrics")) == 1


def test_another_engines_names_are_known(engine: ScriptedServer) -> None:
    engine.routes["/metrics"] = Script((SGLANG.encode(),), kind="text/plain")

    page = opened(engine)
    until(page, lambda: "50.0" in tables(page))

    assert not page.exception


def test_a_load_is_sent_kept_and_shown(engine: ScriptedServer) -> None:
    page = opened(engine)
    page.number_input(key="load-requests").set_value(3)
    page.text_input(key="load-concurrency").set_value("1,2").run()
    assert engine.asked(CHAT) == []

    page.button(key="load-start").click().run()
    STAGE.loads.join()
    page.run()

    assert not page.exception
    assert not page.error
    [entry] = STAGE.loads.store.entries()
    assert page.selectbox(key="load-shown").value == entry.key
    assert "3 of 3" in tables(page)
    assert "2 at a time" in tables(page)
    sent = [one.fields["messages"][0]["content"] for one in engine.asked(CHAT)]
    assert len(sent) == 1 + (1 + 3) + (2 + 3)
    assert len(page.get("download_button")) == 2


@pytest.mark.parametrize(
    ("numbers", "complaint"), [("many", "whole numbers"), ("0", "above 0"), ("1,,2", "whole")]
)
def test_numbers_that_cannot_be_sent_are_refused_in_a_sentence(
    engine: ScriptedServer, numbers: str, complaint: str
) -> None:
    page = opened(engine)
    page.text_input(key="load-concurrency").set_value(numbers).run()

    page.button(key="load-start").click().run()

    assert complaint in shown(page.error[0].value)
    assert engine.asked(CHAT) == []


def test_who_may_only_watch_can_send_no_load(engine: ScriptedServer) -> None:
    STAGE.is_watching = True

    page = opened(engine)

    assert any("watching only" in one.value for one in page.info)
    assert not [one for one in page.button if (one.key or "").startswith("load-")]
