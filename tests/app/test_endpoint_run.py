"""A run at an address on the Live page in AppTest, against a scripted engine."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from inference.records.endpoints import EngineKind
from inference.records.status import RunState
from inference.runs.remote_store import RemoteStore
from tests.app.stage import STAGE, shown
from tests.inference.remote.scripted_server import HOLD, Script, ScriptedServer, running_server
from tests.inference.remote.streams import CHAT, SGLANG, VLLM, engine_routes
from visuals.live.endpoint_runs import STOPPED_EARLY, EndpointRun

pytestmark = pytest.mark.app

SCRIPT = str(Path(__file__).with_name("live_script.py"))
KEY = "sk-never-kept"


@pytest.fixture(scope="module")
def engine() -> Iterator[ScriptedServer]:
    with running_server() as server:
        yield server


@pytest.fixture
def page(engine: ScriptedServer, tmp_path: Path) -> AppTest:
    engine.clear()
    engine.routes |= engine_routes(EngineKind.VLLM)
    STAGE.reset(tmp_path)
    STAGE.under_test.load()
    made = AppTest.from_file(SCRIPT, default_timeout=30).run()
    made.segmented_control(key="source").set_value("an address").run()
    made.text_input(key="endpoint-address").set_value(engine.address)
    made.text_input(key="endpoint-key").set_value(KEY)
    made.run()
    made.button(key="endpoint-ask").click().run()
    return made


def eventually(is_so: Callable[[], object], limit_s: float = 60.0) -> None:
    """Return once the condition holds."""
    end_s = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def started(page: AppTest) -> EndpointRun:
    page.button(key="start").click().run()
    assert not page.exception
    run = STAGE.endpoint_runs.find(str(page.query_params["run"]))
    assert run is not None
    return run


def ended(page: AppTest) -> EndpointRun:
    run = started(page)
    eventually(lambda: run.state.is_final)
    page.run()
    assert not page.exception
    return run


def html_of(page: AppTest) -> str:
    return "\n".join(one.value for one in page.get("html"))


def test_the_prompt_goes_to_the_address_and_the_answer_is_shown_as_it_came(
    page: AppTest, engine: ScriptedServer
) -> None:
    engine.received.clear()
    page.text_area(key="prompt").set_value("What is a token?").run()

    run = ended(page)

    assert run.state is RunState.DONE
    last = engine.asked(CHAT)[-1].fields
    assert last["messages"] == [{"role": "user", "content": "What is a token?"}]
    assert "Hel" in html_of(page)
    assert "token ids" in html_of(page)  # where the count comes from
    charts = [one.key for one in page.get("vega_lite_chart")]
    assert len(charts) >= 3  # gaps only where the network cut the stream
    assert page.button(key="pause").disabled
    assert page.button(key="step").disabled
    assert "cannot be paused" in page.button(key="pause").help


def test_a_run_is_kept_without_the_key_and_opened_again_by_its_address(
    page: AppTest, tmp_path: Path
) -> None:
    run = ended(page)

    kept = RemoteStore(tmp_path)
    [entry] = kept.entries(10)
    assert (entry.key, entry.tokens, entry.problem) == (run.run_id, 3, "")
    STAGE.endpoint_runs = type(STAGE.endpoint_runs)(kept)  # another server on the same folder
    again = AppTest.from_file(SCRIPT, default_timeout=30)
    again.query_params["run"] = run.run_id
    again.run()
    assert not again.exception
    assert "Hel" in html_of(again)
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or KEY.encode() not in unpacked(path)
    assert KEY not in html_of(page) + repr(page.main)


def unpacked(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


def test_stop_closes_the_stream_and_keeps_what_came(page: AppTest, engine: ScriptedServer) -> None:
    answers = iter([Script(VLLM)])  # of the two tokens that find what the engine tells
    engine.routes[CHAT] = lambda _request: next(answers, Script((*VLLM[:2], HOLD)))
    run = started(page)
    eventually(engine.opened.is_set)
    page.run()
    assert page.button(key="start").disabled

    page.button(key="stop").click().run()

    eventually(engine.closed.is_set)
    eventually(lambda: run.state.is_final)
    assert run.state is RunState.STOPPED
    page.run()
    assert "Hel" in html_of(page)
    assert any("does not say whether it has left" in shown(one.value) for one in page.caption)
    assert not page.button(key="start").disabled


def test_a_run_that_is_stopped_before_its_prompt_was_sent_says_so(
    page: AppTest, engine: ScriptedServer
) -> None:
    engine.routes[CHAT] = Script((HOLD,))
    run = started(page)
    eventually(engine.opened.is_set)

    page.button(key="stop").click().run()

    eventually(lambda: run.state.is_final)
    page.run()
    assert (run.state, run.message) == (RunState.STOPPED, STOPPED_EARLY)


def test_tokens_that_came_together_are_marked_and_their_gaps_not_called_itl(
    page: AppTest, engine: ScriptedServer
) -> None:
    engine.routes[CHAT] = Script(SGLANG)

    ended(page)

    assert "Gap between arrivals" in html_of(page)
    assert "<sup" in html_of(page)


def test_an_engine_that_fails_is_named_in_a_sentence_and_the_next_run_works(
    page: AppTest, engine: ScriptedServer
) -> None:
    engine.routes[CHAT] = Script((b'{"error": {"message": "no room"}}',), status=500)
    run = ended(page)
    assert run.state is RunState.FAILED
    assert any("no room" in shown(one.value) for one in page.error)

    engine.routes[CHAT] = Script(VLLM)
    assert ended(page).state is RunState.DONE


def test_an_empty_prompt_is_not_sent(page: AppTest, engine: ScriptedServer) -> None:
    page.text_area(key="prompt").set_value("  ").run()
    engine.received.clear()

    page.button(key="start").click().run()

    assert "the prompt is empty" in shown(page.error[0].value)
    assert engine.received == []
