"""The script that Streamlit runs, and what else imports it."""

from __future__ import annotations

import multiprocessing
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType

import pytest
from streamlit.runtime.scriptrunner_utils import script_requests

from visuals import pages

MAIN = Path(pages.__file__).with_name("main.py")
PATIENCE_S = 60.0


def say_who_merges(connection: Connection) -> None:
    """Say which module merges requests here: ours once the page's script has done its work."""
    connection.send(script_requests._coalesce_widget_states.__module__)


def test_a_spawned_process_does_not_run_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """While Streamlit runs a script, that script is the main module which a child imports too."""
    script = ModuleType("__main__")
    script.__file__ = str(MAIN)
    monkeypatch.setitem(sys.modules, "__main__", script)
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=say_who_merges, args=(theirs,))

    process.start()

    assert ours.poll(PATIENCE_S)
    assert ours.recv() == script_requests.__name__
    process.join(PATIENCE_S)
    assert process.exitcode == 0
