"""A tab without a browser says to a scripted server what a browser would."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.server import ServerConnection, serve

from visuals.panel.page_client import PANEL, PageClient, Seen


class ScriptedPage:
    """A server with one button, a panel, a timer, and a run of two frames."""

    def __init__(self) -> None:
        self.said: list[BackMsg] = []
        self.paths: list[str] = []
        self.cookies: set[str | None] = set()
        self.acknowledged: list[str | bytes] = []

    async def answer(self, socket: ServerConnection) -> None:
        assert socket.request is not None
        self.paths.append(socket.request.path)
        self.cookies.add(socket.request.headers.get("Cookie"))
        if socket.request.path == "/_stcore/stream":
            async for message in socket:
                assert isinstance(message, bytes)
                self.said.append(BackMsg.FromString(message))
                for one in self.page():
                    await socket.send(one.SerializeToString())
        elif socket.request.path.startswith("/live/run/"):
            for state, index in (("running", 0), ("paused", 1)):
                frame = {"run": {"state": state}, "step": {"index": index}}
                await socket.send(json.dumps(frame))
                self.acknowledged.append(await socket.recv())
            await socket.close()
        else:
            await socket.wait_closed()

    def page(self) -> list[ForwardMsg]:
        begin, button, panel = ForwardMsg(), ForwardMsg(), ForwardMsg()
        begin.new_session.page_script_hash = "page"
        begin.new_session.initialize.session_id = "session"
        pressed = button.delta.new_element.button
        pressed.id, pressed.label = "$$ID-0123-start-it", "Start"
        shown = panel.delta.new_element.bidi_component
        shown.component_name, shown.id = PANEL, "$$ID-4567-panel"
        shown.json = json.dumps({"run_id": "a run", "token": "t/", "state": "running"})
        return [begin, button, panel]


def in_a_tab(work: Callable[[PageClient, ScriptedPage], Awaitable[None]]) -> ScriptedPage:
    """Carry out work on an open tab and return what the server heard of it."""

    async def tab(page: ScriptedPage) -> None:
        async with serve(page.answer, "127.0.0.1", 0, subprotocols=None) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            client = PageClient(f"http://127.0.0.1:{port}", "a=b", {"prompt": "a b"})
            await client.open()
            await work(client, page)
            assert client.complaints == []
            await client.close()

    page = ScriptedPage()
    asyncio.run(tab(page))
    return page


def test_a_press_and_a_state_that_was_seen_make_the_page_run_again() -> None:
    async def work(client: PageClient, page: ScriptedPage) -> None:
        await client.until(lambda: client.seen == Seen("a run", "paused", 2))
        await client.until(lambda: len(page.said) > 1)
        await client.press("start-it")
        await client.until(lambda: len(page.said) > 2)
        assert client.session == "session"
        assert len(client.frames_s) == 2

    page = in_a_tab(work)

    assert page.paths.count("/live/run/a run?k=t%2F&from=0".replace(" ", "%20")) == 1
    assert "/live/server" in page.paths
    assert page.cookies == {"a=b"}
    assert page.acknowledged == ["a 0", "a 0"]
    opened, told, pressed = (one.rerun_script for one in page.said)
    assert opened.query_string == "prompt=a+b"
    assert told.page_script_hash == "page"
    (state,) = told.widget_states.widgets
    assert (state.id, json.loads(state.json_value)["state"]) == ("$$ID-4567-panel", "paused")
    assert {one.id for one in pressed.widget_states.widgets if one.trigger_value} == {
        "$$ID-0123-start-it"
    }
