"""Every page in both themes, before a run and after: nothing for axe or the console to say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import ConsoleMessage, Page

from tests.browser.actions import IS_DRAWN, finish, new_tokens
from tests.browser.conftest import Server, Tab, running_app, wait_until
from visuals.live.page_bench import ROOT

pytestmark = pytest.mark.browser

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
PATHS = (
    "",
    "compare",
    "roofline",
    "batching",
    "serving",
    "device",
    "runs",
    "playlists",
    "playlists?playlist=recorded-runs",
    "playlists?playlist=recorded-runs&item=2",
    "tour",
    "tour?step=batching",
)
# Levels A and AA of the Web Content Accessibility Guidelines 2.1, and what colours decide of them.
RULES: dict[Literal["light", "dark"], list[str]] = {
    "light": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"],
    "dark": ["color-contrast"],
}
AXE_RUN = """async (runOnly) => {
  const { violations } = await axe.run(document, { runOnly, resultTypes: ["violations"] });
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target.join(" ")}: ${failureSummary}`));
}"""


@pytest.fixture
def fresh(default_model_folder: Path, tmp_path: Path) -> Iterator[Server]:
    """Yield an app of its own, in which nobody has made a run."""
    assert default_model_folder.is_dir()
    with running_app(tmp_path) as running:
        yield running


def test_axe_and_the_console_have_nothing_to_say_of_any_page(
    open_page: Callable[..., Tab], fresh: Server
) -> None:
    tab = open_page()
    said: list[str] = []

    def listen(message: ConsoleMessage) -> None:
        if message.type in ("warning", "error"):
            said.append(f"{tab.page.url}: {message.text}")

    tab.page.on("console", listen)
    found = seen_on_all(tab.page, fresh.url, PATHS)
    tab.page.goto(fresh.url)
    tab.page.get_by_role("button", name="Start").wait_for()
    new_tokens(tab, 4)
    tab.start()
    finish(tab)
    run_id = tab.run_id

    kept = (f"?run={run_id}", f"compare?runs={run_id}", f"runs?run={run_id}")
    found += seen_on_all(tab.page, fresh.url, (*kept, *PATHS[2:]))

    assert "\n".join(found) == ""
    assert "\n".join(said) == ""


def seen_on_all(page: Page, url: str, paths: tuple[str, ...]) -> list[str]:
    """Return what axe finds on these pages, tab by tab, in both themes.

    What does not depend on colours is looked for in the light only.
    """
    found: list[str] = []
    for theme, rules in RULES.items():
        page.emulate_media(color_scheme=theme)
        for path in paths:
            page.goto(f"{url}/{path}")
            page.get_by_test_id("stMainBlockContainer").wait_for()
            found += seen_by_axe(page, rules, f"/{path} {theme}")
            for tab in page.get_by_test_id("stTab").all()[1:]:
                tab.click()
                found += seen_by_axe(page, rules, f"/{path} {tab.inner_text()} {theme}")
    return found


def seen_by_axe(page: Page, rules: list[str], where: str) -> list[str]:
    """Return each fault that axe finds on the page as it is drawn, with its place."""
    wait_until(lambda: page.evaluate(IS_DRAWN), state=lambda: where)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    return [f"{where}: {fault}" for fault in page.evaluate(AXE_RUN, rules)]
