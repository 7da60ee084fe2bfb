"""This program beside llama.cpp on the same weights in the same format, in turns, as ratios.

``python -m tests.soak.llama_ratio --dtype q4_1``, on a machine with nothing else to do. Both
compute with as many threads as torch has here; llama.cpp is the package ``xllamacpp`` of the test
requirements, its K/V cache in float16 as by default. Its weights are the default model's, written
in the format asked for. Above 1 this program is faster.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import torch
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter, LlamaFileType
from gguf.quants import dequantize, quantize

from inference.engine.clock import HostClock
from inference.engine.loop import Engine, GenerationLimits
from inference.engine.row_backend import TorchRowBackend
from inference.models.loading import LoadedModel, load_model
from inference.records.options import Sampling
from inference.records.run import Request
from tests.inference.remote.real_engines import default_gguf

TYPES = {
    "float32": GGMLQuantizationType.F32,
    "float16": GGMLQuantizationType.F16,
    "bfloat16": GGMLQuantizationType.BF16,
    "q8_0": GGMLQuantizationType.Q8_0,
    "q4_0": GGMLQuantizationType.Q4_0,
    "q4_1": GGMLQuantizationType.Q4_1,
}
NEW_TOKENS = 33  # of which 32 are decoded
CONTEXTS = (128, 512, 4096)
MATRIX_AXES = 2
Speeds = tuple[float, float]  # tokens/s of prefill and of decode


def rewrite(source: Path, target: Path, kind: GGMLQuantizationType) -> None:
    """Write a GGUF file anew with all of its matrices in one format."""
    reader = GGUFReader(source)
    writer = GGUFWriter(target, str(reader.fields["general.architecture"].contents()))
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in {"general.architecture", "general.file_type"}:
            continue
        inner = field.types[1] if len(field.types) > 1 else None
        writer.add_key_value(name, field.contents(), field.types[0], sub_type=inner)
    writer.add_file_type(LlamaFileType.GUESSED)
    for tensor in reader.tensors:
        numbers = dequantize(tensor.data, tensor.tensor_type)
        wanted = kind if numbers.ndim >= MATRIX_AXES else GGMLQuantizationType.F32
        writer.add_tensor(tensor.name, quantize(numbers, wanted), raw_dtype=wanted)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def serve(path: str, threads: int) -> None:
    """Serve a GGUF file by llama.cpp until standard input is closed; print the address."""
    import xllamacpp  # noqa: PLC0415  only in the program that serves

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = max(CONTEXTS) + NEW_TOKENS + 64
    params.n_parallel = 1
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)  # noqa: T201  what the caller waits for
    sys.stdin.read()


@contextmanager
def server(path: Path) -> Generator[str]:
    """Give the address of llama.cpp on a file."""
    threads = str(torch.get_num_threads())
    command = [sys.executable, "-m", "tests.soak.llama_ratio", "--serve", str(path), threads]
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere, text=True) as running:
        try:
            assert running.stdout is not None
            yield running.stdout.readline().strip()
        finally:
            running.kill()


def its_speeds(address: str, prompt: list[int]) -> Speeds:
    """Return what llama.cpp says of its own times."""
    asked = {"prompt": prompt, "n_predict": NEW_TOKENS, "temperature": 0, "ignore_eos": True}
    body = json.dumps(asked | {"cache_prompt": False}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{address}/completion", body, headers)
    with urllib.request.urlopen(request, timeout=600) as answer:
        timings = json.loads(answer.read())["timings"]
    return timings["prompt_per_second"], timings["predicted_per_second"]


def our_speeds(loaded: LoadedModel, prompt: list[int]) -> Speeds:
    """Return the rates of the engine's own step times."""
    limits = GenerationLimits(eos_ids=frozenset(), context_tokens=None)
    engine = Engine(TorchRowBackend(loaded.model), HostClock(), limits)
    asked = Request(
        request_id="a",
        prompt_text="",
        prompt_ids=tuple(prompt),
        max_new_tokens=NEW_TOKENS,
        sampling=Sampling(),
    )
    first, *steps = engine.generate([asked], seed=0, zero_s=0.0)
    return len(prompt) / first.duration_s, len(steps) / sum(one.duration_s for one in steps)


def compare(dtype: str, rounds: int, contexts: tuple[int, ...]) -> None:
    """Print the ratios of one format, the medians of rounds in turns, with their range."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.gguf"
        rewrite(default_gguf(Path(folder)), path, TYPES[dtype])
        loaded = load_model("default", dtype=dtype, device="cpu", on_stage=lambda _stage: None)
        print(f"{dtype}: {loaded.kernels}")  # noqa: T201  a program
        with server(path) as address:
            for context in contexts:
                generator = torch.Generator().manual_seed(context)
                prompt = torch.randint(100, 40_000, (context,), generator=generator).tolist()
                its_speeds(address, prompt[:16])  # warm
                our_speeds(loaded, prompt[:16])
                pairs = [
                    (our_speeds(loaded, prompt), its_speeds(address, prompt)) for _ in range(rounds)
                ]
                for line in ratio_lines(f"{dtype} {context:5} tokens", pairs):
                    print(line, flush=True)  # noqa: T201  a program


def ratio_lines(what: str, pairs: list[tuple[Speeds, Speeds]]) -> Iterator[str]:
    """Yield a line for prefill and one for decode: ours divided by llama.cpp's, round by round."""
    for which, name in enumerate(("prefill", "decode")):
        ratios = sorted(ours[which] / its[which] for ours, its in pairs)
        ours, its = (median(pair[side][which] for pair in pairs) for side in (0, 1))
        spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
        yield f"{what} {name:7} {median(ratios):.2f} ({spread}): {ours:.1f}, {its:.1f} tokens/s"


def main() -> None:
    """Compare what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", choices=TYPES, default="float32")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--contexts", type=int, nargs="+", default=list(CONTEXTS))
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(args.serve[0], int(args.serve[1]))
    else:
        compare(args.dtype, args.rounds, tuple(args.contexts))


if __name__ == "__main__":
    main()
