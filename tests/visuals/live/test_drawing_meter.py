"""The main thread's time for each frame, from readings that grow."""

from __future__ import annotations

import pytest

from visuals.live.drawing_meter import LEAST_FRAMES, ms_per_frame


def test_the_second_half_of_a_run_counts_and_not_its_beginning() -> None:
    early = [(frames, 0.5 + 0.1 * frames) for frames in range(10)]
    late = [(frames, early[-1][1] + 0.012 * (frames - 9)) for frames in range(10, 21)]

    assert ms_per_frame([*early, *late]) == pytest.approx(12.0)


def test_few_frames_tell_nothing() -> None:
    assert ms_per_frame([]) is None
    assert ms_per_frame([(0, 0.0), (LEAST_FRAMES, 0.1)]) is None
