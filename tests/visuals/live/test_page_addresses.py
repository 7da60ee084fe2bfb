"""A page's own address gives Streamlit's page, told where its server is."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from visuals.live.check_route import CHECK_PAGE
from visuals.live.page_addresses import PAGES, SCRIPT, page_routes

MAIN = Path(__file__).resolve().parents[3] / "visuals" / "pages" / "main.py"


def test_every_page_of_the_navigation_but_the_default_one_has_an_address() -> None:
    addresses: list[str] = []
    named = {"CHECK_PAGE": CHECK_PAGE}
    for node in ast.walk(ast.parse(MAIN.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "st.Page":
            told = {word.arg: ast.unparse(word.value) for word in node.keywords}
            if told.get("default") != "True":
                addresses.append(named.get(told["url_path"], told["url_path"].strip("'")))

    assert sorted(addresses) == sorted(PAGES)


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
