"""Settings in the page's address: a reload keeps what was chosen without making a run."""

from __future__ import annotations

from dataclasses import fields, replace
from enum import Enum
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from inference.records.options import CacheKind
from tests.app.stage import STAGE
from tests.visuals.live_doubles import HubUnderTest
from visuals.pages.run_settings import Decoding, RunSettings, Split
from visuals.pages.settings_address import BOUNDS, LONGEST_TEXT, said_of, settings_said
from visuals.pages.widget_keys import WIDGETS

pytestmark = pytest.mark.app

SCRIPT = str(Path(__file__).with_name("live_script.py"))


@pytest.fixture
def page() -> AppTest:
    STAGE.under_test = HubUnderTest()
    STAGE.under_test.load()
    return AppTest.from_file(SCRIPT, default_timeout=30).run()


def reloaded(page: AppTest) -> AppTest:
    """Return a tab of another session at the same address."""
    another = AppTest.from_file(SCRIPT, default_timeout=30)
    for name, values in page.query_params.items():
        another.query_params[name] = values
    another.run()
    assert not another.exception
    return another


def other(settings: RunSettings, name: str) -> object:
    """Return a value that a field does not have, of its own kind."""
    value = getattr(settings, name)
    if isinstance(value, bool):
        return not value
    if isinstance(value, Enum):
        return list(type(value))[-1]
    if isinstance(value, (int, float)):
        return type(value)(next(bound for bound in BOUNDS[name] if bound != value))
    return "bfloat16" if name == "dtype" else "other: ä & b=c"


@pytest.mark.parametrize("name", [field.name for field in fields(RunSettings)])
def test_every_setting_comes_back_from_the_address(name: str) -> None:
    usual = RunSettings()
    changed = replace(usual, **{name: other(usual, name)})

    said = said_of(changed, usual)

    assert list(said) == [name]
    assert settings_said(said, usual) == changed


@pytest.mark.parametrize(
    "said",
    [
        {"max_new_tokens": "0"},
        {"max_new_tokens": "1e9"},
        {"temperature": "nan"},
        {"temperature": "inf"},
        {"top_p": "x"},
        {"cache": "none such"},
        {"dtype": "float8"},
        {"dtype": "q5_k"},
        {"has_template": "maybe"},
        {"prompt": "p" * (LONGEST_TEXT + 1)},
        {"no_such_setting": "1"},
    ],
)
def test_what_no_widget_could_say_is_left_out(said: dict[str, str]) -> None:
    assert settings_said(said, RunSettings()) == RunSettings()


def test_a_prompt_too_long_for_an_address_is_not_in_it() -> None:
    usual = RunSettings()
    settings = replace(usual, prompt="p" * (LONGEST_TEXT + 1), seed=3)

    assert said_of(settings, usual) == {"seed": "3"}


def test_a_reload_keeps_what_was_changed_without_a_run(page: AppTest) -> None:
    """They were lost: only a run's settings came back."""
    page.number_input(key="max_new_tokens").set_value(9)
    page.selectbox(key="cache_kind").set_value(CacheKind.STATIC)
    page.text_area(key="prompt").set_value("typed").run()

    another = reloaded(page)

    assert another.number_input(key="max_new_tokens").value == 9
    assert another.selectbox(key="cache_kind").value is CacheKind.STATIC
    assert another.text_area(key="prompt").value == "typed"


def test_a_reload_keeps_what_was_changed_since_the_run_on_screen(page: AppTest) -> None:
    page.text_area(key="prompt").set_value("hello")
    page.number_input(key="max_new_tokens").set_value(9)
    page.segmented_control(key="choice").set_value(Decoding.SAMPLING).run()
    page.button(key="start").click().run()
    assert set(page.query_params) == {"run"}
    page.number_input(key="max_new_tokens").set_value(64).run()  # the default, but not the run's

    another = reloaded(page)

    assert another.number_input(key="max_new_tokens").value == 64
    assert another.segmented_control(key="choice").value is Decoding.SAMPLING


def test_the_address_is_left_alone_once_it_was_written(page: AppTest) -> None:
    """The browser's back button takes the settings out of it, and must not be undone."""
    page.number_input(key="max_new_tokens").set_value(9).run()
    page.query_params.clear()

    page.run()

    assert not page.query_params
    assert page.number_input(key="max_new_tokens").value == 9


def test_the_bounds_are_those_of_the_widgets(page: AppTest) -> None:
    page.segmented_control(key="choice").set_value(Decoding.SAMPLING).run()
    drawn = {key: name for key, name in WIDGETS["run"].items() if name in BOUNDS}
    widgets = [*page.number_input, *page.slider]
    bounds = {drawn[one.key]: (one.min, one.max) for one in widgets if one.key in drawn}

    assert len(bounds) >= 5
    assert bounds == {name: BOUNDS[name] for name in bounds}


def test_the_address_names_choices_in_words() -> None:
    usual = RunSettings()
    assert said_of(replace(usual, split=Split.NEVER), usual) == {"split": "never"}
