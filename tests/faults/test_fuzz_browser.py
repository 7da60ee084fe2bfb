"""What a browser, or a link, may say: addresses, choices and acknowledgements of any kind."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from inference.process.orders import check_order
from inference.records.errors import InputError
from tests.faults.fuzzing import ODD_TEXTS, check_sentence, fuzzed, values
from visuals.live.attention_feed import choice_from
from visuals.live.guards import HostGuard
from visuals.live.route import MAX_DRAWN_MS, drawing_s
from visuals.pages.run_settings import RunSettings
from visuals.pages.settings_address import NAMES, said_of, settings_said


async def no_answer(*_arguments: object) -> None:
    """Stand for the application."""


TEXTS = st.text(max_size=20) | st.sampled_from(ODD_TEXTS) | st.integers().map(str)


@fuzzed(300)
@given(st.dictionaries(st.sampled_from(NAMES), TEXTS, max_size=6))
def test_any_settings_of_an_address_make_an_order_or_a_sentence(said: dict[str, str]) -> None:
    taken = settings_said(said, RunSettings())

    assert settings_said(said_of(taken, RunSettings()), RunSettings()) == taken
    try:
        check_order(taken.order())
    except InputError as error:
        check_sentence(error)


@fuzzed(200)
@given(values(st.sampled_from(("layer", "head", "all", "row"))))
def test_any_choice_of_a_panel_is_one_or_none(said: Any) -> None:  # noqa: ANN401  JSON is anything
    choice = choice_from(said)

    assert choice is None or choice.layer >= 0


@fuzzed(200)
@given(TEXTS.map("a {}".format) | TEXTS)
def test_any_acknowledgement_is_a_time_or_none(said: str) -> None:
    assert 0 <= drawing_s(said) <= MAX_DRAWN_MS / 1e3


@fuzzed(200)
@given(TEXTS | st.sampled_from(("[::1", "[::1]:x", "127.0.0.1:99999999", "localhost.", "@", "a b")))
def test_any_host_is_known_or_not(host: str) -> None:
    guard = HostGuard(no_answer, address="127.0.0.1", named=("lab.example",))

    assert guard.is_known(host) in (True, False)
    assert not guard.is_known(f"{host}.evil.example")
