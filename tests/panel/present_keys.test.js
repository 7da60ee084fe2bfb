import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { askedBy, chosenPanels, enlargement, ideaWords, Paced } from "../../visuals/panel/scripts/present_keys.js";

const press = (key, more = {}) => ({
  ...{ key, code: "", shiftKey: false, ctrlKey: false, altKey: false, metaKey: false, repeat: false },
  ...more,
});

test("before presenter mode only its own key counts", () => {
  for (const key of ["f", "F"]) assert.deepEqual(askedBy(press(key), false), { do: "toggle" });
  for (const key of [" ", "PageDown", "Escape", "d", "v"]) assert.equal(askedBy(press(key), false), null);
  assert.equal(askedBy(press("1", { code: "Digit1" }), false), null);
});

test("space, a remote's keys and the arrows step, forwards and back", () => {
  for (const key of [" ", "PageDown", "ArrowRight"]) assert.deepEqual(askedBy(press(key), true), { do: "step" });
  for (const key of ["PageUp", "ArrowLeft"]) assert.deepEqual(askedBy(press(key), true), { do: "back" });
});

test("Shift with a remote's keys goes to another item of a playlist", () => {
  assert.deepEqual(askedBy(press("PageDown", { shiftKey: true }), true), { do: "next" });
  assert.deepEqual(askedBy(press("PageUp", { shiftKey: true }), true), { do: "previous" });
  assert.equal(askedBy(press("PageDown", { shiftKey: true }), false), null);
});

test("the letters and Escape do what they are for", () => {
  const asked = Object.fromEntries(["f", "d", "D", "v", "Escape", "x"].map((key) => [key, askedBy(press(key), true)?.do]));

  assert.deepEqual(asked, { f: "toggle", d: "light", D: "light", v: "link", Escape: "leave", x: undefined });
});

test("a digit is known by its place, whatever the keyboard prints there", () => {
  assert.deepEqual(askedBy(press("&", { code: "Digit1" }), true), { do: "panel", number: 1, isBeside: false });
  assert.deepEqual(askedBy(press("(", { code: "Digit9", shiftKey: true }), true), { do: "panel", number: 9, isBeside: true });
  assert.deepEqual(askedBy(press("3", { code: "Numpad3" }), true), { do: "panel", number: 3, isBeside: false });
  assert.equal(askedBy(press("0", { code: "Digit0" }), true), null);
});

test("what the browser has other uses for, and a key that is held down, ask for nothing", () => {
  for (const held of ["ctrlKey", "altKey", "metaKey", "repeat"]) assert.equal(askedBy(press("f", { [held]: true }), true), null);
});

test("a panel is shown alone, or beside the newest of those shown", () => {
  assert.deepEqual(chosenPanels(["mask"], "kv", false), ["kv"]);
  assert.deepEqual(chosenPanels(["mask", "kv"], "kv", false), ["kv"]);
  assert.deepEqual(chosenPanels(["mask"], "kv", true), ["mask", "kv"]);
  assert.deepEqual(chosenPanels(["mask", "kv"], "next", true), ["kv", "next"]);
  assert.deepEqual(chosenPanels(["mask", "kv"], "mask", true), ["kv"]);
  assert.deepEqual(chosenPanels(["mask"], "mask", true), ["mask"]);
  assert.deepEqual(chosenPanels([], "mask", true), ["mask"]);
});

test("an idea has the numbers of the step shown, and is not there before the first", () => {
  const idea = { prefill: "{T} tokens, {T} of {L}", decode: "one" };

  assert.equal(ideaWords(idea, { phase: "prefill", T: "1,024", L: "2,048" }), "1,024 tokens, 1,024 of 2,048");
  assert.equal(ideaWords(idea, { phase: "decode", T: "1", L: "9" }), "one");
  assert.equal(ideaWords(idea, null), "");
  assert.equal(ideaWords(undefined, { phase: "decode", T: "1", L: "9" }), "");
});

test("type of 12.5 pixels is at least 24 where the window is 1920 wide, and a telephone's stays", () => {
  assert.ok(12.5 * enlargement(1920, 1080) >= 24);
  assert.ok(12.5 * enlargement(1920, 940) >= 24);
  assert.equal(enlargement(390, 844), 1);
  assert.ok(1280 / enlargement(1280, 800) >= 1000);
  assert.ok(1080 / enlargement(2560, 1080) >= 480);
});

test("of many values in a moment the first and the newest are sent, and none after the end", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const sent = [];
  const paced = new Paced((value) => sent.push(value), 100);

  for (const value of [1, 2, 3]) paced.say(value);
  assert.deepEqual(sent, [1]);
  mock.timers.tick(100);
  assert.deepEqual(sent, [1, 3]);
  mock.timers.tick(100);
  paced.say(4);
  assert.deepEqual(sent, [1, 3, 4]);
  paced.say(5);
  paced.close();
  mock.timers.tick(1000);
  assert.deepEqual(sent, [1, 3, 4]);
  mock.timers.reset();
});
