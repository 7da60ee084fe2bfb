"""The Tour in AppTest: each chapter, its question answered wrong and right, and what is tried."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from inference.process.messages import (
    Generate,
    LoadFailed,
    MeasureCeilings,
    MeasureEnded,
    RunEnded,
    RunStarted,
    Stepped,
)
from inference.records.status import RunState
from inference.runs.recordings import FIRST_RUN, recorded_runs
from tests.app.stage import STAGE, shown
from tests.builders import DEFAULT_LOAD, TINY_DEVICE, model_ready, run_info, step
from tests.visuals.counted import COUNTED_SHAPE
from tests.visuals.live_doubles import MEASURED, HubUnderTest
from visuals.tour.chapters import CHAPTERS, SHORT, Slug, recorded_for
from visuals.tour.facts import facts_of
from visuals.tour.questions import Question
from visuals.tour.texts import (
    ELSEWHERE,
    FINISHED,
    IN_PROGRESS,
    LOADING,
    NO_ROOFS,
    NOTHING_TO_TRY,
    TEXTS,
)

pytestmark = pytest.mark.app

SCRIPT = str(Path(__file__).with_name("tour_script.py"))
LONG_CONTEXT = 10_000


@pytest.fixture
def hub() -> HubUnderTest:
    """Return a hub whose engine holds no model."""
    STAGE.under_test = HubUnderTest()
    return STAGE.under_test


def load(hub: HubUnderTest) -> None:
    """Have the engine hold a model whose work can be counted."""
    hub.hub.preload(DEFAULT_LOAD)
    ready = model_ready(context_limit=LONG_CONTEXT)
    hub.engine.reply(replace(ready, shape=COUNTED_SHAPE, device=TINY_DEVICE))


def open_tour(slug: str | None = None) -> AppTest:
    page = AppTest.from_file(SCRIPT, default_timeout=60)
    if slug is not None:
        page.query_params["step"] = slug
    page.run()
    assert not page.exception
    return page


def said(page: AppTest) -> str:
    """Return every sentence on the page, with ordinary spaces."""
    elements = [
        *(*page.markdown, *page.caption, *page.subheader),
        *(*page.info, *page.success, *page.warning, *page.error),
    ]
    return plain("\n".join(shown(element.value) for element in elements))


def plain(text: str) -> str:
    """Return a text with ordinary spaces."""
    return text.replace("\u00a0", " ")


def address(page: AppTest, name: str) -> str:
    """Return what the address says of something."""
    value = page.query_params[name]
    return value[0] if isinstance(value, list) else str(value)


def panel_data(page: AppTest) -> dict[str, object]:
    every = [json.loads(each.proto.json) for each in page.get("bidi_component")]
    [panel] = [data for data in every if "run_id" in data]
    return panel


def answer(page: AppTest, slug: Slug, text: str) -> None:
    if page.radio:
        page.radio(key=f"tour-answer-{slug}").set_value(text)
    else:
        page.number_input(key=f"tour-answer-{slug}").set_value(int(text))
    [check] = [button for button in page.button if button.label == "Check the answer"]
    check.click().run()
    assert not page.exception


def recorded_question(slug: Slug) -> Question:
    chapter = next(one for one in CHAPTERS if one.slug is slug)
    facts = facts_of(recorded_for(chapter, recorded_runs(FIRST_RUN)[0]))
    assert facts is not None
    return TEXTS[slug].question(facts)


def newest(hub: HubUnderTest) -> Generate:
    return hub.generates()[-1]


def finish(hub: HubUnderTest, decode_steps: int = 3) -> None:
    """Let the engine make the run that was asked for last."""
    generate = newest(hub)
    info = replace(run_info(generate.run_id), shape=COUNTED_SHAPE)
    hub.engine.reply(RunStarted(info=info))
    prompt = len(generate.requests[0].prompt_ids)
    for index in range(decode_steps + 1):
        event = step(index, prompt, 65)
        rows = tuple(
            replace(event.rows[0], request_id=request.request_id, slot=slot)
            for slot, request in enumerate(generate.requests)
        )
        hub.engine.reply(Stepped(run_id=generate.run_id, event=replace(event, rows=rows)))
    hub.engine.reply(RunEnded(run_id=generate.run_id, state=RunState.DONE))


@pytest.mark.parametrize("slug", Slug)
def test_a_chapter_confirms_the_right_answer_and_explains_a_wrong_one(
    hub: HubUnderTest, slug: Slug
) -> None:
    assert hub.hub.engine_status().ready is None
    question = recorded_question(slug)
    others = [option for option in question.options if option != question.answer]
    page = open_tour(slug)

    answer(page, slug, others[0] if others else str(int(question.answer) + 7))
    assert plain(question.wrong) in said(page)
    assert plain(question.right) not in said(page)
    assert "0 of 7 questions answered" in said(page)

    answer(page, slug, question.answer)
    assert plain(question.right) in said(page)
    assert plain(question.wrong) not in said(page)
    assert "1 of 7 questions answered" in said(page)
    assert address(page, "done") == slug


@pytest.mark.parametrize("slug", Slug)
def test_without_a_model_a_chapter_plays_the_recording_and_says_so(
    hub: HubUnderTest, slug: Slug
) -> None:
    assert hub.hub.engine_status().ready is None

    page = open_tour(slug)

    device = recorded_runs(FIRST_RUN)[0].info.device.name
    assert f"A recorded run** from {device}" in said(page)
    assert ELSEWHERE in said(page)
    assert NOTHING_TO_TRY in said(page)
    assert str(panel_data(page)["run_id"]).startswith("replay-")
    assert panel_data(page)["label"] == "recorded run"
    chapter = next(one for one in CHAPTERS if one.slug is slug)
    assert panel_data(page)["panels"] == list(chapter.panels)
    assert len(page.get("vega_lite_chart")) == (slug in (Slug.BATCHING, Slug.CONTEXT))


def test_while_the_model_loads_or_when_it_cannot_the_page_says_why(hub: HubUnderTest) -> None:
    hub.hub.preload(DEFAULT_LOAD)
    page = open_tour()
    assert LOADING in said(page)

    hub.engine.reply(LoadFailed(request=DEFAULT_LOAD, sentence="no *room* for it"))
    page.run()

    assert "No model could be loaded here, so nothing can be run: no *room* for it" in said(page)


def test_an_unknown_chapter_is_said_and_the_first_one_shown(hub: HubUnderTest) -> None:
    assert hub.hub.engine_status().ready is None

    page = open_tour("non*sense*")

    assert "The tour has no chapter named non*sense*" in said(page)
    assert "1 of 7: One forward pass" in said(page)
    page.button(key="tour-next").click().run()
    assert "no chapter named" not in said(page)
    assert address(page, "step") == "cache"


def test_the_way_leads_through_all_chapters_and_back_and_ends_with_a_word(
    hub: HubUnderTest,
) -> None:
    assert hub.hub.engine_status().ready is None
    page = open_tour()
    assert page.button(key="tour-back").disabled

    for number, chapter in enumerate(CHAPTERS, start=1):
        assert f"{number} of 7: {TEXTS[chapter.slug].title}" in said(page)
        assert address(page, "step") == chapter.slug
        answer(page, chapter.slug, recorded_question(chapter.slug).answer)
        if number < len(CHAPTERS):
            page.button(key="tour-on").click().run()

    assert FINISHED in said(page)
    assert page.button(key="tour-next").disabled
    page.button(key="tour-back").click().run()
    assert "6 of 7" in said(page)
    assert plain(recorded_question(Slug.BATCHING).right) in said(page)  # as it was answered
    page.button(key="tour-go-mask").click().run()
    assert "3 of 7" in said(page)


def test_the_address_takes_the_tour_up_again_and_nonsense_in_it_counts_for_nothing(
    hub: HubUnderTest,
) -> None:
    assert hub.hub.engine_status().ready is None
    page = AppTest.from_file(SCRIPT, default_timeout=60)
    page.query_params["step"] = "roofline"
    page.query_params["done"] = "mask,nonsense,,cache"
    page.run()

    assert not page.exception
    assert "5 of 7" in said(page)
    assert "2 of 7 questions answered" in said(page)
    assert address(page, "done") == "cache,mask"


def test_the_page_makes_the_run_of_a_chapter_once_and_tells_its_numbers(
    hub: HubUnderTest,
) -> None:
    load(hub)
    page = open_tour(Slug.CACHE)
    assert IN_PROGRESS in said(page)
    assert not page.number_input

    finish(hub)
    page.run()

    assert len(hub.generates()) == 1
    assert panel_data(page)["run_id"] == newest(hub).run_id
    run = hub.hub.find(newest(hub).run_id)
    assert run is not None
    assert not run.is_kept
    assert "Here 1 + 3 = **4 steps**" in said(page)
    stored = len(newest(hub).requests[0].prompt_ids) + 3
    answer(page, Slug.CACHE, str(stored))
    assert "1 of 7 questions answered" in said(page)


def test_what_is_tried_stands_beside_what_was_before(hub: HubUnderTest) -> None:
    load(hub)
    page = open_tour(Slug.FORWARD_PASS)
    finish(hub, 0)
    page.run()
    first = len(newest(hub).requests[0].prompt_ids)
    assert "What changed" not in said(page)

    page.pills(key="tour-try-forward-pass").set_value(SHORT.name).run()
    finish(hub, 0)
    page.run()

    [request] = newest(hub).requests
    assert request.prompt_text == "Hi!"
    assert request.max_new_tokens == 1
    assert len(request.prompt_ids) == 3  # a token for each letter, no chat markers
    [table] = [html.value for html in page.get("html") if '<th scope="col">before' in html.value]
    assert f"What changed:** your prompt \u2192 {SHORT.name}" in said(page)
    assert f"<td>Tokens fed (T)</td><td>{first}</td><td>{len(request.prompt_ids)}</td>" in table


def test_the_readers_own_prompt_is_fed_in_every_chapter(hub: HubUnderTest) -> None:
    load(hub)
    page = open_tour(Slug.FORWARD_PASS)
    finish(hub, 0)

    page.text_area(key="tour-prompt").set_value("my own words").run()
    finish(hub, 0)
    page.button(key="tour-next").click().run()

    assert [one.requests[0].prompt_text for one in hub.generates()[1:]] == ["my own words"] * 2
    assert page.text_area(key="tour-prompt").value == "my own words"


def test_a_run_is_made_again_on_request(hub: HubUnderTest) -> None:
    load(hub)
    page = open_tour(Slug.CACHE)
    finish(hub)
    page.run()

    page.button(key="tour-again").click().run()

    assert len(hub.generates()) == 2
    assert IN_PROGRESS in said(page)


def test_a_prompt_that_cannot_be_fed_is_said_and_the_recording_stands_in(
    hub: HubUnderTest,
) -> None:
    load(hub)
    page = open_tour(Slug.CACHE)

    page.text_area(key="tour-prompt").set_value("  ").run()

    assert "the prompt is empty" in said(page)
    assert str(panel_data(page)["run_id"]).startswith("replay-")


def test_a_chapter_on_roofs_shows_the_recording_until_they_are_measured(hub: HubUnderTest) -> None:
    load(hub)
    page = open_tour(Slug.ROOFLINE)
    assert NO_ROOFS in said(page)
    assert hub.generates() == []

    hub.hub.measure(MeasureCeilings())
    hub.engine.reply(MeasureEnded(ceilings=MEASURED))
    page.run()

    assert NO_ROOFS not in said(page)
    assert len(hub.generates()) == 1


def test_the_rows_of_a_batch_are_the_readers_prompt_as_often(hub: HubUnderTest) -> None:
    load(hub)
    hub.hub.measure(MeasureCeilings())
    hub.engine.reply(MeasureEnded(ceilings=MEASURED))
    page = open_tour(Slug.BATCHING)
    finish(hub)
    page.run()

    page.pills(key="tour-try-batching").set_value("4 rows").run()
    finish(hub)
    page.run()

    assert len(newest(hub).requests) == 4
    assert len(page.get("vega_lite_chart")) == 1
    [table] = [html.value for html in page.get("html") if '<th scope="col">before' in html.value]
    assert "What changed:** 1 row \u2192 4 rows" in said(page)
    assert "<td>Rows</td><td>1</td><td>4</td>" in table
