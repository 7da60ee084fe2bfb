"""The sampling thread and the machine's own readings; control groups are folders made here."""

from __future__ import annotations

import logging
from pathlib import Path
from threading import Event, Thread
from threading import enumerate as running_threads

import psutil
import pytest

from inference.models.memory_limit import MemoryLimit
from inference.process.telemetry import MachineReadings, Telemetry
from inference.records.telemetry import TelemetrySample
from tests.doubles import ScriptedClock

LONG_ENOUGH_S = 60.0


class Collector:
    """Keeps samples and tells when there are enough."""

    def __init__(self, wanted: int) -> None:
        self.samples: list[TelemetrySample] = []
        self.enough = Event()
        self.thread_names: set[str] = set()
        self._wanted = wanted

    def take(self, sample: TelemetrySample) -> None:
        """Keep one sample."""
        self.samples.append(sample)
        if len(self.samples) >= self._wanted:
            self.enough.set()


def telemetry_threads() -> list[Thread]:
    """Return the sampling threads that run."""
    return [thread for thread in running_threads() if thread.name == "telemetry"]


def test_samples_carry_the_machines_readings_on_the_runs_zero() -> None:
    collector = Collector(wanted=3)
    clock = ScriptedClock()
    clock.advance(12.5)
    telemetry = Telemetry(clock, collector.take, rate_hz=200)

    telemetry.start(zero_s=10.0)
    assert collector.enough.wait(LONG_ENOUGH_S)
    telemetry.stop()

    sample = collector.samples[-1]
    assert sample.at_s == 2.5
    assert sample.cpu_busy_ratio is not None
    assert 0 <= sample.cpu_busy_ratio <= 1
    assert sample.process_cpu_ratio is not None
    assert sample.process_memory_bytes == pytest.approx(psutil.Process().memory_info().rss, rel=0.5)
    assert sample.memory_total_bytes is not None
    assert 0 < (sample.memory_used_bytes or 0) <= sample.memory_total_bytes


def test_readings_without_a_gpu_have_a_reason_and_no_value() -> None:
    collector = Collector(wanted=1)
    telemetry = Telemetry(ScriptedClock(), collector.take, rate_hz=200)

    telemetry.start(zero_s=0.0)
    assert collector.enough.wait(LONG_ENOUGH_S)
    telemetry.stop()

    unavailable = {missing.reading: missing.reason for missing in telemetry.unavailable()}
    assert {"gpu_busy_ratio", "power_w", "energy_j"} <= set(unavailable)
    assert "memory_used_bytes" not in unavailable
    assert all(getattr(collector.samples[0], reading) is None for reading in unavailable)
    assert all(reason for reason in unavailable.values())


def test_no_sample_comes_after_stop() -> None:
    collector = Collector(wanted=1)
    telemetry = Telemetry(ScriptedClock(), collector.take, rate_hz=500)

    telemetry.start(zero_s=0.0)
    assert collector.enough.wait(LONG_ENOUGH_S)
    telemetry.stop()

    assert telemetry_threads() == []


def test_stopping_what_was_never_started_does_nothing() -> None:
    telemetry = Telemetry(ScriptedClock(), Collector(wanted=1).take)

    telemetry.stop()

    assert telemetry.unavailable() == ()


def test_sampling_can_be_started_again_on_another_zero() -> None:
    clock = ScriptedClock()
    collector = Collector(wanted=1)
    telemetry = Telemetry(clock, collector.take, rate_hz=500)
    telemetry.start(zero_s=0.0)
    assert collector.enough.wait(LONG_ENOUGH_S)
    telemetry.stop()
    collector.enough.clear()
    collector.samples.clear()

    telemetry.start(zero_s=-4.0)
    assert collector.enough.wait(LONG_ENOUGH_S)
    telemetry.stop()

    assert collector.samples[0].at_s == 4.0


def test_a_taker_that_fails_ends_the_sampling_and_leaves_a_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    called = Event()

    def fail(_sample: TelemetrySample) -> None:
        called.set()
        msg = "the queue is closed"
        raise RuntimeError(msg)

    telemetry = Telemetry(ScriptedClock(), fail, rate_hz=500)
    with caplog.at_level(logging.ERROR):
        telemetry.start(zero_s=0.0)
        assert called.wait(LONG_ENOUGH_S)
        telemetry.stop()

    assert {missing.reason for missing in telemetry.unavailable()} == {
        "sampling the machine failed; see the log"
    }
    assert "the queue is closed" in caplog.text


def control_groups(root: Path, membership: str, files: dict[str, str]) -> Path:
    """Return ``root`` with a ``proc`` and a ``sys`` that say this."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(membership)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_a_containers_limit_and_use_are_read_from_its_own_group(tmp_path: Path) -> None:
    root = control_groups(
        tmp_path,
        "0::/\n",
        {
            "memory.max": "1000\n",
            "memory.current": "700\n",
            "memory.stat": "anon 500\ninactive_file 150\n",
        },
    )

    limit = MemoryLimit(root)

    assert limit.total_bytes == 1000
    assert limit.used_bytes() == 550


def test_the_lowest_limit_of_nested_groups_counts(tmp_path: Path) -> None:
    root = control_groups(
        tmp_path,
        "0::/outer/inner\n",
        {
            "outer/inner/memory.max": "max\n",
            "outer/inner/memory.current": "10\n",
            "outer/memory.max": "500\n",
            "outer/memory.current": "300\n",
            "memory.max": "900\n",
        },
    )

    limit = MemoryLimit(root)

    assert (limit.total_bytes, limit.used_bytes()) == (500, 300)


def test_limits_of_the_older_kind_of_group_are_read(tmp_path: Path) -> None:
    root = control_groups(
        tmp_path,
        "9:cpu:/x\n4:memory:/docker/abc\n",
        {
            "memory/memory.limit_in_bytes": "2000\n",
            "memory/memory.usage_in_bytes": "1200\n",
            "memory/memory.stat": "inactive_file 5\ntotal_inactive_file 200\n",
        },
    )

    limit = MemoryLimit(root)

    assert (limit.total_bytes, limit.used_bytes()) == (2000, 1000)


@pytest.mark.parametrize("membership", ["0::/\n", ""], ids=["no limit", "no group"])
def test_without_a_limit_there_is_none(tmp_path: Path, membership: str) -> None:
    limit = MemoryLimit(control_groups(tmp_path, membership, {"memory.max": "max\n"}))

    assert limit.total_bytes is None
    assert limit.used_bytes() is None


def test_a_system_without_control_groups_has_no_limit(tmp_path: Path) -> None:
    assert MemoryLimit(tmp_path).total_bytes is None


def test_memory_is_the_containers_where_it_has_less_than_the_machine(tmp_path: Path) -> None:
    files = {"memory.max": "4096\n", "memory.current": "1024\n"}
    limit = MemoryLimit(control_groups(tmp_path, "0::/\n", files))

    memory = MachineReadings(limit).memory()

    assert memory == {"memory_used_bytes": 1024, "memory_total_bytes": 4096}


def test_memory_is_the_machines_where_the_limit_is_above_it(tmp_path: Path) -> None:
    files = {"memory.max": f"{2**62}\n", "memory.current": "1024\n"}
    limit = MemoryLimit(control_groups(tmp_path, "0::/\n", files))

    memory = MachineReadings(limit).memory()

    assert memory["memory_total_bytes"] == psutil.virtual_memory().total


def test_a_use_that_cannot_be_read_has_a_reason(tmp_path: Path) -> None:
    limit = MemoryLimit(control_groups(tmp_path, "0::/\n", {"memory.max": "4096\n"}))
    machine = MachineReadings(limit)

    memory = machine.memory()

    assert memory == {"memory_used_bytes": None, "memory_total_bytes": 4096}
    assert machine.reasons == {"memory_used_bytes": "the operating system does not report it"}
