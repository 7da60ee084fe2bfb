"""The viewers' link: the key for watching, and an address that others can reach."""

from __future__ import annotations

import pytest

from visuals.live import viewer_link as module
from visuals.live.access import AccessKeys, Role
from visuals.live.viewer_link import viewer_link
from visuals.words.presenter import FOR_A_ROOM

KEYS = AccessKeys("correct-horse-battery")
KEY = f"key={KEYS.watch}&"


@pytest.mark.parametrize(
    ("page", "url"),
    [
        ("http://192.168.1.9:8501", "http://192.168.1.9:8501/"),
        ("http://192.168.1.9:8501/live", "http://192.168.1.9:8501/"),
        ("https://lab.example/tokens/live", "https://lab.example/tokens/"),
        ("http://localhost:8501/live", "http://10.0.0.7:8501/"),
        ("http://[::1]:8501/", "http://10.0.0.7:8501/"),
    ],
)
def test_the_link_is_one_that_others_reach(
    page: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "own_address", lambda _address: "10.0.0.7")

    link = viewer_link(page, KEYS, "0.0.0.0")

    assert link.url == f"{url}?{KEY}watch=1"
    assert link.note == ""
    assert KEYS.role_of_key(KEYS.watch) is Role.WATCH
    assert KEYS.operate not in link.url


def test_behind_a_proxy_a_server_on_loopback_is_reached_by_others() -> None:
    link = viewer_link("https://lab.example/tokens/", KEYS, "127.0.0.1")

    assert link.url == f"https://lab.example/tokens/?{KEY}watch=1"
    assert link.note == ""


def test_on_loopback_it_says_what_to_do() -> None:
    link = viewer_link("http://127.0.0.1:8501/", None, "127.0.0.1")

    assert link.url == "http://127.0.0.1:8501/?watch=1"
    assert link.note == FOR_A_ROOM
    assert "make run ADDRESS=0.0.0.0" in link.note
