import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import "./dom.js";
import { ChartTail } from "../../visuals/panel/scripts/chart_tail.js";
import { Store } from "../../visuals/panel/scripts/store.js";
import { besides, joined, TAILS } from "../../visuals/panel/scripts/tail_painters.js";

const NAME = "decode_step_times";
const COLUMNS = ["k", "from", "to", "ms", "kind", "note"];
const bar = (k, { ms = 10, kind = "warm", note = null } = {}) => [k, k - 0.45, k + 0.45, ms, kind, note];
const bars = (...rows) => ({ [NAME]: { mode: "append", columns: COLUMNS, rows } });
const ends = (x, y) => ({ [`${NAME}_extent`]: { mode: "replace", columns: ["x", "y"], rows: [[x, y]] } });

let store;
let tail;
const names = () => [NAME, `${NAME}_bounds`, `${NAME}_extent`];
const numbers = (rows) => rows.map((row) => row.k);

beforeEach(() => {
  store = new Store();
  tail = new ChartTail(TAILS.get(NAME), { store, names: new Set(names()), spec: {} });
  store.take({ ...bars(bar(1), bar(2)), ...ends(16.5, 20) });
});

test("what comes while a run goes is added, and Vega has what came before", () => {
  tail.begin(true);
  store.take({ ...bars(bar(3), bar(4, { kind: "disturbed" })), ...ends(16.5, 20) });

  assert.ok(tail.goesOn);
  assert.deepEqual(numbers(tail.rows(NAME)), [1, 2]);
  assert.deepEqual(numbers(tail.added(NAME)), [3, 4]);
});

test("Vega draws all of it once the run is over or paused", () => {
  tail.begin(true);
  store.take(bars(bar(3)));

  assert.deepEqual(tail.begin(false).sort(), [NAME, `${NAME}_bounds`]);
  assert.deepEqual(numbers(tail.rows(NAME)), [1, 2, 3]);
  assert.equal(tail.goesOn, false);
});

for (const [what, added] of [
  ["an axis that grows", ends(24.5, 20)],
  ["a bar that is cut off", bars(bar(3, { ms: 21 }))],
  ["a note", bars(bar(3, { kind: "cold", note: "cold" }))],
]) {
  test(`${what} is Vega's to draw`, () => {
    tail.begin(true);
    assert.ok(tail.goesOn);
    store.take(added);
    assert.equal(tail.goesOn, false);
  });
}

test("another run's rows are never added to a picture", () => {
  tail.begin(true);
  store.reset();
  store.take({ ...bars(bar(1), bar(2), bar(3)), ...ends(16.5, 20) });
  assert.equal(tail.goesOn, false);
});

test("a bar that stands for several steps is painted until no step can join it", () => {
  for (let k = 3; k <= 401; k += 1) store.take(bars(bar(k)));
  tail.begin(true); // four steps a bar: the last one has begun

  const [given, added] = [tail.rows(NAME), tail.added(NAME)];
  assert.deepEqual(numbers(added), [400]);
  assert.equal(given.at(-1).k, 396);
  store.take(bars(bar(402, { ms: 14 }), bar(403, { ms: 14 }), bar(404)));
  assert.ok(tail.goesOn);
  assert.deepEqual(tail.added(NAME).map(({ k, to, ms }) => [k, to, ms]), [[400, 403.45, 12], [404, 404.45, 10]]);
});

test("steps joined anew, as many more are there, are Vega's to draw", () => {
  for (let k = 3; k <= 200; k += 1) store.take(bars(bar(k)));
  tail.begin(true);
  store.take(bars(bar(201)));
  assert.equal(tail.goesOn, false);
});

test("the newest point's ring is painted alone while Vega has none", () => {
  const point = (k) => ({ mode: "append", columns: ["k", "x", "y", "phase", "kind"], rows: [[k, 1, 2, "decode", "warm"]] });
  const now = { mode: "replace", columns: ["x", "y", "phase", "label"], rows: [[1, 2, "decode", "decode"]] };
  tail = new ChartTail(TAILS.get("roofline_step"), { store, names: new Set(["roofline_step", "roofline_step_now"]), spec: {} });
  store.take({ roofline_step: point(0), roofline_step_now: now });
  tail.begin(true);
  assert.deepEqual(tail.rows("roofline_step_now"), []);
  store.take({ roofline_step: point(1), roofline_step_now: now });
  assert.ok(tail.goesOn);
  assert.deepEqual(tail.begin(false), ["roofline_step", "roofline_step_now"]);
  assert.equal(tail.rows("roofline_step_now").length, 1);
});

test("a line is joined as Vega joins it", () => {
  const points = [[0, 0], [4, 2]];
  assert.deepEqual(joined(points, "linear"), points);
  assert.deepEqual(joined(points, "step"), [[0, 0], [2, 0], [2, 2], [4, 2]]);
  assert.deepEqual(joined(points, "step-after"), [[0, 0], [4, 0], [4, 2], [4, 2]]);
});

test("a name's place is read off the spec", () => {
  const by = (decode, prefill) => ({ expr: `datum.phase === 'decode' ? ${decode} : ${prefill}` });
  const label = { align: by("'left'", "'right'"), dx: by("13", "-6"), dy: by("5", "12") };
  assert.deepEqual(besides(label, "decode"), { align: "left", dx: 13, dy: 5 });
  assert.deepEqual(besides(label, "prefill"), { align: "right", dx: -6, dy: 12 });
});
