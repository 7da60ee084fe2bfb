"""Fixtures of the engine process that several files share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from inference.process.messages import Reply
from tests.inference.process.host_under_test import Tell, generate, host_with


@pytest.fixture(scope="session")
def loaded(tiny_model_folder: Path) -> Iterator[tuple[Tell, list[Reply]]]:
    """Yield a way to send a host with a tiny model a command, and what it said on loading."""
    with host_with(tiny_model_folder) as (tell, replies):
        tell(generate())
        yield tell, replies
