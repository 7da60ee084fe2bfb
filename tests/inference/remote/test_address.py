"""Addresses that a user types, and the key beside them."""

from __future__ import annotations

import pytest

from inference.records.errors import InputError
from inference.remote.address import endpoint_at

KEY = "sk-secret-1"


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        (" http://127.0.0.1:8000/v1/ ", "http://127.0.0.1:8000"),
        ("https://host/lab/v1", "https://host/lab"),
        ("HTTPS://Host:443", "https://host"),
        ("http://[::1]:8080", "http://[::1]:8080"),
        ("http://b\u00fccher.example", "http://xn--bcher-kva.example"),
    ],
)
def test_an_address_is_shown_as_requests_go_there(typed: str, shown: str) -> None:
    assert endpoint_at(typed).address == shown


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "127.0.0.1:8000",
        "ftp://host",
        "file:///etc/passwd",
        "http://",
        "http://host:99999",
        "http://host:0",
        "http://host:x",
        "http://[::1",
        "http://host/a?key=1",
        "http://host/#a",
        "http://ho st",
        "http://host/\r\nX: y",
        "http://host/" + "a" * 3000,
        "http://host/\u00e9",
    ],
)
def test_what_is_no_address_of_a_server_is_refused(typed: str) -> None:
    with pytest.raises(InputError):
        endpoint_at(typed)


def test_a_key_in_the_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(InputError) as refused:
        endpoint_at(f"http://user:{KEY}@host")

    assert KEY not in str(refused.value)
    assert "the key apart from it" in str(refused.value)


def test_a_key_is_in_no_text_of_an_endpoint() -> None:
    endpoint = endpoint_at("http://host", KEY)

    assert KEY not in f"{endpoint!r} {endpoint} {endpoint.address}"
    assert endpoint.without_key(f"Incorrect API key: {KEY}.") == "Incorrect API key: [key]."


@pytest.mark.parametrize("key", ["", "a b", "a\nX: y", "\u00e9", "a" * 5000])
def test_a_key_that_no_header_takes_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(InputError) as refused:
        endpoint_at("http://host", key)

    assert not key or key not in str(refused.value)
