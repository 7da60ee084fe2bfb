import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { Pace } from "../../visuals/panel/scripts/player/pace.js";

let now;
let pace;

beforeEach(() => {
  now = 1000;
  pace = new Pace([0, 0.5, 0.6, 2], () => now);
});

/** The stop after some more seconds. */
function after(seconds) {
  now += seconds * 1000;
  return pace.stop;
}

test("a run plays at its own pace and ends at its last stop", () => {
  pace.play();

  assert.deepEqual([after(0.4), after(0.1), after(0.15), after(1)], [0, 1, 2, 2]);
  assert.equal(pace.isPlaying, true);
  assert.ok(Math.abs(pace.leftMs - 350) < 1e-6);
  assert.equal(after(10), 3);
  assert.equal(pace.isPlaying, false);
  assert.equal(pace.leftMs, null);
});

test("it plays faster and slower from where it stands", () => {
  pace.play();
  after(0.25);
  pace.change(4);
  assert.equal(after(0.0625), 1);

  pace.change(0.5);

  assert.deepEqual([after(0.1), after(0.11)], [1, 2]);
});

test("held time does not count, and a stop that is chosen begins anew there", () => {
  pace.play();
  after(0.55);
  pace.hold();
  assert.equal(after(100), 1);
  assert.equal(pace.leftMs, null);

  pace.seek(2);
  pace.play();

  assert.deepEqual([after(1.3), after(0.2)], [2, 3]);
});

test("what is chosen beyond the ends is the end", () => {
  pace.seek(-1);
  assert.equal(pace.stop, 0);
  pace.seek(9);
  assert.equal(pace.stop, 3);
});

test("after the end it plays from the beginning", () => {
  pace.seek(3);

  pace.play();

  assert.equal(pace.stop, 0);
  assert.equal(pace.isPlaying, true);
});

test("a run without a step cannot be played", () => {
  const empty = new Pace([0], () => now);

  empty.play();

  assert.equal(empty.isPlaying, false);
  assert.equal(empty.stop, 0);
});
