"""Which modules a ``quantization_config`` names: whole, of a kind, with wildcards or by patterns.

The patterns are a stranger's regular expressions, each tried against every module of every layer,
so what they may take is bounded. No torch.
"""

from __future__ import annotations

import fnmatch
import re
import time
from collections.abc import Iterable, Iterator

import regex

from inference.records.errors import InputError

LONGEST_PATTERN = 200  # longer is no module's name
MOST_PATTERNS = 2_000  # with wildcards, each tried against every module of every layer
LONGEST_MATCH_S = 0.5  # published patterns take microseconds
LONGEST_MATCHES_S = 5.0  # of all patterns of a file together
# How files call the decoder that is ``model`` here.
PREFIXES = ("model.", "language_model.model.", "model.language_model.", "")
WILDCARDS = frozenset("*?[")


class Names:
    """Names of modules as files write them: whole, of a kind, with wildcards or as patterns."""

    def __init__(self, names: Iterable[object]) -> None:
        exact: set[str] = set()
        kinds: list[str] = []
        globs: list[str] = []
        patterns: list[str] = []
        for name in names:
            if not isinstance(name, str) or not name or len(name) > LONGEST_PATTERN:
                continue
            if name.startswith("re:"):
                patterns.append(name[3:])
            elif WILDCARDS & set(name):
                globs.append(_from_layers(name))
            else:
                short = _from_layers(name)
                exact.add(short)
                if not short.startswith("layers."):
                    kinds.append(f".{short}.")
        self._exact = frozenset(exact)
        self._experts = frozenset(_experts_of(one) for one in exact) - {""}
        self._kinds = tuple(dict.fromkeys(kinds))
        self._globs = tuple(
            re.compile(fnmatch.translate(form))
            for one in globs[:MOST_PATTERNS]
            for form in (one, f"{one}.*")  # the module, or one that it holds
        )
        self._patterns = _Patterns(patterns[:MOST_PATTERNS])

    def has_exactly(self, name: str) -> bool:
        """Return whether this very name is listed."""
        return name in self._exact

    def has(self, full: str) -> bool:
        """Return whether a module, ``layers.0.mlp.up_proj``, or one that holds it is named."""
        if any(one in self._exact for one in _with_parents(full)):
            return True
        if _experts_of(full) in self._experts:
            return True
        if any(one in f".{full}." for one in self._kinds):
            return True
        if any(one.match(full) for one in self._globs):
            return True
        return self._patterns.match([f"{prefix}{full}" for prefix in PREFIXES])


class _Patterns:
    """Regular expressions of a file, with the time that they may still take."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._compiled = {one: _compiled(one) for one in patterns}
        self._left_s = LONGEST_MATCHES_S

    def match(self, names: Iterable[str]) -> bool:
        """Return whether one of them matches one of the names, from its start.

        Raises:
            InputError: They take too long.
        """
        return any(self._matches(pattern, name) for name in names for pattern in self._compiled)

    def _matches(self, pattern: str, name: str) -> bool:
        started_s = time.thread_time()
        try:
            found = self._compiled[pattern].match(name, timeout=LONGEST_MATCH_S)
        except TimeoutError as error:
            raise InputError(_too_slow(pattern)) from error
        self._left_s -= time.thread_time() - started_s
        if self._left_s < 0:
            raise InputError(_too_slow(pattern))
        return found is not None


def _compiled(pattern: str) -> regex.Pattern[str]:
    try:
        return regex.compile(pattern)
    except regex.error as error:
        msg = f"quantization_config names modules by the pattern 're:{pattern}', which is no "
        raise InputError(f"{msg}regular expression ({error}); correct it") from error


def _too_slow(pattern: str) -> str:
    return (
        f"quantization_config names modules by the pattern 're:{pattern}', which takes too long to "
        "match; write it without repetitions inside repetitions"
    )


def _from_layers(name: str) -> str:
    """Return a name from its ``layers.`` on, whatever a file calls the decoder."""
    start = name.find("layers.")
    is_whole = start == 0 or (start > 0 and name[start - 1] == ".")
    return name[start:] if is_whole else name.removeprefix("language_model.")


def _with_parents(full: str) -> Iterator[str]:
    parts = full.split(".")
    for end in range(len(parts), 1, -1):
        yield ".".join(parts[:end])


def _experts_of(name: str) -> str:
    """Return the layer whose routed experts a module belongs to; families name those otherwise."""
    parts = name.split(".")
    is_routed = "experts" in parts[2:] and parts[0] == "layers"
    return f"{parts[0]}.{parts[1]}" if is_routed else ""
