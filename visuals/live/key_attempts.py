"""How keys that are tried are slowed down, so that guessing takes for ever and others get in.

What counts is where a key comes from. A place that has given no wrong key is answered at once,
whatever others do. One that has waits before its next key is even looked at, so a right key among
many guesses is no faster; those that wait there already fill the few places that it has.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from ipaddress import IPv6Address, ip_address, ip_network

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 8.0
FORGIVEN_S = 600.0  # after so long without a wrong key a place begins anew
WAITING_AT_MOST = 4  # keys of one place; further ones are refused unseen
PLACES_REMEMBERED = 16_384  # a few MB
NETWORK_BITS = 64  # whoever has one IPv6 address has as many, RFC 6177


class KeyAttempts:
    """Counts wrong keys by where they come from, and says how long the next one waits."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._waiting: Counter[str] = Counter()

    def wait_s(self, place: str) -> float:
        """Return how long a key from here waits before it is looked at."""
        times, last_s = self._wrong.get(place, (0, 0.0))
        if not times or self._now() - last_s > FORGIVEN_S:
            return 0.0
        return min(FIRST_WAIT_S * 2.0 ** min(times - 1, 10), LONGEST_WAIT_S)

    def is_full(self, place: str) -> bool:
        """Tell whether as many keys wait as may from one place."""
        return self._waiting.get(place, 0) >= WAITING_AT_MOST

    @contextmanager
    def waiting(self, place: str) -> Generator[None]:
        """Count a key that waits."""
        self._waiting[place] += 1
        try:
            yield
        finally:
            self._waiting[place] -= 1
            if not self._waiting[place]:
                del self._waiting[place]

    def was_wrong(self, place: str) -> None:
        """Count a wrong key."""
        times, last_s = self._wrong.pop(place, (0, 0.0))
        times = 0 if self._now() - last_s > FORGIVEN_S else times
        self._wrong[place] = (times + 1, self._now())
        if len(self._wrong) > PLACES_REMEMBERED:
            self._wrong.popitem(last=False)


def place_of(host: str) -> str:
    """Return what stands for where a client is: its address, or its network if that is IPv6."""
    try:
        address = ip_address(host)
    except ValueError:  # no address is known, as in a test
        return host
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ip_network((address, NETWORK_BITS), strict=False))
    return str(address)
