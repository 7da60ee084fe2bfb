import assert from "node:assert/strict";
import { test } from "node:test";

import "./dom.js";
import { makePanel } from "../../visuals/panel/scripts/elements.js";

/** A panel between these pixels of a page that is 1,100 wide, with its help opened. */
function opened(left, right) {
  const page = document.createElement("div");
  const { panel, help } = makePanel("test", "Test", { what: "It is a test." });
  page.append(panel);
  page.getBoundingClientRect = () => new DOMRect(0, 0, 1100, 600);
  panel.getBoundingClientRect = () => new DOMRect(left, 0, right - left, 300);
  help.click();
  return panel.querySelector(".more");
}

test("help opens beside the chart that it explains, and never over it", () => {
  assert.equal(opened(0, 350).dataset.side, "right");
  assert.equal(opened(750, 1100).dataset.side, "left");
  assert.equal(opened(0, 1100).dataset.side, "below");
  assert.equal(opened(0, 350).hidden, false);
});
