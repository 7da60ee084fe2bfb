"""The routes of the panel's modules: one version under one address, kept for good."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urljoin

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from visuals.panel.modules import modules
from visuals.panel.routes import panel_routes, scripts_address, terms_address, vega_address
from visuals.words.terms import TERMS


@pytest.fixture(params=["/", "/behind/a/proxy/"])
def client(request: pytest.FixtureRequest) -> Iterator[TestClient]:
    app = Starlette(routes=[Mount(request.param, routes=panel_routes())])
    with TestClient(app, base_url=f"http://testserver{request.param}") as test_client:
        yield test_client


def test_the_entries_and_all_that_they_import_come_from_one_versions_folder(
    client: TestClient,
) -> None:
    seen: set[str] = set()
    entries = ("main.js", "loading_line.js", "check_badge.js", "server_line.js", "terms.js")
    waiting = [f"{scripts_address()}/0/{entry}" for entry in entries]
    while waiting:
        address = waiting.pop()
        if address in seen:
            continue
        seen.add(address)
        answer = client.get(address)
        assert answer.status_code == 200, address
        assert answer.headers["content-type"].startswith("text/javascript")
        assert "immutable" in answer.headers["cache-control"]
        imported = re.findall(r'^(?:import|\} from) .*?"(\./[^"]+)";', answer.text, re.MULTILINE)
        waiting.extend(urljoin(address, name) for name in imported)

    assert {address.rpartition("/")[0] for address in seen} == {f"{scripts_address()}/0"}
    assert {address.rpartition("/")[2] for address in seen} == set(modules())


def test_another_attempt_has_other_addresses_with_the_same_modules(client: TestClient) -> None:
    first, second = (client.get(f"{scripts_address()}/{attempt}/follow.js") for attempt in (0, 1))

    assert first.content == second.content == modules()["follow.js"]


@pytest.mark.parametrize(
    "address",
    [
        f"{scripts_address()[:-1]}!/0/main.js",
        f"{scripts_address()}/0/loader.js",
        f"{scripts_address()}/0/types.d.ts",
        f"{scripts_address()}/0/nothing.js",
        f"{scripts_address()}/x/main.js",
        "live/vega/0.0.0.js",
        "live/terms/0.json",
    ],
)
def test_what_is_not_of_this_version_is_nowhere(client: TestClient, address: str) -> None:
    answer = client.get(address)

    assert answer.status_code == 404
    assert "immutable" not in answer.headers.get("cache-control", "")


def test_the_chart_library_is_served_from_here(client: TestClient) -> None:
    answer = client.get(vega_address())

    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/javascript")
    assert "immutable" in answer.headers["cache-control"]
    assert b"vegaEmbed" in answer.content


def test_the_terms_come_with_the_titles_of_their_chapters(client: TestClient) -> None:
    answer = client.get(terms_address())

    assert "immutable" in answer.headers["cache-control"]
    file = answer.json()
    assert [term["key"] for term in file["terms"]] == [term.key for term in TERMS]
    assert {term["chapter"] for term in file["terms"]} <= set(file["chapters"])
