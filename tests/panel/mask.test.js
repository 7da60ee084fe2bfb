import assert from "node:assert/strict";
import { test } from "node:test";

import { cellAt, headLayout, middleOf, squareLayout } from "../../visuals/panel/scripts/mask_layout.js";
import { firstKey, MaskRow } from "../../visuals/panel/scripts/mask_rows.js";
import { expected } from "./expected.js";

test("each query reads from the key that Python's mask begins with to itself", () => {
  for (const { window, chunked, first, keys } of expected.masks) {
    const kind = { window, chunked };
    assert.deepEqual(first.map((_, query) => firstKey(kind, query)), first);
    assert.deepEqual(first.map((_, query) => query + 1 - firstKey(kind, query)), keys);
  }
});

test("steps of one phase become one run, the newest step stays apart", () => {
  const row = new MaskRow(6);
  row.add("prefill", 4, 4);
  row.add("prefill", 2, 6);
  row.add("decode", 1, 7);
  row.add("decode", 1, 8);
  row.add("decode", 1, 9);
  assert.deepEqual(row.blocks, [
    { phase: "prefill", from: 0, to: 6, edges: [0, 4] },
    { phase: "decode", from: 6, to: 8, edges: [6, 7] },
    { phase: "decode", from: 8, to: 9, edges: [8] },
  ]);
  assert.equal(row.context, 9);
  assert.equal(row.isPromptFed, true);
});

test("chunks of a prompt become one run that remembers where each began", () => {
  const row = new MaskRow(8);
  for (const to of [2, 4, 6, 8]) row.add("prefill", 2, to);
  assert.deepEqual(row.blocks, [
    { phase: "prefill", from: 0, to: 6, edges: [0, 2, 4] },
    { phase: "prefill", from: 6, to: 8, edges: [6] },
  ]);
});

test("the middle of a cell is in that cell", () => {
  const square = squareLayout(500, 400, 16);
  const layout = { cells: 16, square, heads: null };
  for (const cell of [
    { plane: 0, query: 0, key: 0 },
    { plane: 0, query: 15, key: 3 },
  ]) {
    const { x, y } = middleOf(cell, layout);
    assert.deepEqual(cellAt(x, y, layout), cell);
  }
  assert.equal(cellAt(0, 0, layout), null);
});

test("large cells carry their tokens, small ones do not", () => {
  assert.equal(squareLayout(500, 400, 16).isLabelled, true);
  assert.equal(squareLayout(500, 400, 64).isLabelled, false);
});

test("heads lie beside each other inside the canvas, framed by K/V head", () => {
  for (const [heads, shared, groups] of [
    [9, 3, 3],
    [12, 12, 0],
    [32, 8, 8],
    [5, 2, 0],
  ]) {
    const size = { width: 420, height: 300 };
    const layout = headLayout(heads, shared, size);
    assert.equal(layout.heads.length, heads);
    assert.equal(layout.groups.length, groups);
    for (const { x, y, side } of layout.heads) {
      assert.ok(x >= 0 && y >= 0 && x + side <= size.width && y + side <= size.height);
    }
    const places = layout.heads.map(({ x, y }) => `${x} ${y}`);
    assert.equal(new Set(places).size, heads);
  }
});

test("a point between heads is on none, one in a head is on its plane", () => {
  const { heads } = headLayout(9, 3, { width: 420, height: 300 });
  const layout = { cells: 8, square: null, heads };
  const cell = { plane: 4, query: 7, key: 2 };
  const { x, y } = middleOf(cell, layout);
  assert.deepEqual(cellAt(x, y, layout), cell);
  assert.equal(cellAt(heads[0].x - 1, heads[0].y, layout), null);
  assert.equal(middleOf({ plane: 9, query: 0, key: 0 }, layout), null);
});
