import assert from "node:assert/strict";
import { test } from "node:test";

import "./dom.js";
import { numberOf, RunNumbers } from "../../visuals/panel/scripts/run_numbers.js";

const MODEL = {
  requests: [{ id: "r0", prompt_tokens: 41, max_new_tokens: 8 }],
  attention: { kinds: [{ window: null }, { window: 512 }], of_layer: [0, 1, 0], heads: 9, kv_heads: 3 },
  batch: null,
};
const STEP = { index: 4, phase: "decode", decode: 4, T: 1, L: 45, known: 46, stored: 45 };
const figure = (key, label, value) => ({ key, label, value, unit: "ms" });

test("a card has the number of the run that is shown, and none without a run", () => {
  assert.equal(numberOf("ttft"), "");
  const numbers = new RunNumbers();
  assert.equal(numberOf("layer"), "");

  numbers.take({ model: MODEL, step: STEP, figures: [figure("ttft", "TTFT", "320"), figure("tpot", "TPOT", "\u2013")] });
  numbers.take({ captions: { kv: "2 MiB stored", latency: "", weights: "" } });

  assert.equal(numberOf("ttft"), "320 ms");
  assert.equal(numberOf("tpot"), ""); // too little was measured
  assert.equal(numberOf("grouped_heads"), "9 query heads on 3 K/V heads");
  assert.equal(numberOf("sliding_window"), "512 tokens");
  assert.equal(numberOf("length"), "L = 45 after step 4");
  assert.equal(numberOf("kv_cache"), "2 MiB stored");
  assert.equal(numberOf("goodput"), "");

  numbers.reset();
  assert.equal(numberOf("layer"), "");
  numbers.close();
});

test("a panel that is gone says nothing", () => {
  const numbers = new RunNumbers();
  numbers.take({ model: MODEL, step: STEP });
  numbers.close();

  assert.equal(numberOf("layer"), "");
});
