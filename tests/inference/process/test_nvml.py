"""The real pynvml against a stand-in driver library, built here from C and scripted by scenario.

Each scenario runs in a process of its own, since a process loads its driver once.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from inference.process.nvml import reason_for
from inference.process.nvml_counters import GPU_READINGS, throttle_words

ROOT = Path(__file__).parents[3]
COMPILER = shutil.which("gcc") or shutil.which("cc")
UUID = "11111111-2222-3333-4444-555555555555"
PART_UUID = "66666666-7777-8888-9999-000000000000"
READ_AND_REPORT = """
import json, os, sys
import pynvml
for name in os.environ.get("LACKING", "").split():
    delattr(pynvml, name)
from inference.models.memory_limit import MemoryLimit
from inference.process.telemetry import Sources
gpus = json.loads(sys.argv[1])
sources = Sources(gpus, MemoryLimit())
samples = [sources.read() for _ in range(int(sys.argv[2]))]
print(json.dumps({"samples": samples, "reasons": sources.reasons()}))
sys.stdout.flush()
sources.close()
"""

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a process saw: readings by name for each sample, and the reasons after the last."""

    samples: list[dict[str, Any]]
    reasons: dict[str, str]
    rest: str


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Return folders that each hold a build of the stand-in."""
    builds = {"usual": (), "old": ("-DOLD_DRIVER",), "unified": ("-DUNIFIED_MEMORY",)}
    folders: dict[str, Path] = {}
    for name, flags in builds.items():
        folders[name] = tmp_path_factory.mktemp(name)
        source = Path(__file__).with_name("nvml_stand_in.c")
        library = folders[name] / "libnvidia-ml.so.1"
        command = [str(COMPILER), "-Wall", "-Werror", "-shared", "-fPIC", *flags]
        subprocess.run([*command, "-o", str(library), str(source)], check=True)
    return folders


def read_gpu(
    driver: Path | None,
    gpu: int | str | None = 0,
    *others: int | str,
    samples: int = 1,
    script: str = "",
    settings: Mapping[str, str] | None = None,
) -> Report:
    """Return what a new process reads through pynvml from the library in ``driver``.

    ``LACKING`` among the settings holds names that an older pynvml does not have.
    """
    environment = {**os.environ, "NVML_SCRIPT": script, "PYTHONPATH": str(ROOT), **(settings or {})}
    environment["LD_LIBRARY_PATH"] = str(driver) if driver else ""
    gpus = [one for one in (gpu, *others) if one is not None]
    command = [sys.executable, "-c", READ_AND_REPORT, json.dumps(gpus), str(samples)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    line, _, rest = done.stdout.partition("\n")
    report = json.loads(line)
    return Report(samples=report["samples"], reasons=report["reasons"], rest=rest)


@needs_compiler
@pytest.mark.parametrize("gpu", [0, UUID, f"GPU-{UUID}"], ids=["index", "bare uuid", "uuid"])
def test_every_counter_arrives_in_si_units(drivers: Mapping[str, Path], gpu: int | str) -> None:
    report = read_gpu(drivers["usual"], gpu)

    (sample,) = report.samples
    assert report.reasons == {}
    assert {name: sample[name] for name in GPU_READINGS} == {
        "gpu_busy_ratio": 0.75,
        "memory_controller_busy_ratio": 0.5,
        "memory_used_bytes": 3 * 2**30,
        "memory_total_bytes": 8 * 2**30,
        "power_w": 250.5,
        "energy_j": 1025.0,
        "sm_clock_hz": 1.98e9,
        "memory_clock_hz": 2.619e9,
        "temperature_c": 61.0,
        "throttle_reasons": ["power limit"],
        "pcie_tx_bytes_per_s": 1.5e6,
        "pcie_rx_bytes_per_s": 2.5e6,
        "other_programs": 1,
    }


@needs_compiler
def test_a_model_on_several_gpus_has_the_readings_of_all_of_them(
    drivers: Mapping[str, Path],
) -> None:
    """Energy, power and memory were those of the first GPU."""
    report = read_gpu(drivers["usual"], 0, UUID)

    (sample,) = report.samples
    assert report.reasons == {}
    assert {name: sample[name] for name in GPU_READINGS} == {
        "gpu_busy_ratio": 0.75,
        "memory_controller_busy_ratio": 0.5,
        "memory_used_bytes": 6 * 2**30,
        "memory_total_bytes": 16 * 2**30,
        "power_w": 501.0,
        "energy_j": 2075.0,  # the stand-in counts on with each question
        "sm_clock_hz": 1.98e9,
        "memory_clock_hz": 2.619e9,
        "temperature_c": 61.0,
        "throttle_reasons": ["power limit"],
        "pcie_tx_bytes_per_s": 3e6,
        "pcie_rx_bytes_per_s": 5e6,
        "other_programs": 1,
    }


@needs_compiler
def test_a_sum_that_lacks_one_gpus_part_is_not_given(drivers: Mapping[str, Path]) -> None:
    script = "nvmlDeviceGetPowerUsage=3@1"
    report = read_gpu(drivers["usual"], 0, UUID, script=script)

    assert "power_w" not in report.samples[0]
    assert report.samples[0]["energy_j"] == 2075.0
    assert report.reasons == {"power_w": "GPU 2: not supported by this GPU"}


@needs_compiler
def test_gpus_that_all_lack_a_reading_say_it_once(drivers: Mapping[str, Path]) -> None:
    report = read_gpu(drivers["usual"], 0, UUID, script="nvmlDeviceGetPowerUsage=3")

    assert report.reasons == {"power_w": "not supported by this GPU"}


@needs_compiler
def test_a_container_that_hides_this_program_cannot_tell_of_others(
    drivers: Mapping[str, Path],
) -> None:
    report = read_gpu(drivers["usual"], settings={"NVML_FOREIGN": "1"})

    assert report.samples[0]["other_programs"] is None
    assert report.reasons == {
        "other_programs": "the NVIDIA driver does not list this program, as in a container"
    }


@needs_compiler
def test_slow_pcie_counters_are_asked_in_one_sample_of_ten(drivers: Mapping[str, Path]) -> None:
    report = read_gpu(drivers["usual"], samples=11)

    asked = ["pcie_tx_bytes_per_s" in sample for sample in report.samples]
    assert asked == [True] + [False] * 9 + [True]
    assert report.reasons == {}


@needs_compiler
def test_the_energy_counter_goes_on_counting(drivers: Mapping[str, Path]) -> None:
    report = read_gpu(drivers["usual"], samples=3)

    assert [sample["energy_j"] for sample in report.samples] == [1025.0, 1050.0, 1075.0]


@needs_compiler
@pytest.mark.parametrize(
    ("code", "words"),
    [
        (3, "not supported by this GPU"),
        (4, "no permission"),
        (10, "did not answer in time"),
        (17, "the operating system or the container blocks it"),
        (777, "answered with error 777"),
    ],
)
def test_a_counter_that_fails_costs_its_own_readings_only(
    drivers: Mapping[str, Path], code: int, words: str
) -> None:
    report = read_gpu(drivers["usual"], script=f"nvmlDeviceGetPowerUsage={code}", samples=2)

    assert set(report.reasons) == {"power_w"}
    assert words in report.reasons["power_w"]
    assert [sample["gpu_busy_ratio"] for sample in report.samples] == [0.75] * 2
    assert [sample.get("power_w") for sample in report.samples] == [None] * 2


@needs_compiler
def test_a_gpu_that_falls_off_mid_run_leaves_its_reason_and_the_machines_readings(
    drivers: Mapping[str, Path],
) -> None:
    report = read_gpu(drivers["usual"], script="*=15@2", samples=4)

    first, second, third, fourth = report.samples
    assert first["power_w"] == second["power_w"] == 250.5
    assert not set(GPU_READINGS) & {*third, *fourth}
    assert fourth["cpu_busy_ratio"] >= 0
    assert report.reasons == dict.fromkeys(
        GPU_READINGS, "the GPU is lost: it does not answer the driver"
    )


@needs_compiler
def test_an_old_driver_lacks_what_it_cannot_tell_and_answers_by_older_names(
    drivers: Mapping[str, Path],
) -> None:
    report = read_gpu(drivers["old"])

    assert report.reasons == {"energy_j": "this NVIDIA driver is too old to report it"}
    assert report.samples[0]["throttle_reasons"] == ["temperature, by the hardware"]


@needs_compiler
def test_a_gpu_without_memory_of_its_own_shows_the_machines(drivers: Mapping[str, Path]) -> None:
    report = read_gpu(drivers["unified"])

    (sample,) = report.samples
    assert report.reasons == {}
    assert 0 < sample["memory_used_bytes"] < sample["memory_total_bytes"]
    assert sample["memory_total_bytes"] != 8 * 2**30


@needs_compiler
def test_power_is_that_of_the_moment_where_the_driver_knows_it(
    drivers: Mapping[str, Path],
) -> None:
    """The mean of the last second was read on every GPU."""
    report = read_gpu(drivers["usual"], settings={"NVML_INSTANT": "1"})

    assert report.samples[0]["power_w"] == 310.25
    assert report.reasons == {}


@needs_compiler
@pytest.mark.parametrize(
    "lacking",
    ["nvmlDeviceGetFieldValues", "NVML_FI_DEV_POWER_INSTANT"],
)
def test_power_is_the_usual_reading_with_an_older_package(
    drivers: Mapping[str, Path], lacking: str
) -> None:
    report = read_gpu(drivers["usual"], settings={"NVML_INSTANT": "1", "LACKING": lacking})

    assert report.samples[0]["power_w"] == 250.5


@needs_compiler
@pytest.mark.parametrize("driver", ["usual", "old"])
def test_an_older_package_asks_for_throttling_by_its_older_name(
    drivers: Mapping[str, Path], driver: str
) -> None:
    """An AttributeError used to end all sampling."""
    lacking = {"LACKING": "nvmlDeviceGetCurrentClocksEventReasons"}

    report = read_gpu(drivers[driver], settings=lacking)

    assert report.samples[0]["throttle_reasons"] == ["temperature, by the hardware"]


@needs_compiler
def test_what_an_older_package_cannot_ask_for_is_missing_for_that_reason(
    drivers: Mapping[str, Path],
) -> None:
    lacking = {"LACKING": "nvmlDeviceGetTotalEnergyConsumption nvmlDeviceIsMigDeviceHandle"}

    report = read_gpu(drivers["usual"], samples=2, settings=lacking)

    assert report.reasons == {
        "energy_j": "the installed nvidia-ml-py is too old to ask for it; update the package"
    }
    assert [sample["power_w"] for sample in report.samples] == [250.5] * 2


WHOLE_GPUS = ("power_w", "energy_j", "pcie_tx_bytes_per_s", "pcie_rx_bytes_per_s")
HANDLES = ("memory_used_bytes", "memory_total_bytes", "other_programs")
BUSY = ("gpu_busy_ratio", "memory_controller_busy_ratio")


@needs_compiler
@pytest.mark.parametrize(
    ("gpu", "settings", "left_out"),
    [
        (0, {"NVML_MIG": "1"}, (*WHOLE_GPUS, *HANDLES)),
        (PART_UUID, {}, WHOLE_GPUS),
        (f"MIG-{PART_UUID}", {}, WHOLE_GPUS),
    ],
    ids=["whole gpu of a part", "bare uuid of a part", "uuid of a part"],
)
def test_nothing_of_a_whole_gpu_is_shown_for_a_part_of_it(
    drivers: Mapping[str, Path], gpu: int | str, settings: dict[str, str], left_out: Sequence[str]
) -> None:
    """Power, energy and memory of the whole GPU used to pass for the part's."""
    report = read_gpu(drivers["usual"], gpu, settings=settings)

    reason = "only known for the whole GPU, and this run has a part of it (MIG)"
    not_given = "not reported for a GPU that is split into instances (MIG)"
    assert report.reasons == dict.fromkeys(left_out, reason) | dict.fromkeys(BUSY, not_given)
    assert not set(left_out) & set(report.samples[0])
    assert report.samples[0]["temperature_c"] == 61.0


@needs_compiler
def test_memory_of_a_part_is_its_own(drivers: Mapping[str, Path]) -> None:
    report = read_gpu(drivers["usual"], PART_UUID)

    assert report.samples[0]["memory_used_bytes"] == 3 * 2**30


@needs_compiler
def test_memory_a_split_gpu_does_not_give_is_not_replaced_by_the_machines(
    drivers: Mapping[str, Path],
) -> None:
    script = "nvmlDeviceGetMemoryInfo=3"

    report = read_gpu(drivers["usual"], script=script, settings={"NVML_MIG": "1"})

    assert "memory_used_bytes" not in report.samples[0]
    assert "memory_used_bytes" in report.reasons


@needs_compiler
def test_a_busy_share_out_of_range_is_not_a_reading(drivers: Mapping[str, Path]) -> None:
    report = read_gpu(drivers["usual"], settings={"NVML_BUSY": "4294967295"})

    assert report.samples[0]["gpu_busy_ratio"] is None
    assert report.samples[0]["memory_controller_busy_ratio"] == 0.5
    assert report.reasons == {"gpu_busy_ratio": "the NVIDIA driver gives no valid value"}


@needs_compiler
@pytest.mark.parametrize(
    ("script", "gpu", "words"),
    [
        ("nvmlInitWithFlags=9", 0, "the NVIDIA driver is not loaded"),
        ("nvmlInitWithFlags=18", 0, "differ in version; restart the machine"),
        ("nvmlInitWithFlags=4", 0, "no permission"),
        ("", 3, "the NVIDIA driver knows no such GPU"),
        ("", "00000000-0000-0000-0000-000000000000", "the NVIDIA driver knows no such GPU"),
    ],
)
def test_a_driver_that_refuses_says_why_for_every_gpu_reading(
    drivers: Mapping[str, Path], script: str, gpu: int | str, words: str
) -> None:
    report = read_gpu(drivers["usual"], gpu, script=script)

    assert set(report.reasons) == set(GPU_READINGS)
    assert all(words in reason for reason in report.reasons.values())
    assert report.samples[0]["process_memory_bytes"] > 0


@needs_compiler
def test_a_run_on_the_cpu_leaves_the_gpu_alone_and_shows_the_machines_memory(
    drivers: Mapping[str, Path],
) -> None:
    report = read_gpu(drivers["usual"], None)

    assert set(report.reasons) == set(GPU_READINGS) - {"memory_used_bytes", "memory_total_bytes"}
    assert set(report.reasons.values()) == {"this run does not use the GPU"}
    assert report.samples[0]["memory_total_bytes"] != 8 * 2**30


@needs_compiler
@pytest.mark.parametrize("gpu", [0, 3, None], ids=["gpu run", "no such gpu", "cpu run"])
def test_closing_leaves_the_driver(drivers: Mapping[str, Path], gpu: int | None) -> None:
    report = read_gpu(drivers["usual"], gpu, settings={"NVML_SHUTDOWN_NOTE": "1"})

    assert report.rest == "shut down\n"


@needs_compiler
def test_closing_after_the_gpu_fell_off_is_quiet(drivers: Mapping[str, Path]) -> None:
    report = read_gpu(drivers["usual"], script="*=15 nvmlShutdown=1")

    assert set(report.reasons) == set(GPU_READINGS)


@needs_compiler
def test_a_library_that_is_no_driver_is_said_to_be_missing_or_too_old(tmp_path: Path) -> None:
    library = tmp_path / "libnvidia-ml.so.1"
    empty = tmp_path / "empty.c"
    empty.write_text("int nothing;\n")
    command = [str(COMPILER), "-shared", "-fPIC", "-o", str(library), str(empty)]
    subprocess.run(command, check=True)

    report = read_gpu(tmp_path)

    assert set(report.reasons.values()) == {"this NVIDIA driver is too old to report it"}


@pytest.mark.skipif(Path("/proc/driver/nvidia").exists(), reason="this machine has a driver")
@pytest.mark.parametrize("gpu", [0, None], ids=["gpu run", "cpu run"])
def test_a_machine_without_a_driver_says_so(gpu: int | None) -> None:
    report = read_gpu(None, gpu)

    assert set(report.reasons.values()) == {"no NVIDIA driver on this machine"}
    assert report.samples[0]["cpu_busy_ratio"] >= 0


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        (0x0, ()),
        (0x1, ()),
        (0x4 | 0x20, ("power limit", "temperature, by the driver")),
        (0x8 | 0x10000, ("hardware slowdown", "unknown reason 0x10000")),
    ],
)
def test_throttle_bits_become_words(bits: int, words: tuple[str, ...]) -> None:
    assert throttle_words(bits) == words


def test_reasons_are_sentences_without_codes_where_the_code_is_known() -> None:
    assert reason_for(3) == "not supported by this GPU"
    assert reason_for(12) == "no NVIDIA driver on this machine"
