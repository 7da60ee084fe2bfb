import assert from "node:assert/strict";
import { test } from "node:test";

import "./dom.js";
import { tipOf } from "../../visuals/panel/scripts/chart_view.js";

test("a chart's tip is the panel's own, since Vega's would lie under presenter mode", () => {
  const shown = [];
  const tip = { show: (_anchor, nodes) => shown.push(nodes.map((node) => node.textContent)), hide: () => shown.push(null) };
  const show = tipOf(tip);

  show(null, { clientX: 1, clientY: 2 }, null, { step: "3", time: "<b>9 ms</b>" });
  show(null, { clientX: 1, clientY: 2 }, null, "a note");
  show(null, null, null, null);

  assert.deepEqual(shown, [["step: 3", "time: <b>9 ms</b>"], ["a note"], null]);
});
