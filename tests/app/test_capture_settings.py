"""The settings of chunks, cache and looking on the Live page, on a scripted engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from inference.records.attention import AttentionChoice
from inference.records.options import AttentionKind, AttentionOption, CacheKind, CacheOption
from tests.app.stage import STAGE
from tests.builders import DEFAULT_LOAD, model_ready
from tests.visuals.live_doubles import HubUnderTest

pytestmark = pytest.mark.app

SCRIPT = str(Path(__file__).with_name("live_script.py"))
REASON = "the library quantises only where every layer attends to the whole context"
CACHES = (
    CacheOption(kind=CacheKind.DYNAMIC),
    CacheOption(kind=CacheKind.STATIC),
    CacheOption(kind=CacheKind.QUANTISED, reason=REASON),
)
NO_SDPA = "the library has none for this architecture"
ATTENTIONS = (
    AttentionOption(kind=AttentionKind.AUTO),
    AttentionOption(kind=AttentionKind.SDPA, reason=NO_SDPA),
    AttentionOption(kind=AttentionKind.EAGER),
    AttentionOption(kind=AttentionKind.FLASH, reason="it needs an NVIDIA GPU"),
)


@pytest.fixture
def hub() -> HubUnderTest:
    STAGE.under_test = HubUnderTest()
    STAGE.under_test.hub.preload(DEFAULT_LOAD)
    STAGE.under_test.engine.reply(replace(model_ready(), caches=CACHES, attentions=ATTENTIONS))
    return STAGE.under_test


@pytest.fixture
def page(hub: HubUnderTest) -> AppTest:
    assert hub.hub.engine_status().ready is not None
    return AppTest.from_file(SCRIPT, default_timeout=30).run()


def start(page: AppTest) -> None:
    page.text_area(key="prompt").set_value("hello")
    page.button(key="start").click().run()
    assert not page.exception


def test_a_run_feeds_its_prompt_at_once_and_is_captured_unless_told_otherwise(
    page: AppTest, hub: HubUnderTest
) -> None:
    start(page)

    [generate] = hub.generates()
    assert generate.chunk_tokens is None
    assert generate.cache is CacheKind.DYNAMIC
    assert generate.capture == AttentionChoice(layer=1)


def test_chunks_cache_and_capturing_reach_the_engine(page: AppTest, hub: HubUnderTest) -> None:
    page.number_input(key="chunk_tokens").set_value(4)
    page.selectbox(key="cache_kind").set_value(CacheKind.STATIC)
    page.toggle(key="captures").set_value(False)

    start(page)

    [generate] = hub.generates()
    assert generate.chunk_tokens == 4
    assert generate.cache is CacheKind.STATIC
    assert generate.capture is None


def test_a_cache_that_the_model_cannot_have_is_not_offered_and_the_reason_is_said(
    page: AppTest,
) -> None:
    offered = page.selectbox(key="cache_kind").options

    assert [label.partition(":")[0] for label in offered] == ["dynamic", "static"]
    assert any(REASON in caption.value for caption in page.caption)


def test_an_attention_the_model_cannot_have_is_explained_and_flash_is_offered_only_where_it_is(
    page: AppTest, hub: HubUnderTest
) -> None:
    offered = page.selectbox(key="attention").options
    page.selectbox(key="attention").set_value(AttentionKind.SDPA)
    page.run()

    assert [label.partition(":")[0] for label in offered] == ["auto", "sdpa", "eager"]
    assert any(NO_SDPA in caption.value for caption in page.caption)
    page.selectbox(key="attention").set_value(AttentionKind.EAGER)
    start(page)
    wanted = replace(DEFAULT_LOAD, attention=AttentionKind.EAGER)
    assert wanted in hub.engine.commands
