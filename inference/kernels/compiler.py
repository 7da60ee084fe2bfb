"""From C to a shared library, by the GCC of this machine. No torch.

The library is linked without a thread pool of its own: its calls into one are bound to torch's when
it is loaded, so that two pools never fight for the same cores.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from inference.kernels.unavailable import UnavailableError

SOURCE = Path(__file__).with_name("kernels.c")
COMPILERS = ("gcc", "cc")
OPTIONS = ("-O3", "-march=native", "-fno-math-errno", "-ffp-contract=fast", "-fopenmp", "-fPIC")
LONGEST_COMPILE_S = 120
# Source: GCC manual, "Common Predefined Macros"; clang defines GCC's beside its own.
GNU, CLANG, X86_64 = "__GNUC__", "__clang__", "__x86_64__"


def source_parts(source: Path) -> tuple[Path, ...]:
    """Return a C file and the headers beside it that are parts of it, in a fixed order."""
    return tuple(sorted(source.parent.glob(f"{source.stem}*.[ch]")))


def compile_library(source: Path, options: tuple[str, ...], target: Path) -> None:
    """Compile a C file into a shared library, and leave an object file beside it.

    Raises:
        UnavailableError: There is no compiler that can, or it failed.
    """
    compiler = gnu_compiler()
    object_file = str(target.with_suffix(".o"))
    _run(compiler, *options, "-c", str(source), "-o", object_file)
    # Without -fopenmp here: the pool's functions are those that torch has loaded.
    _run(compiler, "-shared", object_file, "-o", str(target), "-lm")


def gnu_compiler() -> str:
    """Return the path of a GCC for x86-64.

    Raises:
        UnavailableError: None is installed; the message names what stands in its place.
    """
    obstacle = "no C compiler (gcc) is installed"
    for path in filter(None, map(shutil.which, COMPILERS)):
        obstacle = _compiler_obstacle(path)
        if not obstacle:
            return path
    raise UnavailableError(obstacle)


def _compiler_obstacle(path: str) -> str:
    """Return why a compiler cannot be used, by the macros it defines; empty when it can."""
    command = (path, "-dM", "-E", "-x", "c", "/dev/null")
    try:
        macros = _run(*command).split()
    except UnavailableError as error:
        return f"{path} does not say which compiler it is: {error}"
    if CLANG in macros:
        return f"{path} is clang, whose thread pool is not torch's; install gcc"
    if GNU not in macros:
        return f"{path} is not GCC, which the kernels need; install gcc"
    if X86_64 not in macros:
        return f"{path} compiles for another processor; install a gcc for x86-64"
    return ""


def _run(*command: str) -> str:
    try:
        done = subprocess.run(command, check=True, capture_output=True, timeout=LONGEST_COMPILE_S)
    except OSError as error:
        msg = f"the compiler could not be started: {error.strerror}"
        raise UnavailableError(msg) from error
    except subprocess.TimeoutExpired as error:
        msg = f"the compiler took more than {LONGEST_COMPILE_S} s"
        raise UnavailableError(msg) from error
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode(errors="replace").strip().splitlines()
        msg = f"the compiler failed: {lines[-1] if lines else error.returncode}"
        raise UnavailableError(msg) from error
    return done.stdout.decode(errors="replace")
