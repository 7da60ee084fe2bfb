import assert from "node:assert/strict";
import { test } from "node:test";

import { copied, Store } from "../../visuals/panel/scripts/store.js";

const table = (mode, ...rows) => ({ mode, columns: ["k", "y"], rows });

test("rows are added, replaced, or merged by their number", () => {
  const store = new Store();
  store.take({ a: table("append", [1, 10]), b: table("replace", [1, 1]), c: table("merge", [1, 5], [2, 6]) });
  store.take({ a: table("append", [2, 20]), b: table("replace", [9, 9]), c: table("merge", [2, 7], [3, 8]) });
  const values = (name) => store.rows(name).map((row) => [row.k, row.y]);
  assert.deepEqual(values("a"), [[1, 10], [2, 20]]);
  assert.deepEqual(values("b"), [[9, 9]]);
  assert.deepEqual(values("c"), [[1, 5], [2, 6], [3, 8]]);
});

test("a chart sees by the version that there is something to draw", () => {
  const store = new Store();
  store.take({ a: table("merge", [1, 10]) });
  const before = store.version("a");
  store.take({ a: table("merge", [1, 10]) });
  assert.equal(store.version("a"), before);
  store.take({ a: table("merge", [2, 10]) });
  assert.ok(store.version("a") > before);
});

test("rows that a new run takes away are a change too", () => {
  const store = new Store();
  store.take({ a: table("append", [1, 10]) });
  const before = store.version("a");
  store.reset();
  assert.ok(store.version("a") > before);
  assert.deepEqual(store.rows("a"), []);
});

test("what a chart is given is its own", () => {
  const store = new Store();
  store.take({ a: table("append", [1, 10]) });
  copied(store.rows("a"))[0].y = 99;
  assert.equal(store.rows("a")[0].y, 10);
});

test("a table that began empty is thinned like any other", () => {
  const store = new Store();
  store.take({ a: { mode: "append", columns: [], rows: [] } });
  for (let k = 1; k <= 5000; k += 1) store.take({ a: table("append", [k, k]) });
  assert.ok(store.rows("a").length <= 201);
});
