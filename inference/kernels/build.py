"""The decode kernels as a shared library: compiled once for this processor, kept, and loaded.

The C source beside this file is compiled by the system's compiler the first time it is needed, into
the user's cache folder, under a name made of the source, the flags and the processor. The library
is linked without a thread pool of its own: it takes torch's, so that two pools never fight for the
same cores. Where any of this cannot be had, a sentence says why and nothing is lost but speed.
"""

from __future__ import annotations

import ctypes
import hashlib
import platform
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import torch

from inference.records.errors import InputError
from inference.storage.folders import cache_folder

SOURCE = Path(__file__).with_name("kernels.c")
PARTS = tuple(sorted(SOURCE.parent.glob("kernels*.[ch]")))
COMPILERS = ("gcc", "cc")  # clang's calls into a pool are not those of torch's
COMPILE = ("-O3", "-march=native", "-fno-math-errno", "-ffp-contract=fast", "-fopenmp", "-fPIC")
LONGEST_COMPILE_S = 120
PROCESSORS = Path("/proc/cpuinfo")
NEEDED_FLAGS = frozenset({"avx2", "fma"})
X86 = frozenset({"x86_64", "amd64"})

Int = ctypes.c_int64
Pointer = ctypes.c_void_p


class Layer(ctypes.Structure):
    """Sizes and weights of one decoder layer; the C source's own."""

    _fields_ = (
        *[(name, Int) for name in ("hidden", "heads", "kv_heads", "head_dim", "intermediate")],
        *[(name, ctypes.c_float) for name in ("eps", "scale")],
        *[(name, Pointer) for name in ("norm", "q", "k", "v", "q_bias", "k_bias", "v_bias")],
        *[(name, Pointer) for name in ("o", "o_bias", "mlp_norm", "gate", "up", "down")],
    )


class Stored(ctypes.Structure):
    """Where one layer's keys and values are; the C source's own."""

    _fields_ = (
        *[(name, Pointer) for name in ("keys", "values")],
        *[(name, Int) for name in ("key_row", "key_head", "value_row", "value_head", "tokens")],
        ("mask", Pointer),
        ("mask_row", Int),
    )


class Step(ctypes.Structure):
    """What one call is fed and where it puts the result; the C source's own."""

    _fields_ = (
        *[(name, Int) for name in ("rows", "layers")],
        *[(name, Pointer) for name in ("input", "output", "cosines", "sines")],
        ("angle_row", Int),
        *[(name, Pointer) for name in ("scratch", "counters", "part_s")],
    )


class UnavailableError(Exception):
    """The kernels cannot be had here; the message says why. Never leaves the kernels."""


@cache
def kernel_library() -> ctypes.CDLL:
    """Return the library, compiled when there is none kept.

    Raises:
        UnavailableError: The processor, the compiler or the thread pool is not fit.
    """
    check_processor()
    return opened(compiled(_folder()))


@cache
def kernels_or_none() -> ctypes.CDLL | None:
    """Return the library; None where it cannot be had."""
    try:
        return kernel_library()
    except UnavailableError:
        return None


def opened(path: Path) -> ctypes.CDLL:
    """Return the library of a file, with its functions' types.

    Raises:
        UnavailableError: It does not find torch's thread pool.
    """
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        msg = "torch's thread pool cannot be shared here"
        raise UnavailableError(msg) from error
    for name in ("scratch_floats", "counter_bytes", "lane_count", "pool_threads"):
        getattr(library, name).restype = Int
    library.scratch_floats.argtypes = (Pointer, Int, Int)
    library.counter_bytes.argtypes = (Int,)
    library.decode_layers.argtypes = (Pointer, Pointer, Pointer)
    library.linear.argtypes = (*[Pointer] * 4, *[Int] * 3)
    library.describe.argtypes = (Pointer, *[Int] * 3, *[Pointer] * 3)
    for function in (library.decode_layers, library.linear, library.describe):
        function.restype = None
    if library.pool_threads() != torch.get_num_threads():
        msg = "torch's threads are not those of the pool that the kernels found"
        raise UnavailableError(msg)
    return library


def check_processor() -> None:
    """Pass when the kernels can run on this processor.

    Raises:
        UnavailableError: It lacks what they need, or nothing tells.
    """
    if platform.machine().lower() not in X86:
        msg = f"the kernels are for x86-64 processors, not {platform.machine()}"
        raise UnavailableError(msg)
    if not set(_processor().split()) >= NEEDED_FLAGS:
        msg = "the processor is not known to have AVX2 and FMA"
        raise UnavailableError(msg)


def compiled(folder: Path, options: tuple[str, ...] = COMPILE) -> Path:
    """Return the library's file in the folder, made now unless it is there.

    Args:
        folder: Where it is kept.
        options: The compiler's.

    Raises:
        UnavailableError: There is no compiler, it failed, or the folder cannot be written.
    """
    source = b"".join(part.read_bytes() for part in PARTS)
    key = hashlib.sha256(source + " ".join((*options, _processor())).encode())
    path = folder / f"kernels-{key.hexdigest()[:24]}.so"
    if path.is_file():
        return path
    compiler = next((found for name in COMPILERS if (found := shutil.which(name))), None)
    if compiler is None:
        msg = "no C compiler (gcc) is installed"
        raise UnavailableError(msg)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as workplace:
            made = Path(workplace) / "kernels.so"
            object_file = str(made.with_suffix(".o"))
            _run(compiler, *options, "-c", str(SOURCE), "-o", object_file)
            # Without -fopenmp here: the pool's functions are found in what torch has loaded.
            _run(compiler, "-shared", object_file, "-o", str(made), "-lm")
            made.replace(path)
    except OSError as error:
        msg = f"the kernels cannot be kept in {folder}: {error.strerror}"
        raise UnavailableError(msg) from error
    return path


def _run(*command: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=LONGEST_COMPILE_S)
    except subprocess.TimeoutExpired as error:
        msg = f"the compiler took more than {LONGEST_COMPILE_S} s"
        raise UnavailableError(msg) from error
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode(errors="replace").strip().splitlines()
        msg = f"the compiler failed: {lines[-1] if lines else error.returncode}"
        raise UnavailableError(msg) from error


@cache
def _processor() -> str:
    """Return what the system says the processor can do, as words."""
    try:
        lines = PROCESSORS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    found = (line.partition(":")[2] for line in lines if line.startswith("flags"))
    return next(found, "")


def _folder() -> Path:
    try:
        return cache_folder("kernels")
    except InputError as error:
        raise UnavailableError(str(error)) from error
