"""Attention weights in a real browser: the pickers, the pointer, chunks, and a long context."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import WebSocket, expect

from tests.browser.actions import (
    OpenTab,
    canvas_words,
    caption,
    choose,
    new_tokens,
    show_weights,
    wait_for_caption,
    wait_for_tip,
    wait_for_words,
)
from tests.browser.conftest import Tab, wait_until
from tests.browser.small_models import run_on, saved

pytestmark = pytest.mark.browser

MAX_MESSAGE_BYTES = 64 * 1024
LONG_TOKENS = 2_000


def header_of(message: bytes) -> dict[str, Any]:
    [length] = struct.unpack("<I", message[:4])
    return json.loads(message[4 : 4 + length])


def listen(tab: Tab) -> list[bytes]:
    """Return the list that the messages of attention weights will be in."""
    messages: list[bytes] = []

    def take(message: bytes) -> None:
        messages.append(message)

    def opened(socket: WebSocket) -> None:
        if "/live/attention/" in socket.url:
            socket.on("framereceived", take)

    tab.page.on("websocket", opened)
    return messages


def run(tab: Tab, prompt: str, tokens: int) -> None:
    tab.type_prompt(prompt)
    new_tokens(tab, tokens)
    tab.start()


def finish(tab: Tab, tokens: int) -> None:
    """Wait for a run of at most this many tokens; the recorded run shown before has more."""
    tab.wait_for(lambda panel: panel.state == "done" and len(panel.ids) <= tokens)


def newest_query(tab: Tab) -> int:
    """Return the newest query's position: the last token but one, since the last was never fed."""
    positions = tab.page.locator(".tok[data-position]").evaluate_all(
        "(tokens) => tokens.map((token) => Number(token.dataset.position))"
    )
    return max(positions) - 1


def test_weights_come_while_the_run_goes_and_another_head_can_be_picked(open_tab: OpenTab) -> None:
    tab = open_tab()
    messages = listen(tab)
    run(tab, "Name three colours.", 12)
    show_weights(tab)
    finish(tab, 12)
    wait_for_caption(tab, "reads")

    tab.page.get_by_label("Head", exact=True).select_option("4")
    wait_for_words(tab, "head 4")

    heads = [header["choice"] for header in map(header_of, messages) if header["kind"] == "state"]
    assert {"layer": 15, "head": None, "all": False, "row": 0} in heads
    assert heads[-1] == {"layer": 15, "head": 4, "all": False, "row": 0}
    groups = tab.page.locator(".panel-mask optgroup")
    assert [groups.nth(at).get_attribute("label") for at in range(groups.count())] == [
        "K/V head 0",
        "K/V head 1",
        "K/V head 2",
    ]
    assert tab.complaints == []


def test_the_head_picked_is_where_the_next_run_begins(open_tab: OpenTab) -> None:
    tab = open_tab()
    messages = listen(tab)
    run(tab, "Name three colours.", 2)
    show_weights(tab)
    finish(tab, 2)
    wait_for_caption(tab, "reads")
    tab.page.get_by_label("Head", exact=True).select_option("all")
    wait_for_words(tab, "each head")

    run(tab, "Name two rivers.", 3)

    def planes_of_decode_steps() -> list[int]:
        tab.panel()  # messages are taken while the page is asked something
        headers = [header_of(message) for message in messages]
        blocks = [block for one in headers for block in one.get("blocks", ())]
        return [block["shape"][0] for block in blocks if block["step"] > 0]

    # The first run's steps were seen before all heads were picked.
    wait_until(lambda: planes_of_decode_steps()[-1:] == [9], state=planes_of_decode_steps)
    assert tab.complaints == []


def test_the_pointer_tells_the_exact_weight_and_lights_the_token(open_tab: OpenTab) -> None:
    tab = open_tab()
    run(tab, "Name three colours.", 12)
    show_weights(tab)
    finish(tab, 12)
    wait_for_caption(tab, "reads")

    wait_for_tip(tab, 0.3, 0.5, r"weight [\d.e-]+\s+query \d+ .*, key \d+ ")
    expect(tab.page.locator(".tok.lit")).to_have_count(1)
    wait_for_tip(tab, 0.6, 0.2, "may not read key")


def test_a_prompt_in_chunks_makes_a_step_of_each_and_tells_the_step_times(
    open_tab: OpenTab,
) -> None:
    tab = open_tab()
    tab.page.get_by_role("button", name="Settings").click()
    box = tab.page.get_by_role("spinbutton", name="Prefill chunk size")
    box.fill("10")
    box.press("Enter")
    tab.page.keyboard.press("Escape")
    run(tab, "Name three colours.", 3)
    finish(tab, 3)

    panel = tab.panel()

    assert panel.state == "done"
    assert panel.steps > len(panel.ids)
    assert len(panel.ids) <= 3
    assert tab.complaints == []


def test_a_long_context_stays_within_its_messages_and_every_row_can_be_told(
    open_tab: OpenTab, tmp_path: Path
) -> None:
    saved(tmp_path / "tiny", "llama", max_position_embeddings=4096)
    tab = open_tab()
    messages = listen(tab)
    show_weights(tab)
    run_on(tab, tmp_path / "tiny", "the cache holds keys and values of every token " * 90, tokens=3)

    def binned() -> list[int]:
        """Return how many queries each block of the long prompt puts together."""
        tab.panel()  # messages are taken while the page is asked something
        blocks = [block for one in messages for block in header_of(one).get("blocks", ())]
        return [block["qb"] for block in blocks if block["kn"] > LONG_TOKENS]

    wait_until(lambda: bool(binned()))  # the recorded run's own came before
    wait_for_caption(tab, "reads")
    wait_for_tip(tab, 0.25, 0.5, r"weight [\d.e-]+\s+query")
    assert max(len(message) for message in messages) <= MAX_MESSAGE_BYTES
    assert binned()[0] > 1
    assert any(header_of(message)["kind"] == "row" for message in messages)
    assert tab.complaints == []


def test_the_arrow_keys_tell_the_weights_that_the_pointer_tells(open_tab: OpenTab) -> None:
    tab = open_tab()
    run(tab, "Name three colours.", 6)
    show_weights(tab)
    finish(tab, 6)
    last = newest_query(tab)
    wait_until(
        lambda: re.findall(r"query (\d+)", caption(tab))[:1] == [str(last)],
        state=lambda: caption(tab),
    )
    canvas = tab.page.locator("canvas.mask")

    canvas.focus()
    tab.page.keyboard.press("ArrowUp")  # the first press enters the picture, at the newest row
    for key in ("ArrowUp", "ArrowUp", "ArrowLeft"):
        tab.page.keyboard.press(key)

    wait_for_words(tab, "may not read key")
    tab.page.keyboard.press("Shift+ArrowLeft")
    tab.page.keyboard.press("ArrowRight")
    cell = rf"weight [\d.e-]+\. query {last - 2} .*, key {last - 10} "
    wait_for_words(tab, cell)
    expect(tab.page.locator(f'.tok.lit[data-position="{last - 2}"]')).to_have_count(1)
    tab.page.keyboard.press("Escape")
    expect(tab.page.locator(".tip")).to_be_hidden()
    assert "Attention weights of layer" in canvas_words(tab)
    assert tab.complaints == []


def test_the_arrow_keys_walk_along_the_tokens(open_tab: OpenTab) -> None:
    tab = open_tab()
    run(tab, "Name three colours.", 2)
    finish(tab, 2)

    tab.page.locator('.tok[tabindex="0"]').focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft"):
        tab.page.keyboard.press(key)

    focused = tab.page.locator(".tok:focus")
    assert focused.get_attribute("data-position") == "2"
    assert "token 2: " in str(focused.get_attribute("aria-label"))
    expect(tab.page.locator(".tip")).to_contain_text("position 2, prompt")
    assert tab.complaints == []


def test_each_row_of_a_batch_can_be_picked_and_shows_its_own_weights(open_tab: OpenTab) -> None:
    tab = open_tab()
    messages = listen(tab)
    show_weights(tab)
    tab.type_prompt("Say hello.\n---\nName two colours of the sky.")
    tab.page.get_by_role("button", name="Batch", exact=True).click()
    choose(tab, "batch_source", "typed")
    tab.page.get_by_text("2 prompts in the prompt box.").wait_for()
    tab.page.keyboard.press("Escape")
    new_tokens(tab, 4)
    tab.start()
    tab.wait_for(lambda panel: panel.state == "done")
    wait_for_caption(tab, "reads")
    first = caption(tab)

    tab.page.get_by_label("Request", exact=True).select_option("1")
    wait_for_words(tab, "request 2")
    wait_for_caption(tab, "reads")

    states = [header for header in map(header_of, messages) if header["kind"] == "state"]
    assert states[-1]["choice"]["row"] == 1
    assert caption(tab) != first
    tab.page.get_by_role("button", name="mask", exact=True).click()
    assert caption(tab).startswith("Request 2: one new row, the newest reads ")
    assert tab.complaints == []
