"""A tab of the page without a browser: it speaks Streamlit's protocol and follows live runs.

A browser would take most of the processor time of a soak, and its memory is not what is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import parse_qs, urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

PATIENCE_S = 120.0
PANEL = "token_by_token_live_panel"


class PageError(Exception):
    """The page showed an exception, or did not do what was asked of it."""


@dataclass(frozen=True, slots=True)
class Followed:
    """A run that the page follows, and the secret that its stream asks for."""

    run_id: str
    token: str


@contextmanager
def opened_tab(url: str, page: str = "", **query: str) -> Generator[Tab]:
    """Open a page as a browser does, draw it once, and close it at the end.

    Args:
        url: Of the server.
        page: The page's path; empty for the Live page.
        query: Parameters of the address.
    """
    with _connected(url, "_stcore/stream", [Subprotocol("streamlit")]) as socket:
        tab = Tab(url, socket, page, urlencode(query))
        tab.draw()
        yield tab


class Tab:
    """One session on the server.

    Attributes:
        followed: What the live panel follows; None before the page was drawn, and where there is
            no panel.
    """

    def __init__(self, url: str, socket: ClientConnection, page: str, query: str) -> None:
        self.followed: Followed | None = None
        self._url = url
        self._socket = socket
        self._page = page
        self._query = query
        self._buttons: dict[str, str] = {}

    @property
    def run_id(self) -> str:
        """The run in the tab's address; empty where there is none."""
        return parse_qs(self._query).get("run", [""])[0]

    def draw(self, pressed: str = "") -> None:
        """Have the page's script run, after the press of a button where one is named by its key.

        Raises:
            PageError: There is no such button, or the page shows an exception.
        """
        said = BackMsg()
        said.rerun_script.query_string = self._query
        said.rerun_script.page_name = self._page
        if pressed:
            if pressed not in self._buttons:
                msg = f"there is no button {pressed!r}; there are {sorted(self._buttons)}"
                raise PageError(msg)
            state = said.rerun_script.widget_states.widgets.add()
            state.id, state.trigger_value = self._buttons[pressed], True
        self._socket.send(said.SerializeToString())
        while not self._take():
            pass

    def start(self) -> Followed:
        """Press Start and return the run that the page follows then.

        Raises:
            PageError: It follows none.
        """
        self.draw("start")
        if self.followed is None or self.followed.run_id != self.run_id:
            msg = "no run began"
            raise PageError(msg)
        return self.followed

    def _take(self) -> bool:
        """Take one message; True once the script has ended."""
        message = ForwardMsg()
        content = self._socket.recv(timeout=PATIENCE_S)
        message.ParseFromString(content if isinstance(content, bytes) else content.encode())
        kind = message.WhichOneof("type")
        if kind == "page_info_changed":
            self._query = message.page_info_changed.query_string
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            self._see(message.delta.new_element)
        return kind == "script_finished" and (
            message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY
        )

    def _see(self, element: Element) -> None:
        kind = element.WhichOneof("type")
        if kind == "exception":
            raise PageError(element.exception.message)
        if kind == "button":
            self._buttons[element.button.id.split("-", 2)[-1]] = element.button.id
        elif kind == "bidi_component" and element.bidi_component.component_name.endswith(PANEL):
            component = element.bidi_component
            data = json.loads(component.json or component.mixed.json)
            self.followed = Followed(data["run_id"], data["token"])


def follow(url: str, run: Followed, until_step: int | None = None) -> None:
    """Receive and acknowledge a run's frames to its end, or until this step was seen."""
    address = f"live/run/{run.run_id}?{urlencode({'k': run.token})}"
    try:
        with _connected(url, address) as viewer:
            while True:
                shown = json.loads(viewer.recv(timeout=PATIENCE_S))
                viewer.send("a")
                step = shown.get("step")
                if step is not None and until_step is not None and step["index"] >= until_step:
                    return
    except ConnectionClosed:
        return  # the server closes once all was sent


@contextmanager
def server_news(url: str) -> Generator[ClientConnection]:
    """Open the socket by which every tab hears of the server and its engine."""
    with _connected(url, "live/server") as socket:
        yield socket


def _connected(
    url: str, path: str, subprotocols: list[Subprotocol] | None = None
) -> ClientConnection:
    return connect(
        f"{url.replace('http', 'ws', 1)}/{path}",
        origin=Origin(url),
        subprotocols=subprotocols,
        max_size=None,
        open_timeout=PATIENCE_S,
    )
