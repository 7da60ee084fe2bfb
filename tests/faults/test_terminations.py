"""A command that is terminated, as by a system that shuts down."""

from __future__ import annotations

import os
import signal

import pytest

from inference.__main__ import take_terminations


def test_a_termination_is_taken_as_an_interruption() -> None:
    former = signal.getsignal(signal.SIGTERM)
    try:
        take_terminations()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, former)
