"""What watching costs: one run on the page with nobody, a viewer that draws nothing, and a browser.

``python -m visuals.live.page_bench`` prints JSON. It starts the app on a free port with a data
folder of its own, starts each run with a real browser, and then either leaves it there, lets it go
and follows the run's WebSocket without drawing, or lets it go. A page that is let go answers no
frame, so the run is held until it is gone and the prefill too has nobody watching. The rates are
read from the kept run: host time from one decode step to a later one, so what slows steps down
between step times counts. TTFT and the first steps are the engine's step times. What drawing costs
is the main thread's processor time for each frame, of runs of two lengths. ``inference bench``
calls it in a process of its own, since nothing there may import what draws.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import connect
from websockets.typing import Origin

from inference.records.errors import first_line
from inference.records.run import RunTrace
from inference.records.status import RunState
from inference.records.steps import Phase
from inference.runs.store import RunStore
from inference.storage.folders import DATA_VARIABLE
from visuals.live.drawing_meter import DrawingMeter

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Playwright, WebSocket, WebSocketRoute

ROOT = Path(__file__).resolve().parents[2]
# What people look with comes first; the one without windows draws for less.
BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "chromium-headless-shell",
)
# The one without a window first: it draws no frames that nobody sees.
BENCH_BROWSERS = ("chromium-headless-shell", *BROWSERS)
WAYS = ("headless", "viewer", "browser")
PROMPT = "Tell me, in as much detail as you can, how a bicycle is built, part by part."
NEW_TOKENS = 128
MANY_TOKENS = 1024
FIRST_STEPS = 8
HOLD_S = 5.0  # a page that is to be gone before the prefill has this long to go
SETTLING_STEPS = 24  # after a start the page has more to draw than while a run goes
LEAST_STEPS = 24
READY_S = 120.0
RUN_S = 300.0
CANNOT_START = "the page did not come up in time; start it by hand to see why: make run"


@dataclass  # without slots: Playwright keeps its wrapper on the object of a handler
class Watched:
    """What pages' WebSockets did: where the newest went, and the size of each frame drawn."""

    url: str = ""
    frame_bytes: list[int] = field(default_factory=list)

    def leave_unanswered(self, opened: WebSocketRoute) -> None:
        """Let a page's socket receive and its answers go nowhere: it never says it is quiet."""
        self.url = opened.url
        server = opened.connect_to_server()
        server.on_message(opened.send)
        opened.on_message(lambda _said: None)

    def open(self, opened: WebSocket) -> None:
        """Take note of a socket that the page opened."""
        if "/live/run/" in opened.url:
            self.url = opened.url
            opened.on("framereceived", self._received)

    def _received(self, payload: str | bytes) -> None:
        content = payload.encode() if isinstance(payload, str) else payload
        self.frame_bytes.append(len(content))


def main() -> int:
    """Measure and print; exit code 2 with a sentence where it cannot be done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    try:
        report = measure(args.rounds)
    except (ImportError, OSError, RuntimeError, subprocess.TimeoutExpired) as error:
        sys.stderr.write(f"{first_line(error)}\n")
        return 2
    sys.stdout.write(f"{json.dumps(report)}\n")
    return 0


def measure(rounds: int) -> dict[str, object]:
    """Return the decode rates of each way, the frames' sizes and the page's start, in turns.

    Raises:
        ImportError: Playwright is not installed.
        FileNotFoundError: There is no browser.
        RuntimeError: The page or a run did not come to an end.
    """
    from playwright.sync_api import Error, sync_playwright  # noqa: PLC0415  for tests and this

    executable = next((found for name in BENCH_BROWSERS if (found := shutil.which(name))), None)
    if executable is None:
        msg = "there is no Chromium or Chrome here"
        raise FileNotFoundError(msg)
    try:
        with sync_playwright() as playwright:
            return _measured(playwright, executable, rounds)
    except Error as error:
        raise RuntimeError(error.message) from error


def _measured(playwright: Playwright, executable: str, rounds: int) -> dict[str, object]:
    watched = Watched()
    with tempfile.TemporaryDirectory() as data, running_app(Path(data)) as (url, up_s):
        store = RunStore(Path(data))
        with playwright.chromium.launch(
            executable_path=executable, args=["--no-sandbox"]
        ) as browser:
            bench = _Bench(browser, url, store, watched)
            began_s = time.monotonic()
            page_s = bench.warm_up() - began_s  # loads the model, and warms everything up
            loaded_s = time.monotonic() - began_s
            watched.frame_bytes.clear()
            for _ in range(rounds):
                for way in WAYS:
                    bench.run(way)
            bench.run("browser", MANY_TOKENS, is_counted=False)
    return {
        "tokens_per_s": bench.rates,
        "ttft_s": bench.ttfts_s,
        "first_steps_s": bench.first_steps_s,
        "main_thread_ms": bench.main_thread_ms,
        "frame_bytes": {
            "frames": len(watched.frame_bytes),
            "median": median(watched.frame_bytes),
            "largest": max(watched.frame_bytes),
        },
        "start_s": {"server": up_s, "page": page_s, "first run with its model": loaded_s},
    }


class _Bench:
    """Runs one after another, each on a page of its own, and what they took.

    Attributes:
        rates: Decode steps a second, by way.
        ttfts_s: Step time of the prefill, by way.
        first_steps_s: Step times of the first decode steps, summed, by way.
        main_thread_ms: For each frame, by the run's number of tokens.
    """

    def __init__(self, browser: Browser, url: str, store: RunStore, watched: Watched) -> None:
        self.rates: dict[str, list[float]] = {way: [] for way in WAYS}
        self.ttfts_s: dict[str, list[float]] = {way: [] for way in WAYS}
        self.first_steps_s: dict[str, list[float]] = {way: [] for way in WAYS}
        self.main_thread_ms: dict[str, list[float]] = {str(NEW_TOKENS): [], str(MANY_TOKENS): []}
        self._browser = browser
        self._url = url
        self._store = store
        self._watched = watched

    def warm_up(self) -> float:
        """Make a first run; return when its page took a prompt."""
        with self._page("browser") as page:
            _open(page, self._url, NEW_TOKENS)
            ready_s = time.monotonic()
            _run(page, self._store, self._watched, "browser")
        return ready_s

    def run(self, way: str, tokens: int = NEW_TOKENS, *, is_counted: bool = True) -> None:
        """Make a run of this many tokens, watched in this way."""
        with self._page(way) as page:
            _open(page, self._url, tokens)
            meter = DrawingMeter(page) if way == "browser" else None
            trace, since = _run(page, self._store, self._watched, way, meter)
        ms = meter.ms_per_frame() if meter is not None else None
        if ms is not None:
            self.main_thread_ms[str(tokens)].append(ms)
        if is_counted:
            self.rates[way].append(decode_rate(trace, since))
            self.ttfts_s[way].append(trace.events[0].duration_s)
            first = trace.events[1 : 1 + FIRST_STEPS]
            self.first_steps_s[way].append(sum(event.duration_s for event in first))

    @contextmanager
    def _page(self, way: str) -> Generator[Page]:
        page = self._browser.new_page(viewport={"width": 1280, "height": 800})
        if way == "browser":
            page.on("websocket", self._watched.open)
        else:
            page.route_web_socket(re.compile("/live/run/"), self._watched.leave_unanswered)
        try:
            yield page
        finally:
            page.close()


@contextmanager
def running_app(data: Path, **variables: str) -> Generator[tuple[str, float]]:
    """Run the app; yields its address and the seconds until it answered.

    Args:
        data: Folder of its runs.
        variables: Of its environment, beside ours.

    Raises:
        RuntimeError: It is not up in time.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = (sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port))
    began_s = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={
            **os.environ,
            DATA_VARIABLE: str(data),
            "TOKEN_BY_TOKEN_HOLD_S": str(HOLD_S),
            "TOKEN_BY_TOKEN_GRACE_S": str(RUN_S),  # a run without a viewer goes on to its end
            **variables,
        },
    )
    url = f"http://127.0.0.1:{port}"
    try:
        wait(lambda: is_healthy(url), READY_S, CANNOT_START)
        yield url, time.monotonic() - began_s
    finally:
        process.terminate()
        process.wait(timeout=20)


def is_healthy(url: str) -> bool:
    """Tell whether the app at this address is up, be it that it asks for a key."""
    try:
        with urllib.request.urlopen(f"{url}/_stcore/health", timeout=2) as response:  # noqa: S310  http, as both callers give it
            return response.read() == b"ok"
    except urllib.error.HTTPError as error:
        return error.code == HTTPStatus.FORBIDDEN
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def _open(page: Page, url: str, new_tokens: int) -> None:
    """Open the page with the bench's prompt and number of tokens in it."""
    page.goto(url)
    page.get_by_role("button", name="Start").wait_for(timeout=READY_S * 1000)
    page.get_by_role("button", name="Settings").click()
    tokens = page.get_by_role("spinbutton", name="Maximum new tokens")
    tokens.fill(str(new_tokens))
    tokens.press("Enter")
    page.keyboard.press("Escape")
    box = page.get_by_role("textbox", name="Prompt")
    box.fill(PROMPT)
    box.press("Control+Enter")


def _run(
    page: Page, store: RunStore, watched: Watched, way: str, meter: DrawingMeter | None = None
) -> tuple[RunTrace, datetime]:
    """Start a run and watch it in this way; return it once it is kept, and since when."""
    watched.url = ""
    page.get_by_test_id("stButton").get_by_role("button", name="Start").first.click()
    wait(
        lambda: bool(_followed(page)) and _followed(page) in watched.url,
        READY_S,
        CANNOT_START,
        lambda: page.wait_for_timeout(50),
    )
    run_id, address = _followed(page), watched.url
    if way != "browser":
        page.goto("about:blank")
    since = datetime.now(UTC)

    def pause() -> None:
        page.wait_for_timeout(200)
        if meter is not None:
            meter.note(len(watched.frame_bytes))

    with ThreadPoolExecutor(max_workers=1) as pool:
        viewer = pool.submit(_follow, address) if way == "viewer" else None
        wait(lambda: is_over(store, run_id), RUN_S, "a run did not end in time", pause)
        if viewer is not None and viewer.result(timeout=READY_S) == 0:
            msg = "the viewer that draws nothing received no frame"
            raise RuntimeError(msg)
    return store.open(run_id), since


def _followed(page: Page) -> str:
    """Return the run in the page's address; empty where there is none."""
    return str(page.evaluate("new URLSearchParams(location.search).get('run') || ''"))


def is_over(store: RunStore, run_id: str) -> bool:
    """Tell whether a run has ended well and is kept."""
    entry = store.entry(run_id)
    return entry is not None and entry.state is RunState.DONE


def _follow(address: str) -> int:
    """Receive and acknowledge frames to the end, and draw nothing; return how many came.

    Raises:
        RuntimeError: The server took no such viewer.
    """
    received = 0
    host = urlsplit(address).netloc
    try:
        with connect(address, max_size=None, origin=Origin(f"http://{host}")) as viewer:
            for _ in viewer:
                received += 1
                viewer.send("a")
    except ConnectionClosed:
        return received  # the server closes once all was sent
    except InvalidHandshake as error:
        msg = f"the viewer that draws nothing was not let in: {first_line(error)}"
        raise RuntimeError(msg) from error
    return received


def decode_rate(trace: RunTrace, since: datetime) -> float:
    """Return decode steps a second of host time, of those well after that moment.

    Raises:
        RuntimeError: They are too few to tell.
    """
    begun_s = (since - trace.info.started_at).total_seconds()
    decode = [event for event in trace.events if event.phase is Phase.DECODE]
    late = [event for event in decode if event.started_s > begun_s][SETTLING_STEPS:]
    if len(late) < LEAST_STEPS:
        msg = f"{len(late)} of {len(decode)} decode steps were watched as meant, too few to tell"
        raise RuntimeError(msg)
    ends = [event.started_s + event.duration_s for event in (late[0], late[-1])]
    return (len(late) - 1) / (ends[1] - ends[0])


def wait(
    is_so: Callable[[], bool],
    timeout_s: float,
    sentence: str,
    pause: Callable[[], None] = lambda: time.sleep(0.05),
) -> None:
    """Return once it is so.

    Raises:
        RuntimeError: It is not so in time.
    """
    end = time.monotonic() + timeout_s
    while not is_so():
        if time.monotonic() > end:
            raise RuntimeError(sentence)
        pause()


if __name__ == "__main__":
    sys.exit(main())
