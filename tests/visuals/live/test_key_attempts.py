"""How long a key waits before it is looked at."""

from __future__ import annotations

from contextlib import ExitStack

from visuals.live.key_attempts import (
    FORGIVEN_S,
    LONGEST_WAIT_S,
    PLACES_REMEMBERED,
    WAITING_AT_MOST,
    KeyAttempts,
    place_of,
)


def test_each_wrong_key_doubles_the_wait_of_its_place_only() -> None:
    attempts = KeyAttempts(lambda: 0.0)
    waits: list[float] = []
    for _ in range(7):
        waits.append(attempts.wait_s("a"))
        attempts.was_wrong("a")

    assert waits == [0.0, 0.5, 1.0, 2.0, 4.0, 8.0, LONGEST_WAIT_S]
    assert attempts.wait_s("b") == 0.0


def test_wrong_keys_are_forgiven_in_time() -> None:
    now_s = [0.0]
    attempts = KeyAttempts(lambda: now_s[0])
    attempts.was_wrong("a")
    attempts.was_wrong("a")
    assert attempts.wait_s("a") == 1.0

    now_s[0] = FORGIVEN_S + 1
    assert attempts.wait_s("a") == 0.0
    attempts.was_wrong("a")
    assert attempts.wait_s("a") == 0.5


def test_as_many_places_are_remembered_as_fit_into_little_memory() -> None:
    attempts = KeyAttempts(lambda: 0.0)
    for number in range(PLACES_REMEMBERED + 100):
        attempts.was_wrong(str(number))

    assert len(attempts._wrong) == PLACES_REMEMBERED
    assert attempts.wait_s("0") == 0.0
    assert attempts.wait_s(str(PLACES_REMEMBERED)) == 0.5


def test_a_place_has_few_keys_that_wait_and_leaves_nothing_behind() -> None:
    attempts = KeyAttempts()
    with ExitStack() as waiting:
        for _ in range(WAITING_AT_MOST):
            assert not attempts.is_full("a")
            waiting.enter_context(attempts.waiting("a"))
        assert attempts.is_full("a")
        assert not attempts.is_full("b")

    assert not attempts._waiting


def test_an_ipv6_network_is_one_place() -> None:
    assert place_of("2001:db8::1") == place_of("2001:db8::ffff:2") == "2001:db8::/64"
    assert place_of("2001:db8:0:1::1") != place_of("2001:db8::1")
    assert place_of("::ffff:192.0.2.7") == place_of("192.0.2.7") == "192.0.2.7"
    assert place_of("") == ""
    assert place_of("testclient") == "testclient"
