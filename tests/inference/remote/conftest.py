"""One scripted server for all tests of this folder, forgetful between them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.inference.remote.scripted_server import ScriptedServer, running_server


@pytest.fixture(scope="session")
def shared_server() -> Iterator[ScriptedServer]:
    with running_server() as server:
        yield server


@pytest.fixture
def server(shared_server: ScriptedServer) -> ScriptedServer:
    """Return a server that answers 404 to everything until it is given routes."""
    shared_server.clear()
    return shared_server
