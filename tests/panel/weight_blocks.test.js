import assert from "node:assert/strict";
import { test } from "node:test";

import { scaleTop, SCALES } from "../../visuals/panel/scripts/colour_scales.js";
import { bestKeys, blocksOf, HALF, largestRest, split, weightAt } from "../../visuals/panel/scripts/weight_blocks.js";
import { expected } from "./expected.js";

/** @param {string} message */
function unpacked(message) {
  const bytes = Buffer.from(message, "base64");
  const { header, body } = split(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  return { header, blocks: blocksOf(header, body) };
}

test("half-precision numbers have the values that numpy reads", () => {
  for (const [bits, text] of expected.half) assert.ok(Object.is(HALF[bits], Number(text)), `${bits}`);
});

test("each weight of a message is the one that Python packed", () => {
  for (const { message, weights } of expected.attention) {
    const { header, blocks } = unpacked(message);
    assert.equal(header.kind, "blocks");
    for (const [plane, query, key, weight] of weights) {
      assert.equal(weightAt(blocks[0], plane, query, key), weight);
    }
    assert.equal(weightAt(blocks[0], 0, 3, 40), null);
  }
});

test("the best keys are those with the largest weights, none after the query", () => {
  const { blocks } = unpacked(expected.attention[0].message);
  const query = 5;
  const given = expected.attention[0].weights
    .filter(([plane, at, key]) => plane === 1 && at === query && key <= query)
    .sort((a, b) => b[3] - a[3])
    .slice(0, 3);
  assert.deepEqual(
    bestKeys(blocks[0], 1, query, 3).map(({ weight, key }) => [key, weight]),
    given.map(([, , key, weight]) => [key, weight]),
  );
});

test("the largest weight beside the first token takes the rest of the first cell into account", () => {
  const one = 0x3c00; // 1.0
  const half = 0x3800; // 0.5
  const block = { k0: 0, width: 2, data: Uint16Array.of(one, 0), rest: Uint16Array.of(half) };
  assert.equal(largestRest(block), 0.5);
  assert.equal(largestRest({ ...block, rest: null }), 0);
  assert.equal(largestRest({ ...block, k0: 4, rest: null }), 1);
});

test("a scale ends at a round number and its shares go from none to all", () => {
  assert.equal(scaleTop(0.03), 0.05);
  assert.equal(scaleTop(0.7), 1);
  assert.equal(SCALES.log.share(1, 1), 1);
  assert.equal(SCALES.log.share(0, 1), 0);
  assert.equal(SCALES.rest.share(0.025, 0.05), 0.5);
});
