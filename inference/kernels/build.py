"""The decode kernels as a loaded library: compiled once for this processor, kept, and checked.

Weights of each dtype have a library of their own, made of one source when it is first wanted.

The C source beside this file is compiled the first time it is needed (``compiler``), into the
user's cache folder (``kept_library``), under a name made of the source, the options and the
processor. A library is used only if its structures are those of its callers (``abi``) and its
thread pool is torch's. Where any of this fails, a sentence says why and nothing is lost but speed.

Whether the pool is shared is asked of the pool itself: the library sets the number of threads to
another one, torch must then report that number, and it is set back. A second runtime with as many
threads, which would compete with torch's for the cores, does not pass. The number belongs to the
calling thread, so nothing else sees the change.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import re
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

import torch

from inference.kernels.abi import BLOCKS, NUMBER_FORMATS, check_agreement, declare
from inference.kernels.compiler import OPTIONS, SOURCE, compile_library, source_parts
from inference.kernels.kept_library import kept_library
from inference.kernels.unavailable import UnavailableError
from inference.records.errors import InputError, first_line
from inference.storage.folders import CACHE_VARIABLE, cache_folder

PROCESSORS = Path("/proc/cpuinfo")
NEEDED_FLAGS = {"AVX2": "avx2", "FMA": "fma"}
HALF_FLAGS = {"F16C": "f16c"}  # beside them, for float16 and for scales in it
DTYPES = tuple(name for name in NUMBER_FORMATS if name not in BLOCKS)
X86 = frozenset({"x86_64", "amd64"})
# Source: the ELF specification, e_ident and e_machine, and the x86-64 ABI, EM_X86_64.
X86_64_ELF = (b"\x7fELF\x02\x01", (62).to_bytes(2, "little"))
MACHINE_AT = 18


@cache
def kernel_library(numbers: str = "float32") -> ctypes.CDLL:
    """Return the library for a format of weights, compiled when none is kept.

    Args:
        numbers: Of ``NUMBER_FORMATS``.

    Raises:
        UnavailableError: The processor, the compiler, the cache folder or the thread pool does not
            allow it.
    """
    check_processor(numbers)
    try:
        folder = cache_folder("kernels")
    except InputError as error:
        raise UnavailableError(str(error)) from error
    return opened(compiled(folder, format_options(numbers)), numbers)


def number_format(dtype: torch.dtype) -> str:
    """Return the kernels' name of a dtype.

    Raises:
        UnavailableError: There are no kernels for it.
    """
    name = str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        msg = f"the kernels are for {', '.join(DTYPES)}, not {name}"
        raise UnavailableError(msg)
    return name


def format_options(numbers: str, options: tuple[str, ...] = OPTIONS) -> tuple[str, ...]:
    """Return what the source is compiled with for weights, keys and values of a format."""
    return (*options, f"-DNUMBER_FORMAT={NUMBER_FORMATS[numbers]}")


def compiled(folder: Path, options: tuple[str, ...] = OPTIONS, source: Path = SOURCE) -> Path:
    """Return the library's file in the folder, compiled unless it is kept there.

    Raises:
        UnavailableError: There is no compiler, it failed, or the folder cannot be used.
    """
    code = b"".join(part.read_bytes() for part in source_parts(source))
    key = hashlib.sha256(code + " ".join((*options, _processor())).encode()).hexdigest()[:24]
    return kept_library(folder, key, partial(compile_library, source, options))


def opened(path: Path, numbers: str = "float32") -> ctypes.CDLL:
    """Return the library of a file for a format of numbers, ready to be called.

    Raises:
        UnavailableError: It cannot be loaded, disagrees with its callers, or has another pool.
    """
    _check_machine(path)
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        flags = os.statvfs(path).f_flag
        raise UnavailableError(load_failure(path, error, flags)) from error
    check_agreement(library, numbers)
    declare(library, numbers)
    if not shares_pool(library):
        msg = "the thread pool that the kernels found is not torch's"
        raise UnavailableError(msg)
    return library


def shares_pool(library: ctypes.CDLL) -> bool:
    """True when a number of threads set through the library is the one that torch reports."""
    before = torch.get_num_threads()
    if library.pool_threads() != before:
        return False
    with pool_threads(library, before + 1):
        return torch.get_num_threads() == before + 1


@contextmanager
def pool_threads(library: ctypes.CDLL, threads: int) -> Generator[None]:
    """Let what the calling thread computes meanwhile use this number of threads."""
    before = library.pool_threads()
    library.set_pool_threads(threads)
    try:
        yield
    finally:
        library.set_pool_threads(before)


def check_processor(numbers: str) -> None:
    """Raise UnavailableError unless the processor is known to have what the kernels need."""
    if platform.machine().lower() not in X86:
        msg = f"the kernels are for x86-64 processors, not {platform.machine()}"
        raise UnavailableError(msg)
    needed = NEEDED_FLAGS | (HALF_FLAGS if numbers in {"float16", *BLOCKS} else {})
    if not set(_processor().split()) >= set(needed.values()):
        msg = f"the processor is not known to have {', '.join(needed)}"
        raise UnavailableError(msg)


def _check_machine(path: Path) -> None:
    """Raise UnavailableError for another kind of file; the loader says "no such file" of one."""
    try:
        with path.open("rb") as file:
            header = file.read(MACHINE_AT + 2)
    except OSError as error:
        msg = f"the compiled kernels cannot be read from {path}: {error.strerror}"
        raise UnavailableError(msg) from error
    start, machine = X86_64_ELF
    if not header.startswith(start) or header[MACHINE_AT:] != machine:
        msg = f"{path} is no library for x86-64, so the compiler is for another processor"
        raise UnavailableError(msg)


def load_failure(path: Path, error: OSError, mount_flags: int) -> str:
    """Return why the loader refused a whole library for the right processor."""
    missing = re.search(r"undefined symbol: (\w+)", str(error))
    if missing:
        return f"torch has loaded no thread pool with {missing[1]}, which the kernels call"
    if mount_flags & os.ST_NOEXEC:
        return (
            f"no program may be run from {path.parent}, which is mounted noexec; set "
            f"{CACHE_VARIABLE} to another folder"
        )
    return f"the compiled kernels cannot be loaded: {first_line(error)}"


@cache
def _processor() -> str:
    """Return what the system says the processor can do, as words."""
    try:
        lines = PROCESSORS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    flags = (line.partition(":")[2] for line in lines if line.startswith("flags"))
    return next(flags, "")
