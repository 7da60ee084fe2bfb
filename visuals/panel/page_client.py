"""One tab of the page without a browser: it says what one would to the server, and draws nothing.

For measurements with many tabs on one machine. It opens Streamlit's WebSocket, presses buttons,
runs the page again where a fragment's timer asks for it or the panel has seen another state, and
follows the panel's run over the live route. Attention weights and charts are not fetched.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosedOK
from websockets.typing import Origin, Subprotocol

from visuals.live.server_route import SERVER_PATH

PANEL = "token_by_token_live_panel"
PANEL_VALUES = {"transport": "socket", "cursor": 0, "capture": None, "part": "step", "measure": 0}
GOING = ("queued", "running")
FINAL = ("done", "stopped", "failed", "abandoned")
LONGEST_S = 120.0  # on a machine with other things to do


@dataclass(frozen=True, slots=True)
class Seen:
    """The newest frame.

    Attributes:
        run_id: Of which run.
        state: Where it stands.
        steps: Steps of it that were received.
    """

    run_id: str = ""
    state: str = ""
    steps: int = 0


@dataclass(slots=True, eq=False)
class PageClient:
    """A tab.

    Attributes:
        url: Of the server.
        cookie: That it has from its link.
        query: Of its address.
        session: Streamlit's session; given, it asks to go on with that one.
        seen: The newest frame.
        frames_s: When frames of runs came, on the monotonic clock.
        buttons: Ids of the buttons that the page has drawn, by key.
        scripts: How often the page's script, or a fragment of it, has run to its end.
        complaints: What a user would take for an error.
    """

    url: str
    cookie: str
    query: dict[str, str] = field(default_factory=dict[str, str])
    session: str = ""
    seen: Seen = Seen()
    frames_s: list[float] = field(default_factory=list[float])
    buttons: dict[str, str] = field(default_factory=dict[str, str])
    scripts: int = 0
    complaints: list[str] = field(default_factory=list[str])
    _panel: dict[str, Any] = field(default_factory=dict[str, Any])
    _panel_id: str = ""
    _said: str = ""
    _page: str = ""
    _states: dict[str, WidgetState] = field(default_factory=dict[str, WidgetState])
    _known: dict[str, ForwardMsg] = field(default_factory=dict[str, ForwardMsg])
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, asyncio.Task[None]])
    _stream: ClientConnection | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def open(self) -> None:
        """Open the page and return once it has been drawn."""
        words = ["streamlit", *(["no-token", self.session] if self.session else [])]
        self._stream = await self._connected("_stcore/stream", [Subprotocol(one) for one in words])
        self._begin("stream", self._read_page(self._stream))
        self._begin("server", self._listen(await self._connected(SERVER_PATH)))
        await self._rerun()
        await self.until(lambda: bool(self._panel or self.buttons))

    async def close(self) -> None:
        """Close the tab."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()

    async def press(self, key: str) -> None:
        """Press a button of this page."""
        await self.press_id(self.buttons[key])

    async def press_id(self, button: str) -> None:
        """Say that a button was pressed, be it on this page or not."""
        await self._rerun(WidgetState(id=button, trigger_value=True))

    async def show(self, **query: str) -> None:
        """Go to another address of the same page."""
        self.query = query
        await self._rerun()

    async def until(self, is_so: Callable[[], bool], timeout_s: float = LONGEST_S) -> None:
        """Return once it is so.

        Raises:
            TimeoutError: It is not so in time.
            RuntimeError: Something went wrong that a user would take for an error.
        """
        async with asyncio.timeout(timeout_s):
            while not is_so():
                if self.complaints:
                    raise RuntimeError(self.complaints[0])
                self._changed.clear()
                await self._changed.wait()

    # Streamlit

    async def _read_page(self, stream: ClientConnection) -> None:
        async with stream:
            async for message in stream:
                self._take(ForwardMsg.FromString(message if isinstance(message, bytes) else b""))
                self._changed.set()
        self.complaints.append("the page's connection was closed")
        self._changed.set()

    def _take(self, message: ForwardMsg) -> None:
        if message.WhichOneof("type") == "ref_hash":
            message = self._known[message.ref_hash]
        elif message.hash and message.metadata.cacheable:
            self._known[message.hash] = message
        kind = message.WhichOneof("type")
        if kind == "delta":
            self._take_element(message)
        elif kind == "new_session":
            self._take_page(message)
        elif kind == "script_finished":
            self.scripts += 1
        elif kind == "page_info_changed":
            self.query = dict(parse_qsl(message.page_info_changed.query_string))
        elif kind == "auto_rerun":
            rerun = message.auto_rerun
            self._begin(rerun.fragment_id, self._every(rerun.interval, rerun.fragment_id))

    def _take_page(self, message: ForwardMsg) -> None:
        """Take it that a script run begins: timers that the page still has come anew."""
        self._page = message.new_session.page_script_hash
        self.session = message.new_session.initialize.session_id
        if not message.metadata.run.fragment_ids:
            for name in self._tasks.keys() - {"stream", "server", "run"}:
                self._tasks.pop(name).cancel()

    def _take_element(self, message: ForwardMsg) -> None:
        element = message.delta.new_element
        kind = element.WhichOneof("type")
        if kind == "button":
            self.buttons[element.button.id.split("-", 2)[-1]] = element.button.id
        elif kind == "exception":
            self.complaints.append(f"{element.exception.type}: {element.exception.message}")
        elif kind == "bidi_component" and element.bidi_component.component_name == PANEL:
            panel = json.loads(element.bidi_component.json)
            if panel["state"] != self._panel.get("state"):
                self._said = ""
            is_other = panel["run_id"] != self._panel.get("run_id")
            self._panel, self._panel_id = panel, element.bidi_component.id
            if is_other:
                self._begin("run", self._follow(panel["run_id"], panel["token"]))

    async def _every(self, interval_s: float, fragment_id: str) -> None:
        while True:
            await asyncio.sleep(interval_s)
            await self._rerun(fragment_id=fragment_id)

    async def _rerun(self, pressed: WidgetState | None = None, fragment_id: str = "") -> None:
        if self._stream is None:
            return
        states = [*self._states.values(), *([pressed] if pressed is not None else [])]
        message = BackMsg()
        asked = message.rerun_script
        asked.query_string = urlencode(self.query)
        asked.page_script_hash = self._page
        asked.fragment_id, asked.is_auto_rerun = fragment_id, bool(fragment_id)
        asked.cached_message_hashes.extend(self._known)
        asked.widget_states.widgets.extend(states)
        await self._stream.send(message.SerializeToString())

    # The run

    async def _follow(self, run_id: str, token: str) -> None:
        """Receive and acknowledge the frames of a run to its end."""
        address = f"live/run/{quote(run_id)}?{urlencode({'k': token, 'from': '0'})}"
        socket = await self._connected(address)
        with suppress(ConnectionClosedOK):
            async with socket:
                async for text in socket:
                    await self._receive(run_id, json.loads(text))
                    await socket.send("a 0")

    async def _receive(self, run_id: str, frame: dict[str, Any]) -> None:
        step = frame.get("step")
        steps = self.seen.steps if run_id == self.seen.run_id else 0
        state = frame["run"]["state"]
        self.seen = Seen(run_id, state, int(step["index"]) + 1 if step else steps)
        self.frames_s.append(time.monotonic())
        self._changed.set()
        if self._is_worth_saying(state):
            self._said = state
            self._states[self._panel_id] = WidgetState(
                id=self._panel_id, json_value=json.dumps({**PANEL_VALUES, "state": state})
            )
            await self._rerun()

    def _is_worth_saying(self, state: str) -> bool:
        """Tell whether the page runs again for a state, as ``page_messages.js`` has it."""
        page = str(self._panel.get("state"))
        kind, *known = ("going" if one in GOING else one for one in (state, page, self._said))
        return kind not in known and page not in FINAL

    # Connections

    async def _listen(self, socket: ClientConnection) -> None:
        async with socket:
            async for _said in socket:
                pass

    async def _connected(
        self, address: str, subprotocols: list[Subprotocol] | None = None
    ) -> ClientConnection:
        parts = urlsplit(self.url)
        return await connect(
            f"ws://{parts.netloc}{parts.path}/{address}",
            origin=Origin(f"{parts.scheme}://{parts.netloc}"),
            subprotocols=subprotocols,
            additional_headers={"Cookie": self.cookie},
            compression=None,
            max_size=None,
        )

    def _begin(self, name: str, work: Any) -> None:  # noqa: ANN401  a coroutine of any kind
        """Carry out work in the background, in place of what goes under this name."""
        former = self._tasks.pop(name, None)
        if former is not None:
            former.cancel()
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(self._ended)
        self._tasks[name] = task

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.complaints.append(f"{type(error).__name__}: {error}")
            self._changed.set()
