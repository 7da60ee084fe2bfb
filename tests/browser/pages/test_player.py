"""The page that plays a run, opened from its file by a browser without a network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from inference.records.run import RunTrace
from inference.runs.recordings import FIRST_RUN, recorded_runs
from inference.runs.replay import run_until
from tests.browser.actions import OpenTab, finish, new_tokens
from tests.browser.conftest import Tab, wait_until
from tests.visuals.traces import trace_of
from visuals.charts.kv_cache import caption
from visuals.panel.player_page import player_page

pytestmark = pytest.mark.browser

EVIL = "</script><!--<script>document.title = 'broken'</script><b>"
RUN = recorded_runs(FIRST_RUN)[0]


@pytest.fixture
def offline_tab(browser: Browser) -> Iterator[Tab]:
    """Yield a tab that reaches no server, with all that it asked for."""
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 800})
    tab = Tab(context.new_page())
    tab.listen()
    yield tab
    context.close()


def opened(tab: Tab, trace: RunTrace, folder: Path) -> list[str]:
    """Open the page of a run, and return what the browser asks for from then on."""
    path = folder / "player.html"
    path.write_bytes(player_page(trace).content)
    asked: list[str] = []
    tab.page.on("request", lambda request: asked.append(request.url))
    tab.page.goto(path.as_uri())
    drawn(tab, len(trace.events))
    return asked


def drawn(tab: Tab, steps: int) -> None:
    """Wait until the panels show the run after so many steps, its charts too."""
    wait_until(lambda: tab.panel().steps == steps, state=tab.panel)


def text_of(trace: RunTrace, steps: int) -> str:
    return run_until(trace, steps, trace.state).outputs[0].text


def shows(tab: Tab, trace: RunTrace, steps: int) -> None:
    """Hold the panels to the run after so many steps."""
    drawn(tab, steps)
    page = tab.page
    events = trace.events[:steps]
    expect(page.locator(".text")).to_have_text(text_of(trace, steps))
    expect(page.locator(".tok.out[data-id]")).to_have_count(steps)
    expect(page.locator(".panel-kv .caption")).to_have_text(caption(events, trace.info))
    newest = events[-1].rows[0]
    chip = page.locator(f".chip-{events[-1].phase.value}")
    expect(chip).to_contain_text(f"T={newest.query_tokens} L={newest.context_tokens}")
    expect(page.locator(".player-where")).to_have_text(f"Step {steps} of {len(trace.events)}")


def test_a_run_is_scrubbed_from_its_file_without_a_network(
    offline_tab: Tab, tmp_path: Path
) -> None:
    page = offline_tab.page
    asked = opened(offline_tab, RUN, tmp_path)
    total = len(RUN.events)
    shows(offline_tab, RUN, total)
    expect(page.locator(".state")).to_have_text(re.compile("finished"))
    slider = page.get_by_role("slider", name="Steps shown")

    slider.fill("20")
    shows(offline_tab, RUN, 20)
    expect(page.locator(".state")).to_have_text("paused")
    slider.press("ArrowRight")
    shows(offline_tab, RUN, 21)
    page.locator("h1").click()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    shows(offline_tab, RUN, 19)
    page.get_by_label("Speed").select_option("16")
    page.keyboard.press(" ")
    shows(offline_tab, RUN, total)

    assert offline_tab.panel().mounts == 1
    assert asked == [(tmp_path / "player.html").as_uri()]
    assert offline_tab.complaints == []


def test_a_run_of_the_live_page_plays_from_the_file_that_it_is_saved_as(
    open_tab: OpenTab, offline_tab: Tab, tmp_path: Path
) -> None:
    tab = open_tab()
    new_tokens(tab, 4)
    tab.start()
    finish(tab)
    made = tab.panel()
    tab.page.get_by_role("button", name="Run file").click()
    with tab.page.expect_download() as saved:
        tab.page.get_by_role("button", name="Save as a page that plays").click()
    saved.value.save_as(tmp_path / "player.html")

    offline_tab.page.goto((tmp_path / "player.html").as_uri())
    drawn(offline_tab, made.steps)

    assert made.steps == 4
    assert offline_tab.panel().ids == made.ids
    assert offline_tab.panel().state == made.state
    assert offline_tab.complaints == []


def test_weights_help_and_terms_work_in_the_file(offline_tab: Tab, tmp_path: Path) -> None:
    page = offline_tab.page
    opened(offline_tab, RUN, tmp_path)
    panel = page.locator(".panel-mask")
    expect(panel.locator(".caption")).to_contain_text("Layer 15, mean of")

    panel.get_by_label("Layer", exact=True).select_option("7")
    expect(panel.locator(".caption")).to_contain_text("Layer 7, mean of")
    panel.get_by_label("Layer", exact=True).select_option("3")
    expect(panel.locator(".mask-foot")).to_contain_text("only")
    expect(panel.get_by_label("Layer", exact=True)).to_have_value("7")
    page.locator(".panel-roofline .help").click()
    expect(page.locator(".panel-roofline .more")).to_contain_text("Formula")
    stop = page.get_by_role("toolbar", name="Terms explained on this page")
    stop.get_by_role("button", name="token", exact=True).focus()
    expect(page.locator(".term-card")).to_contain_text("the model reads and writes nothing smaller")
    expect(page.locator(".term-card a")).to_be_hidden()
    page.keyboard.press("Escape")
    page.get_by_text("Terms", exact=True).click()
    expect(page.locator("footer dt", has_text="time to first token (TTFT)")).to_be_visible()

    assert page.locator("a[href]").count() == 0
    assert offline_tab.complaints == []


def test_charts_are_drawn_from_the_file_in_both_themes_and_on_a_phone(
    offline_tab: Tab, tmp_path: Path
) -> None:
    page = offline_tab.page
    opened(offline_tab, RUN, tmp_path)
    expect(page.locator(".panel-latency canvas").first).to_be_visible()

    page.get_by_role("button", name="Light or dark").click()
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.set_viewport_size({"width": 390, "height": 844})

    assert background == "rgb(16, 20, 26)"
    wait_until(lambda: not page.evaluate(OVERFLOWS))
    assert offline_tab.complaints == []


OVERFLOWS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


def test_what_was_generated_is_text_and_no_script(offline_tab: Tab, tmp_path: Path) -> None:
    trace = trace_of([EVIL.encode()], [b" x", EVIL.encode()])
    evil = replace(trace, info=replace(trace.info, model_id=EVIL, check_warning=EVIL))

    opened(offline_tab, evil, tmp_path)

    page: Page = offline_tab.page
    assert page.title() == EVIL
    expect(page.locator("h1")).to_have_text(EVIL)
    expect(page.locator(".text")).to_have_text(f" x{EVIL}")
    expect(page.locator(".notice.bad").first).to_have_text(EVIL)
    assert page.locator("b", has_text="x").count() == 0
    assert offline_tab.complaints == []


def test_a_file_that_is_damaged_or_was_cut_says_so(offline_tab: Tab, tmp_path: Path) -> None:
    whole = player_page(RUN).content
    start = whole.index(b'id="frames">') + len(b'id="frames">')
    (tmp_path / "cut.html").write_bytes(whole[: start + 1000])
    (tmp_path / "damaged.html").write_bytes(whole[: start + 60] + b"A" * 40 + whole[start + 100 :])

    offline_tab.page.goto((tmp_path / "cut.html").as_uri())
    expect(offline_tab.page.locator("main")).to_contain_text("If this line stays, the file was cut")
    offline_tab.page.goto((tmp_path / "damaged.html").as_uri())

    expect(offline_tab.page.locator("main")).to_have_text(re.compile("This page is damaged"))
