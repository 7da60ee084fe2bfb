import assert from "node:assert/strict";
import { test } from "node:test";

import {
  axisEnd,
  medians,
  MedianRows,
  picked,
  PickedRows,
  strideFor,
} from "../../visuals/panel/scripts/axes.js";
import { expected } from "./expected.js";

test("axes end where Python ends them", () => {
  for (const [largest, least, end] of expected.axis_end) assert.equal(axisEnd(largest, least), end);
});

test("strides are those of Python", () => {
  for (const [count, limit, stride] of expected.stride_for) assert.equal(strideFor(count, limit), stride);
});

test("rows are thinned as Python thins them", () => {
  for (const { rows, limit, ...thinned } of expected.thinning) {
    assert.deepEqual(picked(rows, limit), thinned.picked);
    assert.deepEqual(medians(rows, limit), thinned.medians);
  }
});

test("rows that come one by one are thinned as those that come at once", () => {
  for (const { rows, limit, ...thinned } of expected.thinning) {
    const pickedRows = new PickedRows(limit);
    const medianRows = new MedianRows(limit);
    for (const row of rows) {
      pickedRows.add([row]);
      medianRows.add([row]);
      pickedRows.shown();
      medianRows.shown();
    }
    assert.deepEqual(pickedRows.shown(), thinned.picked);
    assert.deepEqual(medianRows.shown(), thinned.medians);
  }
});

test("a long run keeps no more rows than a chart shows", () => {
  const pickedRows = new PickedRows(100);
  const medianRows = new MedianRows(100);
  for (let k = 1; k <= 20_000; k += 1) {
    pickedRows.add([{ k }]);
    medianRows.add([{ k, kind: "warm", to: k, ms: k }]);
  }
  assert.ok(pickedRows.rows.length <= 101);
  assert.ok(medianRows.groups.size <= 101);
  assert.equal(pickedRows.shown().at(-1)?.k, 20_000);
});
