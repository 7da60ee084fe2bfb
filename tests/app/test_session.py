"""The typed session: widgets are drawn from it, and what is typed outlives a switch of pages."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from inference.records.options import CacheKind
from tests.app.stage import STAGE
from visuals import pages
from visuals.pages.session import Session
from visuals.pages.widget_keys import WIDGETS

pytestmark = pytest.mark.app

SCRIPT = str(Path(__file__).with_name("pages_script.py"))
MODULES = sorted(Path(pages.__path__[0]).glob("*.py"))
NAMES = ("tour", "live", "compare", "roofline", "batching", "serving", "device", "runs")


@pytest.fixture
def page(tmp_path: Path) -> AppTest:
    STAGE.reset(tmp_path)
    STAGE.under_test.load()
    return AppTest.from_file(SCRIPT, default_timeout=30).run()


def switched(page: AppTest, name: str) -> AppTest:
    page.query_params.clear()
    STAGE.page = name
    page.run()
    assert not page.exception
    return page


def names_of_state(source: str) -> Iterable[str]:
    """Yield every name and attribute that stands for Streamlit's session state."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr == "session_state":
            yield ast.unparse(node)


def test_a_value_counts_although_its_page_is_left_before_it_is_drawn_again(page: AppTest) -> None:
    """The press that leaves a page stops the script that the value started."""
    page.text_area(key="prompt").set_value("typed just before the press")
    STAGE.page = "none"
    page.run()

    switched(page, "live")

    assert page.text_area(key="prompt").value == "typed just before the press"


def test_one_module_alone_touches_session_state() -> None:
    """Pages read 51 string keys, each with a default of its own."""
    touching = {path.stem for path in MODULES if list(names_of_state(path.read_text("utf-8")))}

    assert len(MODULES) > 20
    assert touching == {"session"}


def test_every_field_that_pages_ask_for_has_one_widget_and_every_widget_a_field() -> None:
    session = Session()

    keys = [key for group in WIDGETS.values() for key in group]
    shown = {group: sorted(names.values()) for group, names in WIDGETS.items()}

    assert len(keys) == len(set(keys))
    assert shown == {
        group: sorted(field.name for field in fields(getattr(session, group))) for group in WIDGETS
    }


def test_no_page_draws_a_mapped_widget_apart_from_its_field() -> None:
    """A widget with a mapped key but a default of its own would be a second source."""
    mapped = {key for group in WIDGETS.values() for key in group}

    literal = {
        (path.name, keyword.value.value)
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "key" and isinstance(keyword.value, ast.Constant)
    }

    assert literal
    assert {(name, key) for name, key in literal if key in mapped} == set()


@pytest.mark.parametrize("between", [name for name in NAMES if name != "live"])
def test_the_prompt_and_the_settings_are_there_after_another_page(
    page: AppTest, between: str
) -> None:
    page.text_area(key="prompt").set_value("mine")
    page.number_input(key="max_new_tokens").set_value(9)
    page.selectbox(key="cache_kind").set_value(CacheKind.STATIC)
    page.segmented_control(key="choice").set_value("sampling").run()
    page.slider(key="temperature").set_value(1.5).run()

    switched(switched(page, between), "live")

    assert page.text_area(key="prompt").value == "mine"
    assert page.number_input(key="max_new_tokens").value == 9
    assert page.selectbox(key="cache_kind").value is CacheKind.STATIC
    assert page.slider(key="temperature").value == 1.5
    page.button(key="start").click().run()
    [generate] = STAGE.under_test.generates()
    [request] = generate.requests
    assert request.prompt_text == "mine"
    assert request.max_new_tokens == 9
    assert request.sampling.temperature == 1.5
    assert generate.cache is CacheKind.STATIC


def test_a_setting_hidden_by_another_keeps_its_value(page: AppTest) -> None:
    page.segmented_control(key="choice").set_value("sampling").run()
    page.slider(key="temperature").set_value(1.2).run()

    page.segmented_control(key="choice").set_value("greedy").run()
    switched(switched(page, "compare"), "live")
    page.segmented_control(key="choice").set_value("sampling").run()

    assert page.slider(key="temperature").value == 1.2


def test_live_and_compare_show_the_same_prompt_and_settings(page: AppTest) -> None:
    page.text_area(key="prompt").set_value("mine").run()
    switched(page, "compare")
    page.segmented_control(key="compare-kind").set_value("One prompt, several settings").run()
    assert page.text_area(key="prompt").value == "mine"

    page.text_area(key="prompt").set_value("changed")
    page.number_input(key="max_new_tokens").set_value(7).run()
    switched(page, "live")

    assert page.text_area(key="prompt").value == "changed"
    assert page.number_input(key="max_new_tokens").value == 7


@pytest.mark.parametrize("between", [name for name in NAMES if name != "compare"])
def test_what_a_comparison_was_given_is_there_after_another_page(
    page: AppTest, between: str
) -> None:
    switched(page, "compare")
    page.file_uploader[0].upload("a.txt", b"from a file", "text/plain").run()
    page.text_area(key="pasted").set_value("one\n\ntwo").run()
    page.multiselect(key="chosen").set_value([1, 2])
    page.number_input(key="repeats").set_value(3)
    page.selectbox(key="run-order").set_value("shuffled each round").run()

    switched(switched(page, between), "compare")

    assert page.text_area(key="pasted").value == "one\n\ntwo"
    assert page.multiselect(key="chosen").value == [1, 2]
    assert page.number_input(key="repeats").value == 3
    assert page.selectbox(key="run-order").value == "shuffled each round"
    [preview] = page.dataframe
    assert list(preview.value["prompt"]) == ["from a file", "one", "two"]


def test_the_questions_of_the_other_pages_are_there_after_a_switch(page: AppTest) -> None:
    switched(page, "roofline")
    page.number_input(key="wi-batch").set_value(64)
    page.selectbox(key="wi-device").set_value("H200").run()
    switched(page, "batching")
    page.pills(key="be-contexts").set_value(["512"])
    page.pills(key="sweep_batches").set_value([2, 4]).run()
    switched(page, "runs")
    page.text_input(key="search").set_value("why").run()

    switched(page, "device")

    assert switched(page, "roofline").number_input(key="wi-batch").value == 64
    assert page.selectbox(key="wi-device").value == "H200"
    assert switched(page, "batching").pills(key="be-contexts").value == ["512"]
    assert page.pills(key="sweep_batches").value == [2, 4]
    assert switched(page, "runs").text_input(key="search").value == "why"


def test_an_example_taken_is_what_stands_in_the_box_after_a_switch(page: AppTest) -> None:
    page.text_area(key="prompt").set_value("mine").run()
    name = page.selectbox(key="example").options[0]
    page.selectbox(key="example").set_value(name).run()
    taken = page.text_area(key="prompt").value

    switched(switched(page, "device"), "live")

    assert taken != "mine"
    assert page.text_area(key="prompt").value == taken
