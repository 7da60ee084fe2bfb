"""A page's own address gives Streamlit's page, told where its server is."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from visuals.live.page_addresses import PAGES, SCRIPT, page_routes


@pytest.mark.parametrize("page", PAGES)
def test_the_script_stands_before_all_others(page: str) -> None:
    with TestClient(Starlette(routes=page_routes())) as client:
        answer = client.get(f"/{page}")

    assert answer.status_code == 200
    assert answer.text.index(SCRIPT) < answer.text.index('<script type="module"')
    assert answer.headers["cache-control"] == "no-cache"


def test_what_lies_below_a_page_is_not_the_page() -> None:
    with TestClient(Starlette(routes=page_routes())) as client:
        assert client.get("/roofline/_stcore/health").status_code == 404
