import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { until } from "./dom.js";
import { RoofsLine } from "../../visuals/panel/scripts/roofs_line.js";

const TIMEOUT = { timeout: 90_000 };
const MISSING = { version: "", words: "No roofs yet.", is_offered: true, is_pending: false };

let line;
let ctx;
let asked;
let answers;

beforeEach(() => {
  asked = [];
  answers = [];
  globalThis.fetch = async (address) => {
    asked.push(String(address));
    return { ok: true, json: async () => (answers.length > 1 ? answers.shift() : answers[0]) };
  };
  document.body.replaceChildren();
  const body = document.createElement("div");
  document.body.append(body);
  ctx = { data: { run_id: "a/b", token: "t" }, base: new URL("https://host/prefix/"), origin: { hasServer: true }, said: [], anew: 0 };
  ctx.send = (name, value) => ctx.said.push([name, value]);
  ctx.again = () => (ctx.anew += 1);
  line = new RoofsLine(document.body, body, ctx);
});

afterEach(() => line.close());

const frame = (version, { final = true } = {}) => ({ run: { final }, model: { roofs: version } });

test("a run that goes on without roofs says when they come, and asks nobody", TIMEOUT, () => {
  line.update(frame("", { final: false }));

  assert.match(line.box.textContent, /once this run is over/);
  assert.equal(line.button.hidden, true);
  assert.deepEqual(asked, []);
});

test("a run that is over without roofs offers to measure them", TIMEOUT, async () => {
  answers = [MISSING];
  line.update(frame(""));
  await until(() => !line.button.hidden);

  assert.equal(asked[0], "https://host/prefix/live/roofs/a%2Fb?k=t");
  assert.match(line.box.textContent, /No roofs yet.*Measure the roofs/);
  line.button.click();
  assert.deepEqual(ctx.said, [["measure", 1]]);
  assert.equal(line.button.hidden, true);
});

test("roofs that were measured meanwhile have the run drawn anew", TIMEOUT, async () => {
  answers = [{ ...MISSING, is_pending: true }, { ...MISSING, version: "6e9 2e9" }];
  line.update(frame(""));

  await until(() => ctx.anew === 1);

  assert.equal(asked.length, 2);
});

test("a run with roofs and no point above them has no line", TIMEOUT, () => {
  line.update(frame("6e9 2e9"));

  assert.equal(line.box.hidden, true);
  assert.deepEqual(asked, []);
});

test("a point above a roof is warned of, with a way to measure again", TIMEOUT, async () => {
  answers = [{ version: "6e9 2e9", words: "", is_offered: true, is_pending: false }];
  line.update(frame("6e9 2e9"));
  line.warn("Step 61 lies 10 % above the measured roof.");
  await until(() => !line.button.hidden);

  assert.match(line.box.textContent, /Step 61 lies 10 % above the measured roof\. Measure again/);
  line.warn("");
  assert.equal(line.box.hidden, true);
});

test("what was asked for another run is not listened to", TIMEOUT, async () => {
  answers = [MISSING];
  line.update(frame(""));
  await until(() => asked.length === 1);

  line.reset();
  await new Promise((resolve) => setTimeout(resolve, 20));

  assert.equal(line.box.hidden, true);
  assert.equal(ctx.anew, 0);
});
