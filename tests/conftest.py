"""Fixtures that several tests share, limits and workers.

Nothing here needs a network but the default model's fetch. `make test` gives the tests to several
workers: what drives the browser goes to two of them, golden tests to a third, and every other file
to the next that is free, so that the fixtures of a file are made once.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inference.records.status import LoadStage

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

os.environ["HF_HUB_OFFLINE"] = "1"
# Threads that wait for each other sleep: spinning, they keep a processor from the other worker.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# Seconds that a test of a slow kind may take; all others have the limit in pyproject.toml.
LIMITS_S = {"gpu": 900, "browser": 300, "golden": 300}
# Folders whose files share a server or a large model, so that one worker takes them all; the
# longest first. The other files that drive a browser come next, before any that does not: a
# worker closes its browser when it leaves them.
BROWSER = "tests/browser/"
TOGETHER = ("tests/browser/pages/", "tests/browser/live/", "tests/golden/")


@pytest.fixture(autouse=True)
def memory_limit_stays() -> Iterator[None]:
    """Fail a test that leaves its worker, and so every test after it, with less memory to take."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    yield
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@pytest.fixture(scope="session")
def default_model_folder() -> Path:
    """Folder of the default model, fetched the first time it is asked for."""
    from inference.models.fetch import fetch_default  # noqa: PLC0415  not on every GPU machine

    stages: list[LoadStage] = []
    return fetch_default(stages.append)


@pytest.fixture(scope="session")
def tiny_model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a two-layer random Llama in float64, with grouped heads and a tokenizer."""
    from tests.tiny_model import save_tiny_model  # noqa: PLC0415  torch, only where it is needed

    return save_tiny_model(tmp_path_factory.mktemp("models") / "tiny-llama")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that takes the long tests along."""
    parser.addoption("--long", action="store_true", help="run the tests marked long as well")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give slow kinds of tests their limits, and begin with those that take longest."""
    if not config.getoption("--long"):
        left_out = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    for item in items:
        limit_s = next((LIMITS_S[kind] for kind in LIMITS_S if item.get_closest_marker(kind)), None)
        if limit_s is not None and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(limit_s))
    items.sort(key=lambda item: (group_of(item.nodeid), BROWSER not in item.nodeid))


def group_of(nodeid: str) -> int:
    """Return which of the files that stay together a test is in; one more where in none."""
    groups = (index for index, starts in enumerate(TOGETHER) if nodeid.startswith(starts))
    return next(groups, len(TOGETHER))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say beside a limit that was reached how busy the machine was."""
    report = yield
    if report.failed and "from pytest-timeout" in report.longreprtext:
        load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
        report.sections.append(
            (
                "time limit",
                f"{item.nodeid} did not end. The machine's load over 1, 5 and 15 minutes is "
                f"{load} on {os.cpu_count()} processors: far above that number it may only have "
                "been slow, else it hangs where the traceback ends.",
            )
        )
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:  # noqa: ANN401  xdist's own type is private
    """Return a scheduler that keeps a file, and files that belong together, on one worker."""
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415  only where there are workers

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            group = group_of(nodeid)
            return str(group) if group < len(TOGETHER) else nodeid.partition("::")[0]

    config.option.loadscopereorder = False  # the order of collection: longest first
    return ByFile(config, log)
