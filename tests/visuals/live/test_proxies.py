"""Which proxies may be named."""

from __future__ import annotations

import pytest

from inference.records.errors import InputError
from visuals.live.proxies import check_proxies


def test_proxies_are_named_by_address_or_network() -> None:
    for named in ("", " , ", "127.0.0.1", "127.0.0.1, ::1", "10.0.0.0/8,2001:db8::/32"):
        check_proxies(named)


@pytest.mark.parametrize("named", ["*", "127.0.0.1,*", "nginx", "10.0.0.1/8", "127.0.0.1:80"])
def test_a_proxy_that_the_server_would_misunderstand_is_refused(named: str) -> None:
    """A name never matched, so that all visitors seemed to be the proxy; * believed everybody."""
    with pytest.raises(InputError, match="PROXIES takes addresses"):
        check_proxies(named)
