import assert from "node:assert/strict";
import { test } from "node:test";

import { ChartPace, LEAST_PAUSE_MS, LONGEST_PAUSE_MS, SHARE } from "../../visuals/panel/scripts/chart_pace.js";

test("a chart that was never drawn is drawn at once", () => {
  assert.equal(new ChartPace().leftMs(0), 0);
});

test("a chart that is drawn fast keeps to the least pause", () => {
  const pace = new ChartPace();
  pace.drawn(1000, 0.5);
  assert.equal(pace.leftMs(1000), LEAST_PAUSE_MS);
  assert.equal(pace.leftMs(1000 + LEAST_PAUSE_MS), 0);
});

test("drawing takes its share of the time and no more", () => {
  const pace = new ChartPace();
  for (let time = 0; time < 20; time += 1) pace.drawn(1000 * time, 6);
  assert.ok(Math.abs(pace.pauseMs - 6 / SHARE) < 1);
});

test("the pause has an end, however long a chart takes", () => {
  const pace = new ChartPace();
  pace.drawn(0, 500);
  assert.equal(pace.pauseMs, LONGEST_PAUSE_MS);
});

test("one long drawing is forgotten", () => {
  const pace = new ChartPace();
  pace.drawn(0, 300);
  for (let time = 1; time < 30; time += 1) pace.drawn(time, 1);
  assert.equal(pace.pauseMs, LEAST_PAUSE_MS);
});
