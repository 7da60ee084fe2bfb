import assert from "node:assert/strict";
import { test } from "node:test";

import "./dom.js";
import { HeaderPanel } from "../../visuals/panel/scripts/header.js";

const RUN = { state: "running", final: false, message: "", stage: "", stage_ratio: null, queue_position: null };

test("what the self-check of the run's model found to differ stands by the figures, as text", () => {
  const parent = document.createElement("div");
  const header = new HeaderPanel(parent, { data: {} });

  header.update({ run: { ...RUN, warning: "differs: ids <b>3 of 8</b>" } });
  const [warning] = [...parent.querySelectorAll(".notice")];
  assert.equal(warning.hidden, false);
  assert.equal(warning.textContent, "differs: ids <b>3 of 8</b>");
  assert.equal(warning.querySelector("b"), null);
  header.update({ run: { ...RUN, warning: "" } });

  assert.equal(warning.hidden, true);
});
