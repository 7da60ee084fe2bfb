import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import "./dom.js";
import { Place } from "../../visuals/panel/scripts/place.js";

/** Observers that say what a test has them say. */
class Told {
  static last = null;
  constructor(call) {
    this.call = call;
    this.constructor.last = this;
    this.isOver = false;
  }
  observe() {}
  disconnect() {
    this.isOver = true;
  }
}
class Sizes extends Told {}
class Screen extends Told {}

const { ResizeObserver } = globalThis;

function place(changed = () => {}) {
  Object.assign(globalThis, { ResizeObserver: Sizes, IntersectionObserver: Screen });
  const node = document.createElement("div");
  return new Place(node, changed);
}

function hide(isHidden) {
  Object.defineProperty(document, "hidden", { value: isHidden, configurable: true });
  document.dispatchEvent(new window.Event("visibilitychange"));
}

globalThis.window ??= document.defaultView;

afterEach(() => {
  hide(false);
  globalThis.ResizeObserver = ResizeObserver;
  delete globalThis.IntersectionObserver;
});

test("what is off screen is not seen until it is scrolled to", () => {
  let changes = 0;
  const made = place(() => (changes += 1));
  assert.equal(made.isSeen, false);

  Screen.last.call([{ isIntersecting: true }]);
  assert.equal(made.isSeen, true);
  assert.equal(changes, 1);

  Screen.last.call([{ isIntersecting: true }, { isIntersecting: false }]);
  assert.equal(made.isSeen, false);
  assert.equal(changes, 1);
});

test("nothing is seen in a hidden tab, and it is drawn when the tab is shown again", () => {
  let changes = 0;
  const made = place(() => (changes += 1));
  Screen.last.call([{ isIntersecting: true }]);

  hide(true);
  assert.equal(made.isSeen, false);
  assert.equal(changes, 1);
  hide(false);
  assert.equal(made.isSeen, true);
  assert.equal(changes, 2);
});

test("a size is asked of the element once, and is then what the observer says", () => {
  let changes = 0;
  const made = place(() => (changes += 1));
  assert.deepEqual(made.size, { width: 400, height: 300 });

  let asked = 0;
  Object.defineProperty(made.node, "clientWidth", { get: () => ((asked += 1), 0) });
  Sizes.last.call([]);
  assert.deepEqual([made.size.width, made.hasRoom, asked, changes], [0, false, 1, 1]);
});

test("a place that is closed hears nothing more", () => {
  let changes = 0;
  const made = place(() => (changes += 1));
  made.close();
  hide(false);
  assert.deepEqual([changes, Sizes.last.isOver, Screen.last.isOver], [0, true, true]);
});
