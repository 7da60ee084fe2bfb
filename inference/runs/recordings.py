"""What comes with the program so that every page has something to see at the first visit.

Runs as run files, and one file with what was measured of a machine: roofs, a sweep over tokens, and
one over batches. All of it was made by ``python -m inference record``, and carries the machine and
the date. No torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from inference.records.batches import BatchSweep
from inference.records.errors import RunFileError
from inference.records.rooflines import MeasuredCeilings, TokenSweep
from inference.records.run import RunTrace
from inference.runs.run_file import read, write
from inference.storage.named_files import write_named_file

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "recordings"
RUN_SUFFIX = ".json.gz"
MEASUREMENTS_FILE = "measurements.json"
FIRST_RUN = "why-is-decode-slow"
COMPARISON = "three-prompts"
BATCH = "four-requests"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """What was measured of one machine with one model.

    Attributes:
        batches: Holds the model's shape too.
    """

    ceilings: MeasuredCeilings
    tokens: TokenSweep
    batches: BatchSweep


@cache
def recorded_runs(name: str) -> tuple[RunTrace, ...]:
    """Return the runs of a recording; none where the program has none of that name."""
    path = FOLDER / f"{name}{RUN_SUFFIX}"
    return read(path) if path.exists() else ()


def recording_names() -> tuple[str, ...]:
    """Return the names of all recordings of runs."""
    return tuple(
        sorted(path.name.removesuffix(RUN_SUFFIX) for path in FOLDER.glob(f"*{RUN_SUFFIX}"))
    )


def numbered_runs() -> dict[str, RunTrace]:
    """Return every recorded run by its name: the recording's, with a number from the second on."""
    return {
        f"{name}-{number}" if number > 1 else name: trace
        for name in recording_names()
        for number, trace in enumerate(recorded_runs(name), start=1)
    }


@cache
def recorded_measurements() -> Measurements | None:
    """Return what was measured of the recording's machine; None where the program has none."""
    path = FOLDER / MEASUREMENTS_FILE
    return read_measurements(path) if path.exists() else None


def read_measurements(path: Path) -> Measurements:
    """Return the measurements of a file.

    Raises:
        RunFileError: It is damaged.
    """
    try:
        return _MEASUREMENTS.validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        msg = f"{path} holds no measurements of this program; make it again"
        raise RunFileError(msg) from error


def write_measurements(measured: Measurements, folder: Path) -> None:
    """Write measurements in one stroke.

    Raises:
        OSError: They cannot be written.
    """
    write_named_file(folder / MEASUREMENTS_FILE, _MEASUREMENTS.dump_json(measured, indent=1))


def write_runs(traces: tuple[RunTrace, ...], name: str, folder: Path) -> None:
    """Write a recording of runs.

    Raises:
        InputError: It cannot be written.
    """
    write(traces, folder / f"{name}{RUN_SUFFIX}")


_MEASUREMENTS = TypeAdapter(Measurements)
