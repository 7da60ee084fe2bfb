"""The page that plays a run: one file, nothing from elsewhere, and prompts that stay text."""

from __future__ import annotations

import base64
import gzip
import json
import re
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
import pytest

from inference.records.attention import AttentionChoice, AttentionMap
from inference.records.run import RunTrace
from inference.records.status import RunState
from inference.runs.packed_attention import packed
from tests.builders import run_info
from tests.visuals.traces import empty_trace, trace_of
from visuals.charts.units import byte_text
from visuals.panel.contents import chart_specs
from visuals.panel.player_page import MOST_BYTES, PlayerPage, player_page
from visuals.panel.terms_file import terms_file

EVIL = '</script><!--<img src=x onerror="hacked()">\u2028{{}}\\'
HALF_PAIR = "half of a pair: \ud83d"
RANDOM = np.random.default_rng(0)


def html_of(page: PlayerPage) -> str:
    return page.content.decode()


def held(html: str, name: str) -> Any:  # noqa: ANN401  whatever JSON it is
    """Return what an element of the page holds."""
    [content] = re.findall(rf'<script type="text/plain" id="{name}">([^<]*)</script>', html)
    return json.loads(gzip.decompress(base64.b64decode(content)))


def scripts_of(html: str) -> list[str]:
    return re.findall(r'<script type="module">(.*?)</script>', html, re.DOTALL)


def digest_of(script: str) -> str:
    return base64.b64encode(sha256(script.encode()).digest()).decode()


def without_scripts(html: str) -> str:
    """Return what a browser reads as markup."""
    return re.sub(r"<script[ >].*?</script>|<style>.*?</style>", "", html, flags=re.DOTALL)


def evil_run() -> RunTrace:
    trace = trace_of([EVIL.encode()], [b" x", EVIL.encode(), b" z"])
    return replace(trace, info=replace(run_info(), model_id=f"model {EVIL}", kernels=EVIL))


def with_weights(trace: RunTrace, heads: int) -> RunTrace:
    """Return the run with weights of all heads of one layer that compress as badly as any."""
    prompt = len(trace.requests[0].prompt_ids)
    sizes = [(0, prompt), *((prompt + at, 1) for at in range(len(trace.events) - 1))]
    choice = AttentionChoice(layer=1, is_all_heads=True)
    maps = [
        AttentionMap(
            choice=choice,
            step_index=step,
            heads=tuple(range(heads)),
            query_start=start,
            query_tokens=queries,
            kv_tokens=start + queries,
            weights=RANDOM.random((heads, queries, start + queries)).astype(np.float16),
        )
        for step, (start, queries) in enumerate(sizes)
    ]
    one = packed(choice, maps)
    assert one is not None
    return replace(trace, attention=(one,))


def test_the_page_runs_its_own_scripts_and_loads_nothing() -> None:
    html = html_of(player_page(trace_of([b"a"], [b"b", b"c"])))

    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    scripts = scripts_of(html)
    digests = [f"'sha256-{digest_of(one)}'" for one in scripts]
    assert rules == {
        "default-src": "'none'",
        "script-src": " ".join((*digests, "'unsafe-eval'")),
        "style-src": "'unsafe-inline'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert len(scripts) == 2
    assert "window.vegaEmbed" in scripts[0]
    assert re.findall(r"^\s*import[ {]", scripts[1], re.MULTILINE) == []
    markup = without_scripts(html)
    assert re.findall(r"\b(?:src|href|action|srcset)=", markup) == []
    assert re.findall(r"@import|url\(", html.partition("</style>")[0]) == []
    # In the panel's own script no address of another host stands, nor in what it is given.
    assert re.findall(r"https?://", scripts[1] + markup) == []


def test_nothing_of_a_run_is_markup_or_script() -> None:
    html = html_of(player_page(evil_run()))

    markup = without_scripts(html)
    assert html.count("<script") == html.count("</script>") == 4
    assert "hacked()" in markup
    assert "<img" not in markup
    assert "<!--" not in html
    assert "&lt;/script&gt;&lt;!--&lt;img src=x" in markup
    frames = held(html, "frames")
    assert frames[0][0]["prompt"][0][3].startswith("</script>")
    assert frames[0][0]["model"]["id"] == f"model {EVIL}"


def test_half_of_a_surrogate_pair_is_no_bar() -> None:
    trace = trace_of([b"a"], [b"b"])
    request = replace(trace.requests[0], prompt_text=HALF_PAIR)
    page = player_page(replace(trace, requests=(request,)))

    assert '<h1 translate="no">half of a pair: ?</h1>' in html_of(page)


def test_the_panel_is_given_what_the_live_page_gives_it() -> None:
    trace = trace_of([b"a"], [b"b", b"c"])

    html = html_of(player_page(trace, title="A run of mine"))

    about = held(html, "about")
    assert about["panel"]["specs"] == json.loads(json.dumps(chart_specs()))
    assert about["panel"]["state"] == trace.state
    assert set(about["panel"]["explanations"]["roofline"]) >= {"what", "read", "formula"}
    assert (about["stops"], len(about["ends_s"])) == ([0, 1, 2], 3)
    assert about["terms"] == json.loads(terms_file())
    assert about["weights"] == []
    assert about["no_weights"] == "This page holds no attention weights."
    assert held(html, "frames")[0][0]["model"]["captured"] is False
    assert '<h1 translate="no">A run of mine</h1>' in html
    assert "<dt>time to first token (TTFT)</dt>" in html
    assert "<dt>Number format</dt><dd>float32</dd>" in html


@pytest.mark.parametrize("heads", [1, 32])
def test_200_steps_with_the_weights_of_one_layer_take_5_mb_at_most(heads: int) -> None:
    prompt = [b"%d" % (number % 50) for number in range(100)]
    trace = with_weights(trace_of(prompt, [b"%d" % at for at in range(200)]), heads)

    page = player_page(trace)

    assert len(page.content) <= MOST_BYTES
    assert page.remarks == ()
    about = held(html_of(page), "about")
    assert len(about["stops"]) == 201
    assert about["weights"][0]["choice"]["all"] is True
    assert held(html_of(page), "frames")[0][0]["model"]["captured"] is True


def test_a_long_run_says_where_it_can_be_held() -> None:
    trace = trace_of([b"a"], [b"%d" % at for at in range(1000)])

    page = player_page(trace)

    assert len(page.content) <= MOST_BYTES
    assert page.remarks == (
        "All 1,000 steps are drawn, and the run can be held after every 3 of them.",
    )
    assert page.remarks[0] in html_of(page)


def test_a_run_that_is_too_large_says_how_far_it_goes() -> None:
    trace = trace_of([b"a"], [RANDOM.bytes(400).hex().encode() for _ in range(300)])
    whole = player_page(trace)
    most = len(whole.content)  # without the room that is kept free

    page = player_page(trace, most_bytes=most)

    steps = held(html_of(page), "about")["stops"][-1]
    assert whole.remarks == ()
    assert 0 < steps < 300
    assert len(page.content) <= most
    assert page.remarks == (
        f"This page holds the first {steps} of 300 steps: with more it would take over "
        f"{byte_text(most)}. The run file has all of them.",
    )
    assert page.remarks[0] in html_of(page)


def test_weights_that_are_left_out_are_said() -> None:
    trace = with_weights(trace_of([b"p"] * 4, [b"a", b"b"]), 2)
    [one] = trace.attention

    page = player_page(replace(trace, attention=(replace(one, body="AAAA"),)))

    [said] = page.remarks
    assert said.startswith(
        "Attention weights that the run file has and this page does not: layer 1"
    )
    assert held(html_of(page), "frames")[0][0]["model"]["captured"] is False


@pytest.mark.parametrize("state", [RunState.FAILED, RunState.STOPPED])
def test_a_run_that_ended_before_its_first_step_has_a_page(state: RunState) -> None:
    page = player_page(replace(empty_trace(), state=state, message="No memory was left."))

    [[only]] = held(html_of(page), "frames")
    assert (only["run"]["state"], only["run"]["message"]) == (state, "No memory was left.")
