"""Compare and Runs in a real browser on the real default model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from inference.runs.comparisons import figures_of, subjects_of
from inference.runs.run_file import read
from tests.browser.actions import OpenTab, fit_every_width, new_tokens
from tests.browser.conftest import Server, Tab
from visuals.charts.compare_table import BATCH_COLUMN, COLUMNS, table_rows

pytestmark = pytest.mark.browser

PROMPTS = ("Name a river.", "Name two mountains, please.", "Count <b>to</b> three.")


def open_compare(open_tab: OpenTab) -> Tab:
    tab = open_tab()
    tab.page.get_by_role("link", name="Compare").click()
    tab.page.get_by_text("Or paste prompts").first.wait_for()
    return tab


def words(text: str) -> str:
    """Return a text with single spaces, as a browser shows it."""
    return " ".join(text.split())


def table_on(page: Page) -> list[list[str]]:
    """Return the cells of the table of figures, row by row."""
    rows = page.locator("table.figures tbody tr").all()
    return [[words(cell) for cell in row.locator("th, td").all_inner_texts()] for row in rows]


def download(page: Page, name: str, path: Path) -> Path:
    """Save one of the exports and return its path."""
    page.get_by_role("button", name="Export").first.click()
    with page.expect_download() as saved:
        page.get_by_role("button", name=name).first.click()
    saved.value.save_as(path)
    page.keyboard.press("Escape")
    return path


def test_three_uploaded_prompts_are_compared_and_the_report_opens_offline(
    open_tab: OpenTab, browser: Browser, tmp_path: Path
) -> None:
    tab = open_compare(open_tab)
    page = tab.page
    upload = tmp_path / "prompts.jsonl"
    upload.write_text("\n".join(json.dumps({"prompt": prompt}) for prompt in PROMPTS))
    page.locator("input[type=file]").first.set_input_files(upload)
    page.get_by_text("Prompts to compare (at most 16, of 3)").first.wait_for()
    new_tokens(tab, 4)
    page.locator(".st-key-start-comparison button").first.click()
    page.locator("table.figures", has_text=PROMPTS[0]).wait_for()  # not the recorded one

    report = download(page, "Report (HTML)", tmp_path / "report.html")
    runs = read(download(page, "Run file", tmp_path / "runs.json.gz"))

    cells = page.locator("table.figures tbody tr").all_inner_texts()
    assert [trace.requests[0].prompt_text for trace in runs] == list(PROMPTS)
    assert len(cells) == 3
    assert table_on(page) == [
        [words(cell) for cell, name in zip(row, COLUMNS, strict=True) if name != BATCH_COLUMN]
        for row in table_rows([figures_of(one) for one in subjects_of(runs)])
    ]
    offline = browser.new_context(offline=True)
    requests: list[str] = []
    opened = offline.new_page()
    opened.on("request", lambda request: requests.append(request.url))
    opened.goto(report.as_uri())
    opened.wait_for_function("document.documentElement.dataset.drawn === '5'")
    assert opened.locator("table.figures tbody tr").all_inner_texts() == cells
    assert opened.locator("figure svg").count() >= 5
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert opened.get_by_text("Count <b>to</b> three.").count() > 0
    term = opened.locator("th .term", has_text="time to first token (TTFT)").first
    term.focus()
    expect(term.locator(".about")).to_contain_text("until its first output token is there")
    opened.keyboard.press("Escape")
    expect(term.locator(".about")).to_be_hidden()
    opened.mouse.move(1, 1)
    term.hover()
    expect(term.locator(".about")).to_be_visible()
    offline.close()
    assert tab.complaints == []


def test_a_kept_run_is_found_named_and_played_again(open_tab: OpenTab) -> None:
    tab = open_compare(open_tab)
    page = tab.page
    box = page.get_by_role("textbox", name="Or paste prompts")
    box.fill("Say the word heliotrope.")
    box.press("Control+Enter")
    page.get_by_text("Prompts to compare (at most 16, of 1)").first.wait_for()
    new_tokens(tab, 3)
    page.locator(".st-key-start-comparison button").first.click()
    page.locator("table.figures", has_text="heliotrope").wait_for()  # not the recorded one
    page.get_by_role("link", name="Runs").click()
    page.locator("table.figures").first.wait_for(state="hidden")  # of the page that was left
    page.get_by_role("textbox", name="Search").fill("heliotrope")
    page.get_by_role("textbox", name="Search").press("Enter")
    page.get_by_text("Say the word heliotrope.").first.wait_for()

    page.get_by_role("button", name="Open", exact=True).first.click()
    tab.wait_for(lambda panel: panel.state == "done" and len(panel.ids) > 0)
    ids = tab.panel().ids
    page.get_by_role("button", name="Play again").first.click()

    tab.wait_for(lambda panel: panel.state in {"running", "done"})
    tab.wait_for(lambda panel: panel.state == "done" and panel.ids == ids)
    assert "run=" in page.url
    assert tab.complaints == []


@pytest.mark.parametrize(
    ("path", "text"), [("compare", "Or paste prompts"), ("runs", "Open run files")]
)
def test_nothing_is_wider_than_the_window(
    open_page: Callable[..., Tab], server: Server, path: str, text: str
) -> None:
    tab = open_page()
    tab.page.goto(f"{server.url}/{path}")
    tab.page.get_by_text(text).first.wait_for()

    fit_every_width(tab)
