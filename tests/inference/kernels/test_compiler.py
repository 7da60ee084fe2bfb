"""Which compiler is used, and what is said where none can be."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from inference.kernels.abi import NUMBER_FORMATS
from inference.kernels.build import compiled, format_options
from inference.kernels.compiler import OPTIONS, SOURCE, compile_library, gnu_compiler
from inference.kernels.unavailable import UnavailableError


def stand_in(folder: Path, name: str, script: str) -> Path:
    """Put a program of this name into a folder."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def macros(*names: str) -> str:
    """Return a script that prints macros as a compiler does."""
    return "\n".join(f"echo '#define {name} 1'" for name in names)


def test_a_missing_compiler_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(UnavailableError, match=r"no C compiler \(gcc\) is installed"):
        compiled(tmp_path)


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        pytest.param(
            macros("__x86_64__", "__GNUC__", "__clang__"), "is clang, whose thread pool", id="clang"
        ),
        pytest.param(macros("__x86_64__", "__TINYC__"), "is not GCC", id="another"),
        pytest.param(macros("__GNUC__", "__aarch64__"), "for another processor", id="cross"),
        pytest.param("echo 'no licence' >&2; exit 3", "not say .* failed: no licence", id="fails"),
    ],
)
def test_a_compiler_that_is_not_gcc_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, sentence: str
) -> None:
    stand_in(tmp_path, "cc", script)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(UnavailableError, match=f"{tmp_path}/cc .*{sentence}"):
        gnu_compiler()


def test_a_cc_that_is_gcc_is_used_where_gcc_is_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, "gcc", macros("__clang__", "__GNUC__", "__x86_64__"))
    gcc = stand_in(tmp_path, "cc", macros("__GNUC__", "__x86_64__"))
    monkeypatch.setenv("PATH", str(tmp_path))

    assert gnu_compiler() == str(gcc)


@pytest.mark.usefixtures("library")
def test_what_the_compiler_says_is_passed_on(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="the compiler failed: "):
        compiled(tmp_path, (*OPTIONS, "-march=nonsense"))

    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("numbers", NUMBER_FORMATS)
def test_the_code_for_wider_vectors_compiles_on_every_machine(tmp_path: Path, numbers: str) -> None:
    options = ["-march=skylake-avx512" if one == "-march=native" else one for one in OPTIONS]
    target = tmp_path / "kernels.so"

    options = format_options(numbers, ("-Werror", "-Wall", *options))
    compile_library(SOURCE, options, target)

    listing = subprocess.run(
        ["objdump", "-d", str(target)], capture_output=True, text=True, check=True
    )
    assert "zmm" in listing.stdout
