"""The app on a free port with the default model, and a browser that watches its console."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from inference.storage.folders import CACHE_VARIABLE
from visuals.live.page_bench import BROWSERS, ROOT, is_healthy

# Chromium without the parts that draw windows comes first: a fifth less processor time.
FOR_TESTS = ("chromium-headless-shell", *BROWSERS)

# For every wait: longer than anything takes on a machine with other work to do.
PATIENCE_S = 180.0
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",  # CI runs as root
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
GRACE_S = "10"
HOLD_S = "5"  # of a page that never says it is quiet: time enough to do something meanwhile


@dataclass(slots=True)
class Server:
    """A running app; ``log`` is everything it wrote."""

    url: str
    log_path: Path

    @property
    def log(self) -> str:
        return self.log_path.read_text(encoding="utf-8", errors="replace")


@contextmanager
def running_app(
    folder: Path, cache: Path | None = None, address: str = "127.0.0.1", **variables: str
) -> Generator[Server]:
    """Yield the app on a free port, with its data and its log in a folder, and a cache folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log_path = folder / "server.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "streamlit", "run", "app.py"),
                *("--server.port", str(port), "--server.address", address),
            ],
            cwd=ROOT,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={
                **os.environ,
                "TOKEN_BY_TOKEN_GRACE_S": GRACE_S,
                "TOKEN_BY_TOKEN_HOLD_S": HOLD_S,
                "TOKEN_BY_TOKEN_DATA": str(folder / "data"),
                "FORWARDED_ALLOW_IPS": "",  # as `make run` has it
                **({CACHE_VARIABLE: str(cache)} if cache is not None else {}),
                **variables,
            },
        )
    running = Server(url=f"http://127.0.0.1:{port}", log_path=log_path)
    try:
        wait_until(
            lambda: is_healthy(running.url) or process.poll() is not None,
            PATIENCE_S,
            lambda: f"the app is not up; it says:\n{running.log}",
        )
        assert process.poll() is None, running.log
        yield running
    finally:
        process.terminate()
        process.wait(timeout=60)


@pytest.fixture(scope="session")
def server(
    default_model_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    assert default_model_folder.is_dir()
    with running_app(tmp_path_factory.mktemp("server")) as running:
        yield running


def wait_until(
    is_so: Callable[[], bool],
    timeout_s: float = PATIENCE_S,
    state: Callable[[], object] = str,
) -> None:
    """Return once the condition holds; fail with what ``state`` returns when it does not in time.

    A condition that asks the page lets the page's own events in; the pause between two questions
    only keeps the asking cheap.
    """
    end = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < end, f"not true after {timeout_s:.0f} s: {state()}"
        time.sleep(0.05)


@pytest.fixture(scope="package")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    """Yield the context of all tabs, with a profile on disk, while tests of this folder run.

    So Streamlit's own scripts are fetched once, and Chromium keeps what it compiled of them. The
    driver's event loop stays in the thread until the context is closed, in the way of any test that
    runs one of its own: it goes before the first test of another folder.
    """
    expect.set_options(timeout=PATIENCE_S * 1e3)
    executable = next((found for name in FOR_TESTS if (found := shutil.which(name))), None)
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"),
            executable_path=executable,
            args=CHROMIUM_ARGUMENTS,
        ) as made,
    ):
        made.set_default_timeout(PATIENCE_S * 1e3)
        yield made


@pytest.fixture(scope="package")
def browser(context: BrowserContext) -> Browser:
    """Return the browser, for contexts with nothing kept in them."""
    assert context.browser is not None
    return context.browser


# What the newest panel on the page shows, and how many panels there have been since it was loaded.
SHOWN = """(roots) => {
  const root = roots.at(-1);
  if (!root) return {};
  const seen = (window.__panels ??= []);
  if (!seen.includes(root)) seen.push(root);
  return {
    run: root.dataset.run,
    state: root.querySelector(".state").dataset.state || "",
    steps: Number(root.dataset.steps || 0),
    mounts: seen.length,
    ids: [...root.querySelectorAll(".tok.out[data-id]")].map((node) => Number(node.dataset.id)),
  };
}"""


@dataclass(frozen=True, slots=True)
class Panel:
    """What the live panel shows."""

    state: str = ""
    steps: int = 0
    mounts: int = 0
    ids: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Tab:
    """One tab, what its console complained of, and what the live panel shows."""

    page: Page
    complaints: list[str] = field(default_factory=list)

    def panel(self) -> Panel:
        """Return what the panel shows of the run in the address."""
        shown = self.page.locator(".tbt").evaluate_all(SHOWN)
        if self.run_id and shown.get("run") != self.run_id:
            return Panel()  # the recorded run, or the one before
        return Panel(**{name: shown[name] for name in Panel.__slots__ if name in shown})

    def wait_for(self, is_so: Callable[[Panel], bool], timeout_s: float = PATIENCE_S) -> None:
        wait_until(lambda: is_so(self.panel()), timeout_s, self.panel)

    @property
    def run_id(self) -> str:
        """Return the run in the Live page's address; empty where there is none."""
        address = urlsplit(self.page.evaluate("location.href"))  # page.url lags behind
        is_live = address.path in ("", "/", "/live")
        return parse_qs(address.query).get("run", [""])[0] if is_live else ""

    def start(self, name: str = "Start") -> None:
        """Press Start, or Step without a run, and return once the page follows the new run."""
        before = self.run_id
        self.press(name)
        wait_until(lambda: self.run_id not in ("", before))

    def press(self, name: str) -> None:
        self.page.get_by_test_id("stButton").get_by_role("button", name=name).first.click()

    def type_prompt(self, prompt: str) -> None:
        box = self.page.get_by_role("textbox", name="Prompt")
        box.fill(prompt)
        box.press("Control+Enter")

    def listen(self) -> None:
        """Collect what the console and the page complain of."""
        self.page.on(
            "console",
            lambda message: message.type == "error" and self.complaints.append(message.text),
        )
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))


@pytest.fixture
def open_page(context: BrowserContext) -> Iterator[Callable[..., Tab]]:
    """Open empty tabs; all are closed after the test."""
    tabs: list[Tab] = []

    def open_one(width: int = 1280, height: int = 800) -> Tab:
        tab = Tab(context.new_page())
        tabs.append(tab)
        tab.page.set_viewport_size({"width": width, "height": height})
        tab.listen()
        return tab

    yield open_one
    for tab in tabs:
        tab.page.close()


@pytest.fixture
def open_tab(open_page: Callable[..., Tab], server: Server) -> Callable[..., Tab]:
    """Open tabs on the Live page, each a session of its own."""

    def open_one(path: str = "", width: int = 1280) -> Tab:
        tab = open_page(width)
        tab.page.goto(f"{server.url}/{path}")
        tab.page.get_by_role("button", name="Start").wait_for()
        return tab

    return open_one
