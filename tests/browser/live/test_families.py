"""Windows, attention that is not a number, and layers without attention, on the page."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from playwright.sync_api import Locator, expect

from tests.browser.actions import (
    OpenTab,
    canvas_words,
    caption,
    finish,
    point,
    show_weights,
    wait_for_caption,
    wait_for_tip,
)
from tests.browser.conftest import Tab, wait_until
from tests.browser.small_models import run_on, saved
from tests.tiny_model import tiny_tokenizer

pytestmark = pytest.mark.browser

WINDOW = 8
PROMPT = "the cache holds keys and values of every token"
SPOILED = "\u00e9"  # its token's embedding is not a number
# Magenta, of no other meaning: the colour of a weight that is not a number.
ODD_PIXELS = """(canvas) => {
  const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let odd = 0;
  for (let at = 0; at < data.length; at += 4)
    if (data[at] === 230 && data[at + 1] === 0 && data[at + 2] === 158) odd += 1;
  return odd;
}"""


def layers(tab: Tab) -> Locator:
    return tab.page.get_by_label("Layer", exact=True).locator("option")


def pick_layer(tab: Tab, layer: int) -> None:
    tab.page.get_by_label("Layer", exact=True).select_option(str(layer))


def reads_keys(tab: Tab, keys: int) -> tuple[bool, bool]:
    """Return whether the newest query is told to read its so many newest keys, and one more."""
    tab.page.locator("canvas.mask").focus()
    tab.page.keyboard.press("ArrowUp")  # enters the picture at the newest query's own key
    for _ in range(keys - 1):
        tab.page.keyboard.press("ArrowLeft")
    is_last_read = " reads key " in canvas_words(tab)
    tab.page.keyboard.press("ArrowLeft")
    is_next_read = " reads key " in canvas_words(tab)
    tab.page.keyboard.press("Escape")
    return is_last_read, is_next_read


def held_tokens(tab: Tab) -> str:
    tab.page.locator(".panel-kv").get_by_role("button", name="formula").click()
    return tab.page.locator(".panel-kv").inner_text().replace("\u00a0", " ")


def test_each_layer_shows_its_own_window_and_the_cache_its_plateau(
    open_tab: OpenTab, tmp_path: Path
) -> None:
    saved(tmp_path / "gemma", "gemma2", sliding_window=WINDOW)
    tab = open_tab()
    run_on(tab, tmp_path / "gemma", PROMPT)
    stored = len(tab.panel().ids)

    assert tab.panel().state == "done"
    expect(layers(tab)).to_have_text(["layer 0: window 8", "layer 1: full", "layer 2: window 8"])
    pick_layer(tab, 0)
    assert f"{WINDOW} keys read" in caption(tab)
    assert "a band below the diagonal" in canvas_words(tab)
    assert reads_keys(tab, WINDOW) == (True, False)
    pick_layer(tab, 1)
    assert f"{WINDOW} keys read" not in caption(tab)
    assert reads_keys(tab, WINDOW) == (True, True)
    account = held_tokens(tab)
    assert (
        "2 layers, sliding window 8: 2 \u00d7 2 K/V heads \u00d7 8 \u00d7 4 B \u00d7 7" in account
    )
    assert "reached their plateau" in account
    assert stored == 8
    assert tab.complaints == []


def test_attention_that_is_not_a_number_is_said_and_coloured_and_the_run_goes_on(
    open_tab: OpenTab, tmp_path: Path
) -> None:
    """The first token spoils the rows whose window reaches it; the later chunks are sound."""
    model = saved(tmp_path / "spoiled", "mistral", sliding_window=WINDOW)
    [spoiled] = tiny_tokenizer().encode(SPOILED, add_special_tokens=False)[:1]
    embedding = model.get_input_embeddings()
    assert isinstance(embedding, torch.nn.Embedding)
    with torch.no_grad():
        embedding.weight[spoiled] = float("nan")
    model.save_pretrained(tmp_path / "spoiled")
    tab = open_tab()
    show_weights(tab)
    run_on(tab, tmp_path / "spoiled", SPOILED + PROMPT, chunk=WINDOW)
    wait_for_caption(tab, "reads")

    assert tab.panel().state == "done"
    assert len(tab.panel().ids) == 8
    foot = tab.page.locator(".panel-mask .mask-foot")
    expect(foot).to_contain_text("weights that are not numbers (NaN)")
    expect(foot.locator(".mask-nan")).to_be_visible()
    assert tab.page.locator("canvas.mask").evaluate(ODD_PIXELS) > 50
    assert tab.complaints == []


def test_a_layer_without_attention_says_why_it_has_no_weights(
    open_tab: OpenTab, tmp_path: Path
) -> None:
    saved(tmp_path / "hybrid", "lfm2")
    tab = open_tab()
    show_weights(tab)
    run_on(tab, tmp_path / "hybrid", PROMPT)

    expect(layers(tab)).to_have_text(["layer 0: recurrent", "layer 1: full", "layer 2: recurrent"])
    wait_for_caption(tab, "reads")
    pick_layer(tab, 0)
    tab.start()
    finish(tab)
    wait_for_caption(tab, "attends to no token")
    assert "state" in held_tokens(tab)
    expect(tab.page.locator(".panel-kv .caption")).to_contain_text("in 1 of 3 layers")
    assert tab.complaints == []


def test_another_layer_picked_after_the_run_is_computed_and_told_as_its_own(
    open_tab: OpenTab, tmp_path: Path
) -> None:
    """The old layer's weights were once told as the new one's, cut to its window."""
    saved(tmp_path / "gemma", "gemma2", sliding_window=WINDOW)
    tab = open_tab()
    show_weights(tab)
    run_on(tab, tmp_path / "gemma", PROMPT)
    wait_for_caption(tab, "reads")
    assert caption(tab).startswith("Layer 1, mean of ")
    wait_for_tip(tab, 0.25, 0.55, "weight ")

    pick_layer(tab, 0)
    wait_until(lambda: caption(tab).startswith("Layer 0, mean of "), state=lambda: caption(tab))

    assert "of layer 0," in canvas_words(tab)
    foot = tab.page.locator(".mask-foot")
    wait_until(lambda: "Computed after the run" in foot.inner_text(), state=foot.inner_text)
    wait_for_tip(tab, 0.25, 0.55, "may not read key")
    point(tab, 0, 0)
    assert tab.complaints == []
