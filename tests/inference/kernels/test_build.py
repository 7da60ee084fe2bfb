"""A compiled library is refused, with its own sentence each, for whatever would make it unsafe."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from inference.kernels import build
from inference.kernels.build import load_failure, opened, pool_threads, shares_pool
from inference.kernels.compiler import gnu_compiler
from inference.kernels.unavailable import UnavailableError

pytestmark = pytest.mark.usefixtures("library")


@pytest.mark.parametrize(
    ("name", "words", "instead", "sentence"),
    [
        pytest.param(
            "kernels.c",
            "int64_t mask_row;",
            "int64_t mask_row, mask_head;",
            "have stored_bytes 80 where their callers have 72",
            id="structure",
        ),
        pytest.param(
            "kernels.c",
            "#define MOST_ROWS 16",
            "#define MOST_ROWS 8",
            "have most_rows 8 where their callers have 16",
            id="rows",
        ),
        pytest.param(
            "kernels_attention.h",
            "#define MOST_HEAD_DIM 256",
            "#define MOST_HEAD_DIM 128",
            "have most_head_dim 128 where their callers have 256",
            id="head",
        ),
        pytest.param(
            "kernels.c",
            "step_bytes = sizeof(Step)",
            "other_bytes = sizeof(Step)",
            "do not say their step_bytes",
            id="unsaid",
        ),
        pytest.param(
            "kernels.c",
            "void describe(",
            "void describe_all(",
            "lack a function .*describe",
            id="function",
        ),
        # As many threads as torch has, but not torch's.
        pytest.param(
            "kernels.c",
            "#include <sched.h>",
            "#include <sched.h>\n"
            f"static int pool = {torch.get_num_threads()};\n"
            "#define omp_get_max_threads() pool\n"
            "#define omp_set_num_threads(threads) (pool = (threads))",
            "the thread pool that the kernels found is not torch's",
            id="pool",
        ),
        pytest.param(
            "kernels.c",
            "omp_get_wtime()",
            "GOMP_of_another_version()",
            "no thread pool with GOMP_of_another_version",
            id="symbol",
        ),
    ],
)
def test_a_library_that_does_not_fit_is_refused(
    compile_changed: Callable[[str, str, str], Path],
    name: str,
    words: str,
    instead: str,
    sentence: str,
) -> None:
    path = compile_changed(name, words, instead)

    with pytest.raises(UnavailableError, match=sentence):
        opened(path)


def test_a_library_for_other_numbers_is_refused(compile_changed: Callable[..., Path]) -> None:
    path = compile_changed("kernels.c", "MOST_PIECE 128", "MOST_PIECE 64", "bfloat16")

    with pytest.raises(UnavailableError, match="number_format 2 where their callers have 1"):
        opened(path, "float16")


def test_a_processor_without_conversions_has_no_kernels_for_float16(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(build, "_processor", lambda: "avx2 fma")

    build.check_processor("bfloat16")
    with pytest.raises(UnavailableError, match="to have AVX2, FMA, F16C"):
        build.check_processor("float16")


def test_the_number_of_threads_is_as_before_once_it_was_asked_whose_they_are(
    library: object,
) -> None:
    before = torch.get_num_threads()

    assert shares_pool(library)
    assert torch.get_num_threads() == before
    with pool_threads(library, 1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_a_library_for_another_processor_is_named_as_that(tmp_path: Path) -> None:
    """The loader says of it that there is no such file."""
    code = tmp_path / "empty.c"
    code.write_text("int nothing;")
    path = tmp_path / "kernels.so"
    subprocess.run([gnu_compiler(), "-shared", str(code), "-o", str(path)], check=True)
    arm = bytearray(path.read_bytes())
    arm[18:20] = (183).to_bytes(2, "little")
    path.write_bytes(arm)

    with pytest.raises(UnavailableError, match="is no library for x86-64"):
        opened(path)


def test_a_folder_that_runs_no_programs_is_named_as_that() -> None:
    error = OSError("kernels.so: failed to map segment from shared object")

    sentence = load_failure(Path("/shared/kernels.so"), error, os.ST_NOEXEC)

    assert "/shared, which is mounted noexec; set TOKEN_BY_TOKEN_CACHE" in sentence


def test_whatever_else_the_loader_says_is_passed_on() -> None:
    error = OSError("kernels.so: cannot allocate memory in static TLS block")

    sentence = load_failure(Path("/own/kernels.so"), error, 0)

    assert sentence.endswith(
        "cannot be loaded: kernels.so: cannot allocate memory in static TLS block"
    )
