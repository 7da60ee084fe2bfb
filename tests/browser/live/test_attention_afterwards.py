"""Attention weights of runs that are over: another layer, a link, a run file."""

from __future__ import annotations

from pathlib import Path

import pytest

from inference.runs.run_file import read
from tests.browser.actions import (
    OpenTab,
    canvas_words,
    caption,
    finish,
    new_tokens,
    show_weights,
    wait_for_caption,
    wait_for_tip,
    wait_for_words,
)
from tests.browser.conftest import Tab, wait_until

pytestmark = pytest.mark.browser

TOKENS = 9
# Pixels of the picture that are coloured: those of the frame and of the axes are grey.
COLOURED = """canvas => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let at = 0; at < data.length; at += 4) {
    const [red, green, blue] = data.slice(at, at + 3);
    if (Math.max(red, green, blue) - Math.min(red, green, blue) > 24) count += 1;
  }
  return count;
}"""


def finished_run(tab: Tab) -> None:
    """Make a short run and show its weights."""
    tab.type_prompt("Name three colours.")
    new_tokens(tab, TOKENS)
    tab.start()
    tab.wait_for(lambda panel: panel.state == "done" and len(panel.ids) <= TOKENS)
    show_weights(tab)
    wait_for_caption(tab, "reads")


def pick(tab: Tab, name: str, value: str) -> None:
    tab.page.get_by_label(name, exact=True).select_option(value)


def picked(tab: Tab, name: str) -> str:
    return tab.page.get_by_label(name, exact=True).input_value()


def coloured(tab: Tab) -> int:
    return int(tab.page.locator("canvas.mask").evaluate(COLOURED))


def test_another_layer_and_head_of_a_finished_run_are_computed_and_labelled(
    open_tab: OpenTab,
) -> None:
    """The picture of layer 15 used to stay under a select that read "layer 0"."""
    tab = open_tab()
    finished_run(tab)
    assert caption(tab).startswith("Layer 15, mean of 9 heads: query ")

    pick(tab, "Layer", "3")
    wait_for_caption(tab, "Layer 3, mean of 9 heads: query ")
    pick(tab, "Head", "4")
    wait_for_caption(tab, "Layer 3, head 4: query ")

    foot = tab.page.locator(".mask-foot")
    wait_until(lambda: "Computed after the run" in foot.inner_text(), state=foot.inner_text)
    wait_for_words(tab, "Attention weights of layer 3, head 4")
    # Every row is there, a decode step's at the bottom and one of the prompt's in the middle.
    rows = tab.panel().steps
    wait_for_tip(tab, 0.2, 0.6, r"weight [\d.e-]+\s+query \d+ .* head 4 on K/V head 1")
    assert rows > 1
    assert coloured(tab) > 1000
    pick(tab, "Layer", "15")
    wait_for_caption(tab, "Layer 15, head 4: query ")
    assert tab.complaints == []


def test_a_link_opened_in_a_new_tab_shows_the_weights(open_tab: OpenTab) -> None:
    tab = open_tab()
    finished_run(tab)
    pick(tab, "Layer", "0")
    wait_for_caption(tab, "Layer 0, mean of 9 heads: query ")
    address = tab.page.url

    other = open_tab(f"?{address.partition('?')[2]}")
    finish(other)
    show_weights(other)
    wait_for_caption(other, "Layer 0, mean of 9 heads: query ")

    assert picked(other, "Layer") == "0"
    assert canvas_words(other) == canvas_words(tab)
    assert coloured(other) > 1000
    assert other.complaints == []


def test_a_run_file_opened_again_begins_with_its_weights(open_tab: OpenTab, tmp_path: Path) -> None:
    """Weights used to stay in the memory of the page that made the run."""
    tab = open_tab()
    finished_run(tab)
    pick(tab, "Layer", "7")
    wait_for_caption(tab, "Layer 7, mean of 9 heads: query ")
    tab.page.get_by_role("button", name="Run file").click()
    with tab.page.expect_download() as saving:
        tab.page.get_by_role("button", name="Save this run").click()
    path = tmp_path / "run.json"
    saving.value.save_as(path)
    [trace] = read(path)
    assert [one.choice.layer for one in trace.attention] == [7, 15]

    other = open_tab()
    other.page.get_by_role("button", name="Run file").click()
    other.page.locator(
        ".st-key-run-files input[type=file], input[type=file]"
    ).first.set_input_files(path)
    other.wait_for(lambda panel: panel.state == "done" and panel.steps == len(trace.events))
    other.page.keyboard.press("Escape")
    wait_for_caption(other, "Layer 7, mean of 9 heads: query ")

    wait_until(lambda: canvas_words(other) == canvas_words(tab), state=lambda: canvas_words(other))
    pick(other, "Layer", "15")
    wait_for_caption(other, "Layer 15, mean of 9 heads: query ")
    assert other.complaints == []
