"""The roofline and weight-reuse panels and the Roofline page in a real browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.actions import OpenTab, fit_every_width, new_tokens
from tests.browser.conftest import Server, Tab

pytestmark = pytest.mark.browser


def start(tab: Tab, prompt: str, tokens: int) -> None:
    tab.type_prompt(prompt)
    new_tokens(tab, tokens)
    tab.start()
    tab.page.wait_for_url("**run=*")
    expect(tab.page.get_by_text("A recorded run")).to_have_count(0)


def expect_text(place: Locator, text: str) -> None:
    expect(place).to_contain_text(text)


def test_a_run_has_points_on_the_roofline_and_its_numbers_in_the_weights_line(
    open_tab: OpenTab,
) -> None:
    tab = open_tab()
    start(tab, "Name two rivers.", 6)
    roofline = tab.page.locator(".panel-roofline").last  # a panel that goes may still be there
    weights = tab.page.locator(".panel-weights").last

    expect_text(roofline.locator(".caption"), "Decode: ")
    expect_text(roofline.locator(".caption"), "FLOP/byte")
    expect(roofline.locator("canvas").first).to_be_visible()
    expect_text(weights.locator(".reuse-decode"), "2 \u00b7 1 \u00b7 576 \u00b7 1,536")
    expect_text(weights.locator(".reuse-decode"), "each weight used once")
    prefill = weights.locator(".reuse-prefill").inner_text()
    assert "2 \u00b7 " in prefill
    assert "used once" not in prefill
    assert tab.complaints == []


def test_another_matrix_puts_other_numbers_into_the_line(open_tab: OpenTab) -> None:
    tab = open_tab()
    start(tab, "Name two rivers.", 4)
    weights = tab.page.locator(".panel-weights").last
    expect_text(weights.locator(".reuse-decode"), "576 \u00b7 1,536")

    wanted = weights.locator("option", has_text="self_attn.k_proj")
    wanted.wait_for(state="attached")
    weights.get_by_label("Weight matrix").select_option(label=wanted.inner_text())

    expect_text(weights.locator(".reuse-decode"), "2 \u00b7 1 \u00b7 576 \u00b7 192")


def test_linear_operations_alone_are_timed_once_somebody_looks_at_them(open_tab: OpenTab) -> None:
    tab = open_tab()
    start(tab, "Name two rivers.", 4)
    roofline = tab.page.locator(".panel-roofline").last  # a panel that goes may still be there

    expect_text(roofline.locator(".caption"), "FLOP/byte")

    roofline.get_by_role("button", name="linear").click()
    expect_text(roofline.locator(".caption"), "No step of this run was timed in parts")
    start(tab, "Name two lakes.", 10)

    expect_text(roofline.locator(".caption"), "Decode: ")
    expect_text(roofline.locator(".caption"), "FLOP/byte")
    assert tab.complaints == []


def test_the_roofs_can_be_measured_and_the_measurement_stopped(open_tab: OpenTab) -> None:
    tab = open_tab()
    tab.page.get_by_role("link", name="Roofline").click()
    tab.press("Measure")
    expect(tab.page.get_by_text("Measuring:")).to_be_visible()

    tab.press("Stop")

    expect(tab.page.get_by_text("stopped; nothing was changed").first).to_be_visible()


def test_the_roofline_page_is_never_wider_than_the_window(
    open_page: Callable[..., Tab], server: Server
) -> None:
    tab = open_page()
    tab.page.goto(f"{server.url}/roofline")
    for name in ("This machine's roofs", "Where the bottleneck turns", "What if:"):
        tab.page.get_by_role("tab", name=name).click()
        fit_every_width(tab)
