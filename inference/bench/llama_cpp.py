"""llama.cpp's decode rate, by its own ``llama-bench``, beside that of this program. No torch."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from inference.records.errors import InputError

NEW_TOKENS = 32
LONGEST_S = 600


def llama_tokens_per_s(program: Path, gguf: Path) -> float:
    """Return llama.cpp's decode rate on a GGUF file, on all processors.

    Raises:
        InputError: It failed, or printed no rate.
    """
    options = ("-m", str(gguf), "-p", "0", "-n", str(NEW_TOKENS), "-t", str(os.cpu_count()))
    try:
        ended = subprocess.run(
            (str(program), *options, "-o", "json"),
            capture_output=True,
            check=True,
            timeout=LONGEST_S,
        )
    except (OSError, subprocess.SubprocessError) as error:
        msg = f"{program} failed ({error}); try it by hand with {' '.join(options)}"
        raise InputError(msg) from error
    return llama_rate(ended.stdout.decode(errors="replace"))


def llama_rate(text: str) -> float:
    """Return the tokens per second of generation in llama-bench's JSON.

    Raises:
        InputError: It has none.
    """
    try:
        tests = json.loads(text)
        return next(float(test["avg_ts"]) for test in tests if test["n_gen"])
    except (ValueError, KeyError, TypeError, StopIteration) as error:
        msg = "llama-bench printed no rate of generation; give a recent one"
        raise InputError(msg) from error
