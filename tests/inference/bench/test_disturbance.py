"""The bench of disturbed steps: one thread and one core are exact at any load."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from inference.bench.disturbance import counted_by_lost, marked_share
from inference.engine.run_delay import why_unknown
from tests.inference.figures.scripted_steps import decode, prefill


@pytest.mark.skipif(sys.platform != "linux", reason="run delays are counted by Linux")
def test_the_delay_counted_is_what_a_thread_lost_to_a_busy_loop() -> None:
    if why_unknown():
        pytest.skip(why_unknown())

    assert counted_by_lost() == pytest.approx(1.0, abs=0.05)


def test_the_share_is_that_of_decode_steps() -> None:
    bad = replace(decode(1.0, "a"), run_delay_s=0.5)
    clean = replace(decode(1.0, "a"), run_delay_s=0.0)

    assert marked_share([replace(prefill(1.0, "a"), run_delay_s=0.5), bad, clean]) == 0.5
