"""llama.cpp's own HTTP server on a GGUF file, as a program: prints its address and serves."""

from __future__ import annotations

import sys

import xllamacpp

CONTEXT_TOKENS = 2048


def serve(model: str, speculation: str) -> None:
    """Serve a model with two slots until standard input is closed.

    Args:
        model: The GGUF file.
        speculation: ``none``, or ``ngram_simple`` and the like.
    """
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 2
    params.endpoint_metrics = True
    params.endpoint_slots = True
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    kinds = xllamacpp.common_speculative_type.__members__
    params.speculative.types = [kinds[f"COMMON_SPECULATIVE_TYPE_{speculation.upper()}"]]
    params.speculative.ngram_simple.size_n = 4  # tokens that have to be the same
    params.speculative.ngram_simple.size_m = 8  # tokens proposed then
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)  # noqa: T201  what the test waits for
    sys.stdin.read()


if __name__ == "__main__":
    serve(*sys.argv[1:])
