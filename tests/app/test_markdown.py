"""Text that is not ours is shown as text: nothing of an address or a run file becomes markup."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from inference.process.messages import LoadFailed, MeasureEnded, RunEnded, RunStarted, SweepTokens
from inference.records.model import DeviceOption
from inference.records.options import CacheKind, CacheOption, DecodeMode, DecodeOption
from inference.records.run import RunTrace
from inference.records.status import RunState
from inference.runs.run_file import to_json
from tests.app.stage import STAGE, Stage, shown
from tests.builders import DEFAULT_LOAD, model_ready, run_info
from tests.visuals.traces import trace_of
from visuals.pages.markdown import escaped, quoted

pytestmark = pytest.mark.app

SCRIPT = str(Path(__file__).with_name("pages_script.py"))
HOSTILE = "![x](http://e.example/x.png) <b>:red[*x*]"
LINK = "http://e.example"
KINDS = ("markdown", "caption", "info", "warning", "error", "success", "toast", "progress")
LABELLED = ("metric", "button", "checkbox", "selectbox", "multiselect", "text_input", "popover")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    STAGE.reset(tmp_path)
    return STAGE


def hostile_run(run_id: str = "evil") -> RunTrace:
    """Return a run whose every free text tries to be markup."""
    info = run_info(run_id)
    device = replace(info.device, name=HOSTILE, dtype=HOSTILE)
    return replace(
        trace_of([HOSTILE.encode()], [b"x", HOSTILE.encode()]),
        info=replace(info, model_id=HOSTILE, device=device, versions=(("torch", HOSTILE),)),
    )


def opened(name: str, **params: str) -> AppTest:
    page = AppTest.from_file(SCRIPT, default_timeout=30)
    STAGE.page = name
    for key, value in params.items():
        page.query_params[key] = value
    page.run()
    assert not page.exception
    return page


def texts(page: AppTest) -> Iterator[str]:
    """Yield every text on the page that Streamlit reads as Markdown."""
    for kind in KINDS:
        for element in page.get(kind):
            proto = element.proto
            yield str(getattr(proto, "body", "") or getattr(proto, "text", ""))
    for kind in LABELLED:
        for element in page.get(kind):
            yield str(getattr(element.proto, "label", ""))
            yield str(getattr(element.proto, "help", ""))


def check_text_only(page: AppTest, *, times: int = 1) -> None:
    """Assert that the hostile text is on the page, and nowhere as markup or a link."""
    every = list(texts(page))
    assert sum(HOSTILE in shown(text) for text in every) >= times, every
    for text in every:
        assert HOSTILE not in text
        assert LINK not in text


@pytest.mark.parametrize(
    "text",
    [
        HOSTILE,
        "[a](b) `c` **d** _e_ ~f~ | g | $h$ # i :material/x: <img src=x> \\",
        "- a",
        "+ a",
        "1. a",
        "12) a",
        "> a",
        "# a",
        "--- ",
        "www.e.example",
        "a@e.example",
    ],
)
def test_escaped_text_reads_the_same_and_every_mark_is_escaped(text: str) -> None:
    marked = escaped(text)

    assert shown(marked) == " ".join(text.split())
    bare = marked.replace("\\\\", "")
    for index, mark in enumerate(bare):
        if mark in "`*_[]$<>:#~|!":
            assert bare[index - 1] == "\\"
    assert not bare.startswith(("-", "+", "1.", "12)"))
    assert "www.e" not in marked
    assert "@e" not in marked


def test_what_a_user_wrote_is_kept_apart_from_the_sentence_around_it() -> None:
    assert quoted("K/V *cache*.txt") == f"\u2068{escaped('K/V *cache*.txt')}\u2069"


def test_lines_of_a_text_begin_no_block() -> None:
    assert "\n" not in escaped("a\n\n- b\n# c")


@pytest.mark.parametrize("name", ["live", "runs"])
def test_a_run_in_the_address_is_text(stage: Stage, name: str) -> None:
    stage.under_test.hub.preload(DEFAULT_LOAD)

    check_text_only(opened(name, run=HOSTILE))


def test_an_opened_run_file_and_its_name_are_text(stage: Stage) -> None:
    assert not stage.under_test.hub.runs()
    page = opened("live")
    content = gzip.compress(to_json((hostile_run(),)).encode())

    page.file_uploader[0].upload(f"{HOSTILE}.json.gz", content).run()
    check_text_only(page)
    page.file_uploader[0].upload(f"{HOSTILE}.json", b"{}").run()

    assert "json" in shown(page.error[0].value)
    check_text_only(page)


def test_a_kept_run_is_text_on_the_list_played_again_and_imported(stage: Stage) -> None:
    stage.store.save(hostile_run())
    page = opened("runs")
    check_text_only(page)

    page.file_uploader[0].upload(f"{HOSTILE}.json", to_json((hostile_run("two"),)).encode()).run()
    check_text_only(page, times=2)

    check_text_only(opened("runs", run="evil"))


def test_what_the_engine_says_of_model_and_device_is_text(stage: Stage) -> None:
    ready = model_ready()
    stage.under_test.hub.preload(DEFAULT_LOAD)
    stage.under_test.engine.reply(
        replace(
            ready,
            model_id=f"a/{HOSTILE}",
            device=replace(ready.device, name=HOSTILE, dtype=HOSTILE),
            device_note=HOSTILE,
            devices=(DeviceOption(name=HOSTILE, label=HOSTILE),),
            caches=(CacheOption(kind=CacheKind.STATIC, reason=HOSTILE),),
            decodes=(DecodeOption(mode=DecodeMode.EAGER, reason=HOSTILE),),
        )
    )

    for name in ("live", "roofline", "batching", "device"):
        page = opened(name)
        for text in texts(page):
            assert HOSTILE not in text
            assert LINK not in text
    check_text_only(opened("live"))
    check_text_only(opened("device"))


@pytest.mark.parametrize("name", ["live", "roofline"])
def test_why_a_model_did_not_load_is_text(stage: Stage, name: str) -> None:
    stage.under_test.hub.preload(DEFAULT_LOAD)
    stage.under_test.engine.reply(LoadFailed(request=DEFAULT_LOAD, sentence=HOSTILE))

    check_text_only(opened(name))


def test_why_a_measurement_ended_is_text(stage: Stage) -> None:
    stage.under_test.load()
    stage.under_test.hub.measure(SweepTokens(counts=(1,)))
    stage.under_test.engine.reply(MeasureEnded(sentence=HOSTILE))

    check_text_only(opened("roofline"))


def test_prompt_files_and_failed_runs_of_a_comparison_are_text(stage: Stage) -> None:
    stage.under_test.load()
    page = opened("compare")
    page.file_uploader[0].upload(f"{HOSTILE}.csv", b"topic,n\nwhy,1\n", "text/csv").run()
    check_text_only(page)

    page.toggle(key="warm-up").set_value(False)
    page.text_area(key="pasted").set_value(HOSTILE).run()
    page.button(key="start-comparison").click().run()
    check_text_only(page)
    [generate] = stage.under_test.generates()
    stage.under_test.engine.reply(RunStarted(info=run_info(generate.run_id)))
    failed = RunEnded(run_id=generate.run_id, state=RunState.FAILED, message=HOSTILE)
    stage.under_test.engine.reply(failed)
    page.run()

    check_text_only(page)
