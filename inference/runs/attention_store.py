"""Attention maps in memory, by choice and step, within a number of bytes. No torch."""

from __future__ import annotations

from inference.records.attention import AttentionChoice, AttentionMap


class AttentionStore:
    """The maps of one run; not thread-safe, its owner locks."""

    def __init__(self, limit_bytes: int) -> None:
        """Begin without a map.

        Args:
            limit_bytes: Of all maps; the oldest decode steps go first, of former choices before
                those of the latest.
        """
        self._limit = limit_bytes
        self._maps: dict[AttentionChoice, dict[int, AttentionMap]] = {}
        self._bytes = 0

    def add(self, attention: AttentionMap) -> None:
        """Keep the map of one step in the place of an earlier one."""
        kept = self._maps.pop(attention.choice, {})
        self._maps[attention.choice] = kept  # the latest choice is last
        before = kept.pop(attention.step_index, None)
        kept[attention.step_index] = attention
        self._bytes += attention.nbytes - (before.nbytes if before is not None else 0)
        while self._bytes > self._limit and self._drop_oldest(attention):
            pass

    def forget(self, choice: AttentionChoice | None = None) -> None:
        """Drop the maps of one choice, or all of them."""
        gone = list(self._maps) if choice is None else [choice]
        for one in gone:
            maps = self._maps.pop(one, {})
            self._bytes -= sum(map_.nbytes for map_ in maps.values())

    def of(self, choice: AttentionChoice) -> tuple[AttentionMap, ...]:
        """Return the maps of one choice, in the order of their steps."""
        maps = self._maps.get(choice, {})
        return tuple(maps[step] for step in sorted(maps))

    def all(self) -> tuple[tuple[AttentionMap, ...], ...]:
        """Return the maps of every choice, the latest choice first."""
        return tuple(self.of(choice) for choice in reversed(self._maps))

    def _drop_oldest(self, newest: AttentionMap) -> bool:
        """Make room; False when nothing but the newest map's own prompt is left."""
        for choice, maps in self._maps.items():
            is_former = choice != newest.choice
            for step, one in maps.items():
                if one is not newest and (is_former or one.query_tokens == 1):
                    del maps[step]
                    self._bytes -= one.nbytes
                    return True
        return False
