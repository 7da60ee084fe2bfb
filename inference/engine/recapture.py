"""The attention of a run that is over, captured by feeding the model the run's own tokens once.

Nothing is sampled: prompt and output are known, so whole blocks of them are fed at once, as one row
without padding. The weights are read by the same probe as during a run; a query reads no later key,
so each map is what the run's own step would have given. The model says along the way whether it is
the one that made the run: the tokens it selected must be as likely here as they were there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from inference.engine.backend import TorchBackend
from inference.records.attention import AttentionChoice, AttentionMap, KnownTokens
from inference.records.errors import InputError
from inference.records.options import CacheKind

# Source: our own choice; 0.7 s of the default model on two AVX2 cores, which is how long a run that
# is started waits for a recapture at most.
BLOCK_TOKENS = 256
# Nats by which the log-probability of a token may differ. Source: our own choice; the same weights
# in other kernels, blocks and batches differ by 1e-4 in float32 and by some hundredths in 16 bits.
TOLERANCE_NATS = {torch.float64: 0.02, torch.float32: 0.02}
TOLERANCE_16_BITS_NATS = 0.5
OTHER_WEIGHTS = (
    "the model loaded gives a token of this run another probability than the run recorded, so its "
    "weights are not those of the run"
)


@dataclass(frozen=True, slots=True)
class _Block:
    """Tokens fed at once, and the queries of each map they give."""

    tokens: int
    parts: tuple[int, ...]


def recapture(
    backend: TorchBackend,
    known: KnownTokens,
    choice: AttentionChoice,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[AttentionMap]:
    """Yield what a layer attends to over a request's tokens, one map for each step of the run.

    A prompt that is fed in blocks gives a map for each. Ends early, between two blocks, when it is
    to stop.

    Args:
        backend: The model, idle; what it had stored goes.
        known: The tokens.
        choice: The layer and head; its slot only names the request.
        should_stop: Asked between two blocks.

    Raises:
        InputError: There is no such layer or head, or these are not the run's weights.
        BackendError, OutOfMemoryError: The model failed.
    """
    backend.capture(replace(choice, slot=0))
    backend.start(CacheKind.DYNAMIC, len(known.ids))
    at = step = 0
    for block in _blocks(known, backend.chunk_obstacle):
        if should_stop():
            return
        logits = backend.forward([known.ids[at : at + block.tokens]])
        at += block.tokens
        _check_weights(known, at, logits)
        for captured in backend.attention_in_parts(block.parts):
            yield _marked(replace(captured, choice=choice, step_index=step), known)
            step += 1


def _blocks(known: KnownTokens, is_at_once: str) -> Iterator[_Block]:
    """Yield what is fed at once, in order.

    Args:
        known: The tokens.
        is_at_once: Why blocks would give another result; empty when they do not.
    """
    outputs = len(known.ids) - known.prompt_tokens
    if is_at_once:
        yield _Block(len(known.ids), (*known.prompt_blocks, *(1,) * outputs))
        return
    for tokens in known.prompt_blocks:
        for piece in _pieces(tokens):
            yield _Block(piece, (piece,))
    for piece in _pieces(outputs):
        yield _Block(piece, (1,) * piece)


def _pieces(tokens: int) -> Iterator[int]:
    for start in range(0, tokens, BLOCK_TOKENS):
        yield min(BLOCK_TOKENS, tokens - start)


def _check_weights(known: KnownTokens, fed: int, logits: Tensor) -> None:
    """Raise InputError where the token after those fed is not as likely as the run recorded."""
    number = fed - known.prompt_tokens  # of the output token that these logits are for
    if not 0 <= number < len(known.output_ids):
        return
    recorded = known.logprobs[number] if number < len(known.logprobs) else None
    if recorded is None:
        return
    exact = torch.float64 if logits.dtype == torch.float64 else torch.float32
    here = logits[0].to(exact).log_softmax(dim=-1)[known.output_ids[number]].item()
    if abs(here - recorded) > TOLERANCE_NATS.get(logits.dtype, TOLERANCE_16_BITS_NATS):
        raise InputError(OTHER_WEIGHTS)


def _marked(captured: AttentionMap, known: KnownTokens) -> AttentionMap:
    """Return the map with the query named that the first output token was chosen by."""
    last = known.prompt_tokens - 1
    is_held = captured.query_start <= last < captured.query_start + captured.query_tokens
    return replace(captured, first_output_query=last) if is_held else captured
