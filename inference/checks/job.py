"""The self-check of a loaded model, in pieces between which the engine may do anything else.

It has caches of its own, so a run in between loses nothing and changes nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property

import torch
from torch import Tensor
from transformers import PreTrainedModel

from inference.checks.feeding import EngineRun, cached_logits, captured_rows, engine_run
from inference.checks.references import (
    NoReferenceError,
    eager_weights,
    greedy_ids,
    library_twin,
    uncached_logits,
)
from inference.checks.subject import subject_of
from inference.checks.tolerances import TOLERANCES, Tolerance
from inference.checks.verdicts import (
    attention_check,
    cache_check,
    clock_check,
    failed,
    ids_check,
    impossible,
    logits_check,
)
from inference.engine.clock import clock_for
from inference.kernels.install import is_installed
from inference.models.family_limits import eager_obstacle
from inference.models.loading import LoadedModel
from inference.models.memory_errors import is_out_of_memory
from inference.models.tokenization import TextCodec
from inference.records.checks import Check, CheckKind, SelfCheck
from inference.records.errors import OutOfMemoryError, TokenByTokenError, first_line
from inference.records.model import LayerType

# Source: our own choice: what a user does not notice beside the loading of a model.
BUDGET_S = 10.0
NEW_TOKENS = 8
MOST_PROMPT_TOKENS = 24
TEXT = (
    "A model that was checked here computes what the library computes: the same tokens, the same "
    "scores and the same attention, from a cache of the size that was counted."
)
CLOCK_TRIES = 3  # the machine may take the processor away between two readings

Pieces = Generator[None, None, Check]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckLimits:
    """What a check must keep to.

    Attributes:
        should_stop: Tells a long piece to leave off, to be done anew later.
        budget_s: Time for all of it; None for as long as it takes.
    """

    should_stop: Callable[[], bool] = lambda: False
    budget_s: float | None = None


def check_model(
    loaded: LoadedModel, limits: CheckLimits, before: SelfCheck | None = None
) -> Iterator[SelfCheck]:
    """Check a model, and yield how far it is after each piece; the last one is whole.

    Args:
        loaded: The model.
        limits: What to keep to.
        before: A check of it that was cut short; only what it left out is done.
    """
    watch = _Stopwatch(loaded, limits.budget_s)
    checker = Checker(loaded, lambda: limits.should_stop() or watch.is_late)
    done = {check.kind: check for check in before.checks} if before is not None else {}
    state = SelfCheck(subject=subject_of(loaded), checked_at=datetime.now(UTC))
    yield state
    for kind in CheckKind:
        check = done.get(kind)
        check = None if check is not None and check.is_late else check
        pieces = checker.pieces(kind)
        while check is None:
            if watch.is_late:
                check = impossible(kind, _late(watch.spent_s), is_late=True)
                break
            with watch:
                check = _next_piece(pieces, kind)
            state = replace(state, took_s=watch.spent_s)
            if check is None:
                yield state
        pieces.close()
        state = replace(state, checks=(*state.checks, check))
        yield state
    yield replace(state, is_whole=True, checked_at=datetime.now(UTC))


class _Stopwatch:
    """The time spent in pieces, without what comes between them."""

    def __init__(self, loaded: LoadedModel, budget_s: float | None) -> None:
        self._clock = clock_for(loaded.model.device)
        self._budget_s = budget_s
        self._before_s = 0.0
        self._started_s: float | None = None

    def __enter__(self) -> None:
        self._started_s = self._clock.now_s()

    def __exit__(self, *_error: object) -> None:
        self._before_s, self._started_s = self.spent_s, None

    @property
    def spent_s(self) -> float:
        """Until now."""
        if self._started_s is None:
            return self._before_s
        return self._before_s + self._clock.now_s() - self._started_s

    @property
    def is_late(self) -> bool:
        """Whether more was spent than there is."""
        return self._budget_s is not None and self.spent_s > self._budget_s


def _late(took_s: float) -> str:
    return f"the time for it was used up ({took_s:.0f} s); check again to have it all"


def _next_piece(pieces: Pieces, kind: CheckKind) -> Check | None:
    """Do one piece; return the check once it is done, whatever ended it."""
    try:
        next(pieces)
    except StopIteration as end:
        return end.value
    except NoReferenceError as error:
        return impossible(kind, str(error))
    except OutOfMemoryError as error:
        return _without_memory(kind, error)
    except TokenByTokenError as error:
        return failed(kind, str(error))
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        return _without_memory(kind, error)
    return None


def _without_memory(kind: CheckKind, error: Exception) -> Check:
    return impossible(kind, f"there is too little memory: {first_line(error)}")


class Checker:
    """The checks of one model, with what several of them need made once."""

    def __init__(self, loaded: LoadedModel, should_stop: Callable[[], bool]) -> None:
        self._loaded = loaded
        self._model = loaded.model
        self._should_stop = should_stop
        self._run: EngineRun | None = None
        self._plain: Tensor | None = None

    def pieces(self, kind: CheckKind) -> Pieces:
        """Return one check as a generator that yields between its pieces."""
        return {
            CheckKind.IDS: self._ids,
            CheckKind.CLOCK: self._clock,
            CheckKind.CACHE: self._cache,
            CheckKind.LOGITS: self._logits,
            CheckKind.KERNELS: self._kernels,
            CheckKind.ATTENTION: self._attention,
        }[kind]()

    @cached_property
    def prompt(self) -> tuple[int, ...]:
        """What is fed: a sentence as the model's tokenizer has it, else ids spread over all."""
        limit = self._loaded.context_limit or MOST_PROMPT_TOKENS + NEW_TOKENS
        most = max(1, min(MOST_PROMPT_TOKENS, limit - NEW_TOKENS))
        vocabulary = self._loaded.shape.vocab_size
        if self._loaded.tokenizer_files.tokenizer_json:
            ids = TextCodec.from_files(self._loaded.tokenizer_files).encode(TEXT, is_raw=True)
            if all(token < vocabulary for token in ids):
                return ids[:most]
        return tuple((5 + 31 * index) % vocabulary for index in range(most))

    @cached_property
    def _twin(self) -> PreTrainedModel:
        return library_twin(self._model)

    @property
    def _tolerance(self) -> Tolerance:
        return TOLERANCES[self._model.dtype]

    def _ids(self) -> Pieces:
        run = yield from self._engine_run()
        twin = self._twin
        yield
        expected: list[int] | None = None
        while expected is None:
            expected = greedy_ids(twin, self.prompt, NEW_TOKENS, self._should_stop)
            yield
        below: list[float] = []
        if list(run.ids) != expected:
            below = _below_best(self._uncached(run), run.ids)
        return ids_check(run, expected, below, self._tolerance.logits)

    def _clock(self) -> Pieces:
        run = yield from self._engine_run()
        check = clock_check(run)
        for _ in range(CLOCK_TRIES - 1):
            if (check.error or 0.0) <= (check.tolerance or 0.0):
                break
            run = yield from engine_run(self._model, self.prompt, NEW_TOKENS)
            check = clock_check(run)
        return check

    def _cache(self) -> Pieces:
        run = yield from self._engine_run()
        return cache_check(run, self._loaded.shape)

    def _logits(self) -> Pieces:
        run = yield from self._engine_run()
        plain = yield from self._plain_logits(run)
        expected = self._uncached(run)
        return logits_check(CheckKind.LOGITS, plain, expected, self._tolerance.logits)

    def _kernels(self) -> Pieces:
        if not is_installed(self._model):
            reason = self._loaded.kernels or "no kernels are installed"
            return impossible(CheckKind.KERNELS, reason)
        run = yield from self._engine_run()
        plain = yield from self._plain_logits(run)
        fed = run.ids[:-1]
        computed = yield from cached_logits(self._model, self.prompt, fed, is_plain=False)
        return logits_check(CheckKind.KERNELS, computed, plain, self._tolerance.logits)

    def _attention(self) -> Pieces:
        layers = [
            layer
            for layer, kind in enumerate(self._loaded.shape.layer_types)
            if kind is not LayerType.RECURRENT
        ]
        if not layers:
            return impossible(CheckKind.ATTENTION, "this model attends to no token")
        if obstacle := eager_obstacle(self._model):
            return impossible(CheckKind.ATTENTION, obstacle)
        run = yield from self._engine_run()
        eager = eager_weights(library_twin(self._model, "eager"), (*self.prompt, run.ids[0]))
        yield
        if len(eager) != len(layers):
            reason = "the library's eager attention returns no weights for this model"
            return impossible(CheckKind.ATTENTION, reason)
        at = len(layers) // 2
        layer = layers[at]
        maps = yield from captured_rows(self._model, self.prompt, run.ids[0], layer)
        return attention_check(maps, eager[at], layer, self._tolerance.weights)

    def _engine_run(self) -> Generator[None, None, EngineRun]:
        """Return the run that several checks look at."""
        if self._run is None:
            self._run = yield from engine_run(self._model, self.prompt, NEW_TOKENS)
        return self._run

    def _plain_logits(self, run: EngineRun) -> Generator[None, None, Tensor]:
        """Return [step, vocab] of the run's tokens, cached and without kernels."""
        if self._plain is None:
            fed = run.ids[:-1]
            self._plain = yield from cached_logits(self._model, self.prompt, fed, is_plain=True)
        return self._plain

    def _uncached(self, run: EngineRun) -> Tensor:
        ids = (*self.prompt, *run.ids[:-1])
        return uncached_logits(self._twin, ids, len(run.ids))


def _below_best(scores: Tensor, chosen: Sequence[int]) -> list[float]:
    """Return how far each chosen id lies below the best, as a share of its scores' norm."""
    picked = scores.gather(-1, torch.tensor(chosen, device=scores.device)[:, None])[:, 0]
    return ((scores.amax(-1) - picked) / scores.norm(dim=-1)).tolist()
