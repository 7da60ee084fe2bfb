import assert from "node:assert/strict";
import { mock, test } from "node:test";

import {
  COALESCE_MS,
  isLeaving,
  isWorthSaying,
  LEAVING_MS,
  PageMessages,
  watchLinks,
} from "../../visuals/panel/scripts/page_messages.js";

const PRESS = { button: 0, ctrlKey: false, metaKey: false, shiftKey: false };

/** A page that shows a run in this state, and what it was told. */
function page(state) {
  const told = [];
  return { told, data: { state }, setStateValue: (name, value) => told.push([name, value]) };
}

function withTimers(act) {
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    act();
  } finally {
    mock.timers.reset();
  }
}

test("a state that the page shows is not said", () => {
  assert.equal(isWorthSaying("done", { page: "done", said: "" }), false);
  assert.equal(isWorthSaying("running", { page: "running", said: "" }), false);
  assert.equal(isWorthSaying("running", { page: "loading", said: "" }), true);
  assert.equal(isWorthSaying("running", { page: "loading", said: "running" }), false);
});

test("that a run's turn has come changes no button, so the page does not run again for it", () => {
  assert.equal(isWorthSaying("running", { page: "queued", said: "" }), false);
  assert.equal(isWorthSaying("running", { page: "paused", said: "" }), true);
  assert.equal(isWorthSaying("running", { page: "queued", said: "paused" }), false);
});

test("a page that shows the end of a run hears of no state before it", () => {
  assert.equal(isWorthSaying("running", { page: "stopped", said: "" }), false);
});

test("states of one moment are one message", () => {
  withTimers(() => {
    const shown = page("loading");
    const messages = new PageMessages(shown);
    messages.sendState("paused");
    messages.sendState("running");
    mock.timers.tick(COALESCE_MS);
    assert.deepEqual(shown.told, [["state", "running"]]);
  });
});

test("a state that was there for a moment only is no message", () => {
  withTimers(() => {
    const shown = page("running");
    const messages = new PageMessages(shown);
    messages.sendState("paused");
    messages.sendState("running");
    mock.timers.tick(COALESCE_MS);
    assert.deepEqual(shown.told, []);
  });
});

test("a run that is paused twice is said to be paused twice", () => {
  withTimers(() => {
    const messages = new PageMessages(page("running"));
    const told = [];
    for (const state of ["paused", "running", "paused"]) {
      const shown = page(messages.component.data.state);
      shown.setStateValue = (_name, value) => told.push(value);
      messages.call(shown);
      messages.sendState(state);
      mock.timers.tick(COALESCE_MS);
      messages.call({ ...shown, data: { state } });
    }
    assert.deepEqual(told, ["paused", "running", "paused"]);
  });
});

test("nothing is said of a run that is not followed any more, nor after the panel is gone", () => {
  withTimers(() => {
    const shown = page("loading");
    const messages = new PageMessages(shown);
    messages.sendState("running");
    messages.reset();
    mock.timers.tick(COALESCE_MS);
    messages.sendState("running");
    messages.close();
    messages.send("part", "linear");
    mock.timers.tick(COALESCE_MS);
    assert.deepEqual(shown.told, []);
  });
});

test("only a plain press on another page's link leaves the page", () => {
  const from = "https://host/prefix/?run=1";
  const to = (href, target = "") => isLeaving({ href, target }, from, PRESS);
  assert.equal(to("https://host/prefix/compare"), true);
  assert.equal(to("https://host/prefix/?run=2"), false);
  assert.equal(to("https://elsewhere/compare"), false);
  assert.equal(to("https://host/prefix/compare", "_blank"), false);
  assert.equal(isLeaving({ href: "https://host/compare", target: "" }, from, { ...PRESS, ctrlKey: true }), false);
});

test("nothing is said while the page is being left, and all of it if it was not left", () => {
  class Element {
    closest() {
      return { href: "https://host/compare", target: "" };
    }
  }
  globalThis.Element = Element;
  let press = () => {};
  watchLinks({ location: { href: "https://host/" }, addEventListener: (_name, call) => (press = call) });
  let now = 5000;
  const clock = mock.method(performance, "now", () => now);
  withTimers(() => {
    press({ ...PRESS, composedPath: () => [new Element()] });
    const shown = page("loading");
    const messages = new PageMessages(shown);
    messages.sendState("running");
    now += COALESCE_MS;
    mock.timers.tick(COALESCE_MS);
    assert.deepEqual(shown.told, []);
    now += LEAVING_MS;
    mock.timers.tick(LEAVING_MS);
    assert.deepEqual(shown.told, [["state", "running"]]);
  });
  clock.mock.restore();
  delete globalThis.Element;
});
