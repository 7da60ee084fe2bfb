import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import "./dom.js";
import { Pace } from "../../visuals/panel/scripts/player/pace.js";
import { Transport } from "../../visuals/panel/scripts/player/transport.js";

const SPEEDS = { "Speed: its own": 1, "Speed: 4 \u00d7": 4 };

let shown;
let transport;

function open(stops = [0, 1, 2, 3], hash = "") {
  document.body.replaceChildren();
  shown = [];
  globalThis.location = new URL(`file:///player.html${hash}`);
  const pace = new Pace(stops.map((_, stop) => stop), () => 0);
  transport = new Transport({ pace, stops, speeds: SPEEDS }, (stop, isPlaying) => shown.push([stop, isPlaying]));
  document.body.append(transport.box);
  transport.begin();
}

/** Press a key somewhere, and return whether it was taken. */
function press(key, target = document.body, how = {}) {
  let isTaken = false;
  transport.pressed({ key, composedPath: () => [target], preventDefault: () => (isTaken = true), ...how });
  return isTaken;
}

beforeEach(() => open());

test("the whole run is shown first, and the slider has a place for each stop", () => {
  assert.deepEqual(shown, [[3, false]]);
  assert.equal(transport.where.textContent, "Step 3 of 3");
  assert.deepEqual([transport.slider.min, transport.slider.max, transport.slider.value], ["0", "3", "3"]);
  assert.equal(transport.slider.getAttribute("aria-valuetext"), "Step 3 of 3");
  assert.equal(transport.on.disabled, true);
});

test("the address may name a step; between two stops it is the later one", () => {
  open([0, 1, 8, 16], "#step=2");
  assert.deepEqual(shown, [[2, false]]);
  assert.equal(transport.where.textContent, "Step 8 of 16");
  open([0, 1, 8, 16], "#step=999999999");
  assert.deepEqual(shown, [[3, false]]);
  open([0, 1, 8, 16], "#step=<b>");
  assert.deepEqual(shown, [[3, false]]);
});

test("a slider that is moved holds the run there", () => {
  transport.play.click();
  transport.slider.value = "2";
  transport.slider.dispatchEvent(new window.Event("input"));

  assert.deepEqual(shown, [[3, false], [0, true], [2, false]]);
  assert.equal(transport.play.textContent, "\u25b6\ufe0e Play");
});

test("buttons go one step, and not beyond the ends", () => {
  transport.back.click();
  transport.back.click();
  transport.on.click();
  for (let press = 0; press < 5; press += 1) transport.back.click();

  assert.deepEqual(shown.map(([stop]) => stop), [3, 2, 1, 2, 1, 0]);
  assert.equal(transport.back.disabled, true);
});

test("arrow keys go one step and space plays and holds", () => {
  assert.equal(press("ArrowLeft"), true);
  assert.equal(press("ArrowLeft"), true);
  assert.equal(press("ArrowRight"), true);
  assert.equal(press(" "), true);
  assert.equal(press(" "), true);

  assert.deepEqual(shown, [[3, false], [2, false], [1, false], [2, false], [2, true], [2, false]]);
});

test("keys that mean something else where they are pressed are left alone", () => {
  const canvas = document.createElement("canvas");
  document.body.append(canvas);

  assert.equal(press("ArrowLeft", canvas), false);
  assert.equal(press("ArrowLeft", transport.slider), false);
  assert.equal(press("ArrowLeft", transport.speeds), false);
  assert.equal(press(" ", transport.back), false);
  assert.equal(press("ArrowLeft", document.body, { altKey: true }), false);
  assert.equal(press("ArrowLeft", document.body, { defaultPrevented: true }), false);
  assert.equal(press("x"), false);

  assert.deepEqual(shown, [[3, false]]);
  assert.equal(press("ArrowLeft", transport.back), true);
});

test("another speed is kept while the run plays", () => {
  transport.speeds.value = "4";
  transport.speeds.dispatchEvent(new window.Event("change"));

  assert.equal(transport.pace.speed, 4);
});

test("a run without a step cannot be played or moved", () => {
  open([0]);

  assert.deepEqual(shown, [[0, false]]);
  for (const control of [transport.play, transport.back, transport.on, transport.slider]) {
    assert.equal(control.disabled, true);
  }
});
