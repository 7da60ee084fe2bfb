"""The Compare page in AppTest: from files and pasted text to runs, and their results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from inference.process.messages import LoadModel, RunEnded, RunStarted
from inference.records.options import AttentionKind
from inference.records.status import RunState
from inference.runs.recordings import COMPARISON, recorded_runs
from tests.app.stage import STAGE, Stage, shown
from tests.builders import run_info
from tests.visuals.traces import trace_of
from visuals.pages.replays import shipped_runs

pytestmark = pytest.mark.app

SCRIPT = str(Path(__file__).with_name("compare_script.py"))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    STAGE.reset(tmp_path)
    STAGE.under_test.load()
    return STAGE


@pytest.fixture
def page(stage: Stage) -> AppTest:
    assert stage.under_test.hub.codec() is not None
    page = AppTest.from_file(SCRIPT, default_timeout=30).run()
    assert not page.exception
    return page


def prompts_run(stage: Stage) -> list[list[str]]:
    return [
        [request.prompt_text for request in generate.requests]
        for generate in stage.under_test.generates()
    ]


def finish_all(stage: Stage) -> None:
    """Let every run of the newest comparison make two steps and end."""
    under_test = stage.under_test
    for index in range(100):
        generates = under_test.generates()
        if index >= len(generates):
            return
        run = under_test.hub.find(generates[index].run_id)
        assert run is not None
        under_test.engine.reply(RunStarted(info=run_info(run.run_id)))
        under_test.step(run, 0, "o")
        under_test.step(run, 1, "k")
        under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))


def paste(page: AppTest, text: str) -> None:
    page.text_area(key="pasted").set_value(text).run()
    assert not page.exception


def test_with_no_prompt_the_page_says_so_and_there_is_nothing_to_press(page: AppTest) -> None:
    """The button was enabled beside "This makes 0 runs." and then answered with an error."""
    said = "".join(caption.value for caption in page.caption)

    assert "No prompt yet" in said
    assert "This makes 0 runs." in said
    assert page.button(key="start-comparison").disabled
    paste(page, "one")
    assert not page.button(key="start-comparison").disabled


def test_pasted_prompts_are_run_one_after_another_after_a_warm_up(
    page: AppTest, stage: Stage
) -> None:
    page.toggle(key="template").set_value(False)
    paste(page, "one\n\ntwo")
    assert "2 runs and 1 warm-up" in "".join(caption.value for caption in page.caption)

    page.button(key="start-comparison").click().run()
    assert prompts_run(stage) == [["one"]]
    finish_all(stage)
    page.run()

    assert not page.exception
    assert prompts_run(stage) == [["one"], ["one"], ["two"]]
    assert page.query_params["runs"]
    assert [one.value for one in page.subheader] == ["Side by side", "Answers", "Charts"]
    assert len(page.get("vega_lite_chart") or page.get("arrow_vega_lite_chart")) == 4


def test_repeats_and_a_batch_are_what_is_asked_for(page: AppTest, stage: Stage) -> None:
    paste(page, "one\n\ntwo")
    page.number_input(key="repeats").set_value(2)
    page.selectbox(key="together").set_value("as one batch")
    page.toggle(key="warm-up").set_value(False).run()

    page.button(key="start-comparison").click().run()
    finish_all(stage)

    assert prompts_run(stage) == [["one", "two"], ["one", "two"]]


def test_an_uploaded_table_shows_its_prompts_tokens_and_what_was_left_out(page: AppTest) -> None:
    content = b'prompt,n\n"hello, world",1\n"",2\n"hello, world",3\n<b>bold</b>,4\n'
    page.file_uploader[0].upload("a.csv", content, "text/csv").run()

    assert not page.exception
    assert page.multiselect(key="chosen").value == [0, 1]
    [preview] = page.dataframe
    assert list(preview.value["prompt"]) == ["hello, world", "<b>bold</b>"]
    assert list(preview.value["tokens"]) == ["14", "13"]
    told = page.warning[0].value
    assert "2 entries left out" in told
    assert "row 2: it is empty" in told
    assert "the same as prompt 1" in told


def test_a_column_can_be_chosen_when_there_is_no_prompt_column(page: AppTest) -> None:
    page.file_uploader[0].upload("a.csv", b"topic,n\nwhy,1\nhow,2\n", "text/csv").run()
    assert "no column prompt" in page.warning[0].value

    page.selectbox(key="column").set_value("topic").run()

    assert not page.exception
    assert not page.warning
    assert page.multiselect(key="chosen").value == [0, 1]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.txt", b"PK\x03\x04", "a ZIP archive"),
        ("a.txt", b"a\x00b\x01 and so on", "binary"),
        ("a.parquet", b"PAR1", "no Parquet file"),
        ("a.json", b"[" * 100_000, "nested too deep"),
        ("a.txt", b"", "empty"),
    ],
)
def test_bad_files_are_a_sentence_and_the_page_lives(
    page: AppTest, stage: Stage, name: str, content: bytes, sentence: str
) -> None:
    page.file_uploader[0].upload(name, content).run()

    assert not page.exception
    assert sentence in page.warning[0].value
    paste(page, "one")
    page.button(key="start-comparison").click().run()
    assert len(prompts_run(stage)) == 1


def test_of_ten_thousand_prompts_sixteen_are_chosen(page: AppTest) -> None:
    content = "prompt\n" + "".join(f"prompt {number}\n" for number in range(10_000))

    page.file_uploader[0].upload("a.csv", content.encode(), "text/csv").run()

    assert not page.exception
    assert page.multiselect(key="chosen").value == list(range(16))
    assert len(page.dataframe[0].value) == 50


def test_one_prompt_is_run_under_every_combination_of_settings(page: AppTest, stage: Stage) -> None:
    page.segmented_control(key="compare-kind").set_value("One prompt, several settings").run()
    page.text_area(key="prompt").set_value("one two three four five six seven")
    page.multiselect(key="vary-chunks").set_value(["at once", "32 per step"])
    page.toggle(key="warm-up").set_value(False).run()
    assert not page.exception

    page.button(key="start-comparison").click().run()
    finish_all(stage)

    assert [one.chunk_tokens for one in stage.under_test.generates()] == [None, 32]


def test_a_chunk_longer_than_the_prompt_fails_alone(page: AppTest, stage: Stage) -> None:
    page.segmented_control(key="compare-kind").set_value("One prompt, several settings").run()
    page.text_area(key="prompt").set_value("one")
    page.multiselect(key="vary-chunks").set_value(["at once", "32 per step"])
    page.multiselect(key="vary-caches").set_value(["dynamic", "static"])
    page.toggle(key="warm-up").set_value(False).run()

    page.button(key="start-comparison").click().run()
    finish_all(stage)
    page.run()

    assert [one.chunk_tokens for one in stage.under_test.generates()] == [None, None]
    said = " ".join(str(element.value) for element in [*page.error, *page.warning, *page.markdown])
    assert "32 tokens is longer than the prompt" in said


def test_each_setting_of_a_prompt_can_be_varied_and_attention_loads_the_model_anew(
    page: AppTest, stage: Stage
) -> None:
    page.segmented_control(key="compare-kind").set_value("One prompt, several settings").run()
    page.toggle(key="warm-up").set_value(False)
    page.multiselect(key="vary-attentions").set_value(["eager"])
    page.multiselect(key="vary-caches").set_value(["dynamic", "static"])
    page.multiselect(key="vary-rows").set_value(["alone", "batch of 2"])
    page.multiselect(key="vary-choice").set_value(["greedy", "temperature 1"]).run()
    assert "8 runs" in "".join(caption.value for caption in page.caption)

    page.button(key="start-comparison").click().run()

    assert not page.exception
    [*_, wanted] = [one for one in stage.under_test.engine.commands if isinstance(one, LoadModel)]
    assert wanted.attention is AttentionKind.EAGER


def test_a_prompt_that_does_not_fit_is_said_and_the_rest_is_compared(
    page: AppTest, stage: Stage
) -> None:
    page.toggle(key="warm-up").set_value(False)
    paste(page, f"one\n\n{'x' * 100}")
    page.button(key="start-comparison").click().run()
    finish_all(stage)

    page.run()

    assert not page.exception
    assert "the model takes 64" in "".join(one.value for one in page.warning)
    assert page.subheader


def test_the_address_shows_kept_runs_and_names_those_that_are_gone(stage: Stage) -> None:
    for run_id, prompt in (("a", b"one"), ("b", b"two")):
        stage.store.save(replace(trace_of([prompt], [b"x", b"y"]), info=run_info(run_id)))
    page = AppTest.from_file(SCRIPT, default_timeout=30)
    page.query_params["runs"] = "a,b,gone,../../x"

    page.run()

    assert not page.exception
    said = shown(page.warning[0].value)
    assert "2 runs in this address are not on this server: gone, ../../x" in said
    assert "nothing to compare" not in said
    html = "".join(one.proto.body for one in page.get("html"))
    assert "one" in html
    assert "two" in html


@pytest.mark.usefixtures("stage")
def test_before_the_first_comparison_a_recorded_one_of_three_prompts_is_shown(
    page: AppTest,
) -> None:
    """The page opened with a form and nothing to see."""
    traces = recorded_runs(COMPARISON)

    [label] = [text.value for text in page.markdown if "recorded comparison" in text.value]
    assert traces[0].info.device.name in label
    assert "press **Compare**" in label
    html = "".join(one.proto.body for one in page.get("html"))
    assert "moving_average" in html
    assert page.expander[0].proto.expanded


def test_recorded_runs_can_be_compared_by_their_names(stage: Stage) -> None:
    stage.store.save(replace(trace_of([b"one"], [b"x", b"y"]), info=run_info("a")))
    page = AppTest.from_file(SCRIPT, default_timeout=30)
    page.query_params["runs"] = f"a,{next(iter(shipped_runs()))}"

    page.run()

    assert not page.exception
    assert not page.warning
    assert not [text for text in page.markdown if "recorded comparison" in text.value]


@pytest.mark.usefixtures("stage")
def test_a_link_to_runs_that_are_all_gone_says_so_above_the_form() -> None:
    page = AppTest.from_file(SCRIPT, default_timeout=30)
    page.query_params["runs"] = "![x](http://evil.example)"

    page.run()

    assert not page.exception
    assert "nothing to compare" in page.warning[0].value
    assert "\\](http" in page.warning[0].value
    kinds = [child.type for child in page.main.children.values()]
    assert kinds.index("warning") < kinds.index("expander"), kinds


@pytest.mark.usefixtures("stage")
def test_a_link_to_a_comparison_that_is_gone_says_so() -> None:
    """It opened an empty form without a word."""
    page = AppTest.from_file(SCRIPT, default_timeout=30)
    page.query_params["group"] = "z[z](x)z"

    page.run()
    page.run()

    assert "comparison z[z](x)z, which is not on this server" in shown(page.warning[0].value)
    assert "\\](x" in page.warning[0].value


def test_markup_in_prompts_and_answers_is_text(stage: Stage) -> None:
    evil = b"<script>x</script>"
    stage.store.save(replace(trace_of([evil], [evil, b"y"]), info=run_info("a")))
    page = AppTest.from_file(SCRIPT, default_timeout=30)
    page.query_params["runs"] = "a"

    page.run()

    html = "".join(one.proto.body for one in page.get("html"))
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_stopping_keeps_what_was_made(page: AppTest, stage: Stage) -> None:
    page.toggle(key="warm-up").set_value(False)
    paste(page, "one\n\ntwo")
    page.button(key="start-comparison").click().run()
    [generate] = stage.under_test.generates()
    run = stage.under_test.hub.find(generate.run_id)
    assert run is not None
    stage.under_test.engine.reply(RunStarted(info=run_info(run.run_id)))
    stage.under_test.step(run, 0, "o")
    page.run()

    page.button(key="stop").click().run()
    stage.under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.STOPPED))
    page.run()

    assert not page.exception
    assert "stopped" in page.warning[0].value
    assert page.subheader
    assert prompts_run(stage) == [["one"]]
