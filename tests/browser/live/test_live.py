"""The Live page in a real browser on the real default model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.browser.actions import OpenTab, finish, fit_every_width, new_tokens, slow_down
from tests.browser.conftest import Tab

pytestmark = pytest.mark.browser


def saved_run(tab: Tab, folder: Path) -> dict[str, Any]:
    """Save the run through the page and return the file's content."""
    tab.page.get_by_role("button", name="Run file").click()
    with tab.page.expect_download() as download:
        tab.page.get_by_role("button", name="Save this run").click()
    path = folder / "run.json"
    download.value.save_as(path)
    tab.page.keyboard.press("Escape")
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_run_from_start_to_done_draws_the_ids_of_its_run_file(
    open_tab: OpenTab, tmp_path: Path
) -> None:
    tab = open_tab()
    tab.type_prompt("Name three colours. 👩‍👩‍👧‍👦")
    new_tokens(tab, 12)
    tab.start()
    finish(tab)

    run = saved_run(tab, tmp_path)

    panel = tab.panel()
    assert panel.state == "done"
    assert panel.ids == run["outputs"][0]["token_ids"]
    assert len(panel.ids) == len(run["events"])
    shown = tab.page.locator('[aria-label="Text so far"]').inner_text()
    assert run["outputs"][0]["text"].split() == shown.split()
    assert tab.complaints == []


def test_step_advances_exactly_one_forward_pass(open_tab: OpenTab) -> None:
    tab = open_tab()
    tab.type_prompt("Count to ten.")
    for presses in (1, 2, 3):
        tab.start("Step") if presses == 1 else tab.press("Step")
        tab.wait_for(lambda panel, want=presses: panel.steps == want)
        tab.wait_for(lambda panel: panel.state == "paused")

    assert tab.panel().steps == 3
    tab.press("Stop")
    finish(tab)


def test_a_reload_brings_the_run_back_and_leaves_it_running(open_tab: OpenTab) -> None:
    tab = open_tab()
    tab.type_prompt("Tell me a long story about a river.")
    new_tokens(tab, 200)
    slow_down(tab)
    tab.start()
    tab.wait_for(lambda panel: panel.steps >= 3)
    before = tab.panel().ids

    tab.page.reload()
    tab.wait_for(lambda panel: panel.steps >= len(before) + 2)

    after = tab.panel()
    assert after.ids[: len(before)] == before
    assert "run=" in tab.page.url
    tab.press("Stop")
    finish(tab)


def test_stop_frees_the_engine_for_the_next_run(open_tab: OpenTab) -> None:
    tab = open_tab()
    tab.type_prompt("Tell me a long story about a mountain.")
    new_tokens(tab, 400)
    slow_down(tab)
    tab.start()
    tab.wait_for(lambda panel: panel.steps >= 2)

    tab.press("Stop")
    finish(tab)
    assert tab.panel().state == "stopped"

    tab.type_prompt("Hi!")
    new_tokens(tab, 4)
    tab.start()
    tab.wait_for(lambda panel: panel.state == "done" and len(panel.ids) <= 4)


def test_reruns_do_not_remount_the_panel_or_disturb_the_run(open_tab: OpenTab) -> None:
    tab = open_tab()
    tab.type_prompt("Tell me a long story about the sea.")
    new_tokens(tab, 300)
    slow_down(tab)
    tab.start()
    tab.wait_for(lambda panel: panel.steps >= 2)
    mounts, steps = tab.panel().mounts, tab.panel().steps

    for prompt in ("one", "two", "three"):
        tab.type_prompt(prompt)
    tab.wait_for(lambda panel: panel.steps >= steps + 3)

    assert tab.panel().mounts == mounts
    assert tab.panel().state == "running"
    tab.press("Stop")
    finish(tab)


def test_without_a_websocket_the_next_run_is_drawn_too(open_tab: OpenTab, tmp_path: Path) -> None:
    """The page kept the first run's cursor, so the second stayed blank."""
    tab = open_tab()
    tab.page.route_web_socket("**/live/run/**", lambda socket: socket.close())
    tab.page.reload()  # sockets that were there before are not cut off
    tab.type_prompt("Tell me a long story about the rain.")
    new_tokens(tab, 8)
    tab.start()
    finish(tab)
    assert len(tab.panel().ids) > 1

    tab.type_prompt("Name three colours.")
    tab.start()
    finish(tab)

    assert tab.panel().ids == saved_run(tab, tmp_path)["outputs"][0]["token_ids"]


def test_a_second_session_waits_in_the_queue_and_sees_its_place(open_tab: OpenTab) -> None:
    first, second = open_tab(), open_tab()
    first.type_prompt("Tell me a long story about the wind.")
    new_tokens(first, 400)
    slow_down(first)
    first.start()
    first.wait_for(lambda panel: panel.steps >= 1)

    second.type_prompt("Hi!")
    new_tokens(second, 3)
    second.start()
    second.wait_for(lambda panel: panel.state == "queued")
    second.page.get_by_text("queue").first.wait_for()
    first.press("Stop")

    second.wait_for(lambda panel: panel.state == "done" and len(panel.ids) <= 3)
    first.wait_for(lambda panel: panel.state == "stopped")


def test_a_closed_tab_ends_its_run_after_the_grace_time(open_tab: OpenTab) -> None:
    tab = open_tab()
    tab.type_prompt("Tell me a very long story about the moon.")
    new_tokens(tab, 2000)
    slow_down(tab)
    tab.start()
    tab.wait_for(lambda panel: panel.steps >= 1)
    tab.page.wait_for_url("**run=*")
    address = tab.page.url.rpartition("/")[2]
    tab.page.close()

    later = open_tab()
    later.type_prompt("Hi!")
    new_tokens(later, 2)
    later.start()
    later.wait_for(lambda panel: panel.state == "done" and len(panel.ids) <= 2)
    back = open_tab(address)
    back.wait_for(lambda panel: panel.state == "abandoned")


def test_markup_in_a_prompt_is_shown_as_text(open_tab: OpenTab) -> None:
    tab = open_tab()
    tab.type_prompt('<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>')
    new_tokens(tab, 4)
    tab.start()
    finish(tab)

    assert tab.page.evaluate("window.hacked") is None
    assert tab.complaints == []


def test_nothing_is_wider_than_the_window(open_tab: OpenTab) -> None:
    tab = open_tab()
    tab.type_prompt("Name two rivers.")
    new_tokens(tab, 4)
    tab.start()
    tab.wait_for(lambda panel: panel.state == "done" and len(panel.ids) <= 4)

    fit_every_width(tab)


def test_nothing_is_wider_than_a_phone_that_opens_the_page(open_tab: OpenTab) -> None:
    fit_every_width(open_tab(width=390), [390])


# From here on notes every element of a picture that is taken away, and every picture or line of
# words that was there in one animation frame and is blank in the next.
WATCH = """(root) => {
  const seen = (window.__seen = { frames: 0, removed: [], blank: [] });
  const picture = '.panel, .chart, .vega, canvas, .figure, .caption';
  new MutationObserver((records) => {
    for (const { removedNodes } of records)
      for (const node of removedNodes)
        if (node.nodeType === 1 && (node.matches(picture) || node.querySelector(picture)))
          seen.removed.push(node.className || node.tagName);
  }).observe(root, { childList: true, subtree: true });
  const small = document.createElement('canvas');
  small.width = small.height = 24;
  const pen = small.getContext('2d', { willReadFrequently: true });
  const isInked = (canvas) => {
    pen.clearRect(0, 0, 24, 24);
    pen.drawImage(canvas, 0, 0, 24, 24);
    return pen.getImageData(0, 0, 24, 24).data.some((part) => part > 0);
  };
  const before = new Map();
  const look = () => {
    seen.frames += 1;
    const now = new Map();
    // A tail has only what Vega's picture under it lacks, at times nothing.
    for (const canvas of root.querySelectorAll('canvas:not(.tail)'))
      if (canvas.width && canvas.clientWidth) now.set(canvas, isInked(canvas));
    for (const words of root.querySelectorAll('.caption, .figure .value, .text'))
      now.set(words, words.textContent !== '');
    for (const [node, isThere] of now)
      if (before.get(node) && !isThere) seen.blank.push(node.className || node.tagName);
    for (const [node, isThere] of now) before.set(node, isThere);
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""


def test_no_picture_is_taken_away_or_goes_blank_while_a_run_goes(open_tab: OpenTab) -> None:
    tab = open_tab()
    tab.type_prompt("Tell me a long story about the sea.")
    new_tokens(tab, 40)
    tab.start()
    tab.wait_for(lambda panel: panel.steps >= 4)
    tab.page.locator(".tbt").evaluate(WATCH)
    mounts, steps = tab.panel().mounts, tab.panel().steps

    finish(tab)

    seen = tab.page.evaluate("window.__seen")
    assert tab.panel().mounts == mounts
    assert len(tab.panel().ids) == 40
    assert seen["frames"] > 0
    assert steps < 40
    assert seen["removed"] == []
    assert seen["blank"] == []
    assert tab.complaints == []
