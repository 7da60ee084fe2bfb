"""The app on a free port with the default model, and a browser that watches its console."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from visuals.live.page_bench import BROWSERS, ROOT, is_healthy

READY_S = 120.0
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",  # CI runs as root
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
GRACE_S = "10"


@dataclass(slots=True)
class Server:
    """A running app; ``log`` is everything it wrote."""

    url: str
    log_path: Path

    @property
    def log(self) -> str:
        return self.log_path.read_text(encoding="utf-8", errors="replace")


@pytest.fixture(scope="session")
def server(
    default_model_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    assert default_model_folder.is_dir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log_path = tmp_path_factory.mktemp("server") / "server.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)],
            cwd=ROOT,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={
                **os.environ,
                "TOKEN_BY_TOKEN_GRACE_S": GRACE_S,
                "TOKEN_BY_TOKEN_DATA": str(log_path.parent / "data"),
            },
        )
    running = Server(url=f"http://127.0.0.1:{port}", log_path=log_path)
    try:
        wait_until(lambda: is_healthy(running.url) or process.poll() is not None, READY_S)
        assert process.poll() is None, running.log
        yield running
    finally:
        process.terminate()
        process.wait(timeout=20)


def wait_until(is_so: Callable[[], bool], timeout_s: float) -> None:
    """Return once the condition holds; fail the test when it does not in time."""
    end = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < end, "the condition did not come true in time"
        time.sleep(0.05)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    executable = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=executable, args=CHROMIUM_ARGUMENTS) as launched,
    ):
        yield launched


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

    def wait_for(self, is_so: Callable[[Panel], bool], timeout_s: float = 60.0) -> None:
        wait_until(lambda: is_so(self.panel()), timeout_s)

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
        wait_until(lambda: self.run_id not in ("", before), 30.0)

    def press(self, name: str) -> None:
        self.page.get_by_test_id("stButton").get_by_role("button", name=name).first.click()

    def type_prompt(self, prompt: str) -> None:
        box = self.page.get_by_role("textbox", name="Prompt")
        box.fill(prompt)
        box.press("Control+Enter")


@pytest.fixture
def open_tab(browser: Browser, server: Server) -> Iterator[Callable[..., Tab]]:
    """Open tabs, each in a context of its own; all are closed after the test."""
    contexts = []

    def open_one(path: str = "", width: int = 1280, height: int = 800) -> Tab:
        context = browser.new_context(viewport={"width": width, "height": height})
        contexts.append(context)
        tab = Tab(context.new_page())
        tab.page.on(
            "console",
            lambda message: message.type == "error" and tab.complaints.append(message.text),
        )
        tab.page.on("pageerror", lambda error: tab.complaints.append(str(error)))
        tab.page.goto(f"{server.url}/{path}")
        tab.page.get_by_role("button", name="Start").wait_for(timeout=60_000)
        return tab

    yield open_one
    for context in contexts:
        context.close()
