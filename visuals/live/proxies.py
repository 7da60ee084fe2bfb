"""Which proxies are believed when they say where a request came from and how.

The web server itself reads the variable; it takes whatever is no address for a name that never
comes, and ``*`` for everybody.
"""

from __future__ import annotations

import os
from ipaddress import ip_network

from inference.records.errors import InputError

PROXIES_VARIABLE = "FORWARDED_ALLOW_IPS"
SHOWN_CHARACTERS = 40


def check_proxies(text: str | None = None) -> None:
    """Raise InputError unless each proxy that is named is an address or a network.

    Args:
        text: Parted by commas; that of the environment unless given.
    """
    given = os.environ.get(PROXIES_VARIABLE, "") if text is None else text
    for one in filter(None, (part.strip() for part in given.split(","))):
        try:
            ip_network(one)
        except ValueError as error:
            msg = f"{one[:SHOWN_CHARACTERS]!r} is no address of a proxy; PROXIES takes addresses "
            msg += "such as 127.0.0.1 or 10.0.0.0/8, separated by commas"
            raise InputError(msg) from error
