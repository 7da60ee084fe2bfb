import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { FakeSocket, until } from "./dom.js";
import { serverOrigin } from "../../visuals/panel/scripts/origin.js";
import { MaskPanel } from "../../visuals/panel/scripts/mask_panel.js";
import { Hover, Tip } from "../../visuals/panel/scripts/tip.js";

const KINDS = [{ label: "full attention", short: "full", window: null, chunked: false, attends: true }];
const ATTENTION = { kinds: KINDS, of_layer: [0, 0, 0], default: 1, heads: 4, kv_heads: 2 };
const FIRST = { layer: 1, head: null, all: false, row: 0 };

let panel;
let said;

/** The newest socket of attention weights. */
function socket() {
  return FakeSocket.all.findLast(({ url }) => url.includes("/live/attention/"));
}

function frame({ captured = false, final = false, context = 0, prompt = 6, output = 4 } = {}) {
  return {
    run: { final },
    model: { attention: ATTENTION, captured, requests: [{ prompt_tokens: prompt, max_new_tokens: output }] },
    mask: context ? [["prefill", context, context]] : [],
  };
}

function state(values) {
  return { kind: "state", choice: FIRST, notice: "", note: "", reason: "", over: false, reset: true, ...values };
}

beforeEach(() => {
  said = [];
  panel = new MaskPanel(document.body, {
    data: { run_id: "r", token: "t", explanations: {} },
    origin: serverOrigin(new URL("https://host/")),
    hover: new Hover(),
    tip: new Tip(document.body),
    tokens: [],
    theme: { text: "#000", background: "#fff", border: "#ccc", font: "sans" },
    send: (name, value) => said.push([name, value]),
    afterwards: (call) => call(),
  });
});

afterEach(() => panel.close());

/** What was asked of the server over the newest socket. */
function asked() {
  return socket().sent.map((text) => JSON.parse(text));
}

async function connected() {
  const before = FakeSocket.all.length;
  panel.update(frame({ captured: true, final: true, context: 6 }));
  await until(() => FakeSocket.all.length > before);
}

test("a run that keeps weights begins with them, any other with its mask", async () => {
  panel.update(frame());
  assert.equal(panel.view, "mask");

  await connected();

  assert.equal(panel.view, "weights");
  assert.equal(panel.scale, "log");
});

test("the pickers say what is drawn, also where another choice was refused", async () => {
  await connected();
  panel.take(state({ over: true }), new ArrayBuffer(0));
  panel.pickers.layers.value = "2";
  panel.pick();

  panel.take(state({ over: true, reset: false, notice: "Layer 2 cannot be shown." }), new ArrayBuffer(0));

  assert.deepEqual(asked(), [{ capture: { ...FIRST, layer: 2 } }]);
  assert.equal(panel.pickers.layer, 1);
  assert.equal(panel.layer, 1);
});

test("of a run that is over and has no weights what the pickers say is asked for, once", async () => {
  await connected();

  panel.take(state({ choice: null, over: true }), new ArrayBuffer(0));
  panel.take(state({ choice: null, over: true, notice: "No model is loaded." }), new ArrayBuffer(0));

  assert.equal(asked().length, 1);
  assert.equal(asked()[0].capture.row, 0);
  assert.equal(panel.speech.caption(), "No model is loaded.");
});

test("what is being computed is said until the first weights come", async () => {
  await connected();
  const choice = { ...FIRST, layer: 2 };

  panel.take(state({ choice, over: true, note: "Computing layer 2 from the run's tokens." }), new ArrayBuffer(0));

  assert.equal(panel.speech.caption(), "Computing layer 2 from the run's tokens.");
  assert.equal(panel.layer, 2);
  assert.equal(panel.pickers.layer, 2);
});

test("a caption names the layer and the heads that are drawn", async () => {
  await connected();
  panel.take(state({ over: true }), new ArrayBuffer(0));
  const block = { step: 0, heads: [], q0: 0, qn: 1, qb: 1, k0: 0, kn: 1, kb: 1, shape: [1, 1, 1], rest: false };

  panel.take({ kind: "blocks", blocks: [block] }, new Uint16Array([0x3c00]).buffer);

  assert.match(panel.speech.caption(), /^Layer 1, mean of 4 heads: query 0 reads 0 100/);
});

test("an axis is no longer than the run can get, and of one that is over no longer than it is", () => {
  panel.choose("mask");
  panel.update(frame({ context: 2414, prompt: 2414, output: 64 }));
  assert.equal(panel.axisCells, 2480);

  panel.update({ run: { final: true } });

  assert.equal(panel.axisCells, 2416);
});
