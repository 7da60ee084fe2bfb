"""A chart that is added to while a run goes looks as if Vega had drawn all of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import BrowserContext

from inference.records.status import RunState, RunStatus
from inference.runs.recordings import FIRST_RUN, recorded_runs
from tests.browser.conftest import Server
from visuals.live.frames import frame
from visuals.panel.contents import chart_specs
from visuals.panel.routes import scripts_address, vega_address

CHARTS = ("prefill_step_times", "decode_step_times", "roofline_step")
# Draws one chart twice from the tables of a run's frames: added to frame by frame, and at once.
DRAW = """async ([name, spec, frames, scripts, vega]) => {
  const { ChartView } = await import(scripts + "chart_view.js");
  const { Store } = await import(scripts + "store.js");
  await import(vega);
  const theme = { text: "#31333f", background: "#ffffff", border: "#cccccc", font: "sans-serif" };
  const draw = async (isAdded) => {
    const node = document.createElement("div");
    node.style.cssText = "position: absolute; inset: 0 auto auto 0; width: 460px; height: 300px";
    document.body.replaceChildren(node);
    const store = new Store();
    const load = async () => window.vegaEmbed;
    const ctx = { store, theme, data: { specs: { [name]: spec } }, vega: { load } };
    const chart = new ChartView(node, name, ctx);
    let added = 0;
    for (const tables of frames) {
      store.take(tables);
      if (!isAdded) continue;
      await chart.draw({ isUnseen: true, isGoing: true });
      added = Math.max(added, chart.tail.added(name).length);
    }
    if (!isAdded) await chart.draw({ isUnseen: true, isGoing: false });
    const sheet = document.createElement("canvas");
    const pictures = [...node.querySelectorAll("canvas")].filter((one) => !one.hidden);
    [sheet.width, sheet.height] = [pictures[0].width, pictures[0].height];
    const pen = sheet.getContext("2d", { willReadFrequently: true });
    for (const picture of pictures) pen.drawImage(picture, 0, 0);
    chart.close();
    const pixels = pen.getImageData(0, 0, sheet.width, sheet.height).data;
    return { added, pixels, pictures: pictures.length };
  };
  const [tail, whole] = [await draw(true), await draw(false)];
  let inked = 0;
  let other = 0;
  for (let at = 3; at < whole.pixels.length; at += 4) {
    inked += whole.pixels[at] > 0;
    const differs = (part) => Math.abs(whole.pixels[at - part] - tail.pixels[at - part]) > 60;
    other += [0, 1, 2, 3].some(differs);
  }
  const pictures = [tail.pictures, whole.pictures];
  return { added: tail.added, pictures, inked, other };
}"""
AS_ONE = 0.01  # of the inked pixels: where two marks meet, smoothing depends on which came first


@pytest.mark.parametrize("name", CHARTS)
def test_added_marks_look_as_vega_draws_them(
    server: Server, context: BrowserContext, name: str
) -> None:
    page = context.new_page()
    page.goto(f"{server.url}/_stcore/health")
    scripts, vega = f"{server.url}/{scripts_address()}/0/", f"{server.url}/{vega_address()}"
    given = [name, chart_specs()[name], _tables(name), scripts, vega]
    drawn: dict[str, Any] = page.evaluate(DRAW, given)
    page.close()

    assert drawn["pictures"][1] == 1
    assert name == "prefill_step_times" or drawn["added"] > 0
    assert drawn["inked"] > 1000
    assert drawn["other"] <= AS_ONE * drawn["inked"]


def _tables(name: str) -> list[dict[str, object]]:
    """Return the tables of one chart, from frames of a run that grew by a few steps each."""
    trace = recorded_runs(FIRST_RUN)[0]
    ends = [*range(1, len(trace.events), 5), len(trace.events)]
    made: list[dict[str, object]] = []
    cursor = 0
    for end in ends:
        grown = replace(trace, events=trace.events[:end])
        one = json.loads(json.dumps(frame(grown, RunStatus(state=RunState.RUNNING), cursor)))
        cursor = one["to"]
        made.append({key: rows for key, rows in one["rows"].items() if key.startswith(name)})
    return made
