"""The source of a run at an address: what is sent and when, and where its key is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from inference.records.endpoints import EngineKind
from tests.app.stage import shown
from tests.inference.remote.scripted_server import ScriptedServer, running_server, said
from tests.inference.remote.streams import engine_routes
from visuals.pages.session import Session

pytestmark = pytest.mark.app

SCRIPT = str(Path(__file__).with_name("endpoint_script.py"))
KEY = "sk-never-shown"


@pytest.fixture(scope="module")
def engine() -> Iterator[ScriptedServer]:
    with running_server() as server:
        yield server


@pytest.fixture
def page() -> AppTest:
    return AppTest.from_file(SCRIPT, default_timeout=30).run()


def typed(page: AppTest, address: str, key: str = "") -> AppTest:
    page.text_input(key="endpoint-address").set_value(address)
    if key:
        page.text_input(key="endpoint-key").set_value(key)
    return page.run()


def test_nothing_is_sent_before_the_address_is_shown_and_its_button_pressed(
    page: AppTest, engine: ScriptedServer
) -> None:
    engine.clear()
    engine.routes |= engine_routes(EngineKind.VLLM)

    typed(page, f"{engine.address}/v1")

    assert any(f"127.0.0.1:{engine.port}" in shown(one.value) for one in page.caption)
    assert engine.received == []
    page.button(key="endpoint-ask").click().run()
    assert {one.method for one in engine.received} == {"GET"}
    assert any("vLLM 0.32.0" in shown(one.value) for one in page.markdown)
    assert page.selectbox(key="endpoint-model").value == "m"
    assert any("token ids" in one.value for one in page.get("html"))


def test_a_key_is_sent_to_its_address_only_and_is_on_no_page(
    page: AppTest, engine: ScriptedServer
) -> None:
    engine.clear()
    engine.routes |= engine_routes(EngineKind.VLLM)
    typed(page, engine.address, KEY)

    page.button(key="endpoint-ask").click().run()

    assert {one.headers["authorization"] for one in engine.received} == {f"Bearer {KEY}"}
    assert not page.text_input(key="endpoint-key").value
    assert KEY not in repr(page.main)
    held = page.session_state["session"]
    assert isinstance(held, Session)
    assert KEY not in repr(held)
    assert any("A key is held" in one.value for one in page.markdown)
    engine.received.clear()
    typed(page, f"http://localhost:{engine.port}")  # another address
    page.button(key="endpoint-ask").click().run()
    assert not any("authorization" in one.headers for one in engine.received)


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        ("ftp://host:1", "http or https"),
        ("http://user:word@host", "a user or a password"),
        ("http://host/?key=1", "after ? or #"),
    ],
)
def test_an_address_that_cannot_be_one_is_refused_in_a_sentence(
    page: AppTest, address: str, complaint: str
) -> None:
    typed(page, address)

    [error] = page.error
    assert complaint in shown(error.value)
    assert not [one for one in page.button if one.key == "endpoint-ask"]


def test_a_server_that_is_no_engine_is_named_in_a_sentence(
    page: AppTest, engine: ScriptedServer
) -> None:
    engine.clear()
    engine.routes["/v1/models"] = said({"detail": "who?"}, status=401)
    typed(page, engine.address)

    page.button(key="endpoint-ask").click().run()

    [error] = page.error
    assert "key" in error.value
    engine.clear()
    page.button(key="endpoint-ask").click().run()
    assert "has no list of models" in shown(page.error[0].value)
