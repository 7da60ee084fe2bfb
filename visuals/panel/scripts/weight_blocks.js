// The blocks of attention weights as visuals/live/attention_feed.py packs them.
// A cell stands for one weight or, where there are many, for the largest of a few.

/** @import { BlockHeader, WeightBlock } from "./types.js" */

/** The value of every half-precision number by its bits. */
export const HALF = new Float32Array(65536);
for (let bits = 0; bits < 65536; bits += 1) HALF[bits] = halfOf(bits);

/** @param {number} bits */
function halfOf(bits) {
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  const sign = bits & 32768 ? -1 : 1;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/**
 * A header in JSON behind its length, then arrays.
 * @param {ArrayBuffer} buffer
 */
export function split(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  return { header, body: buffer.slice(4 + length) };
}

/**
 * The blocks of a message with their weights: [plane, row of cells, cell] and, for the first cell,
 * the largest weight in it without the sequence's first token.
 * @param {{ blocks: BlockHeader[] }} header
 * @param {ArrayBuffer} body
 * @returns {WeightBlock[]}
 */
export function blocksOf(header, body) {
  let offset = 0;
  /** @param {number} count */
  const take = (count) => {
    const array = new Uint16Array(body, offset, count);
    offset += 2 * count;
    return array;
  };
  return header.blocks.map((block) => {
    const [planes, rows, width] = block.shape;
    const data = take(planes * rows * width);
    return { ...block, planes, rows, width, data, rest: block.rest ? take(planes * rows) : null };
  });
}

/**
 * What one query gave a key, of one plane of its block; null where the block does not hold the key.
 * @param {WeightBlock} block
 * @param {number} plane
 * @param {number} query
 * @param {number} key
 */
export function weightAt(block, plane, query, key) {
  const row = Math.floor((query - block.q0) / block.qb);
  const cell = Math.floor((key - block.k0) / block.kb);
  if (cell < 0 || cell >= block.width) return null;
  return HALF[block.data[(plane * block.rows + row) * block.width + cell]];
}

/**
 * The keys that one query gave most to, the largest weight first.
 * @param {WeightBlock} block
 * @param {number} plane
 * @param {number} query
 * @param {number} count
 */
export function bestKeys(block, plane, query, count) {
  const row = Math.floor((query - block.q0) / block.qb);
  const start = (plane * block.rows + row) * block.width;
  const cells = Array.from(block.data.subarray(start, start + block.width), (bits, cell) => ({
    weight: HALF[bits],
    key: block.k0 + cell * block.kb,
  }));
  return cells
    .filter(({ weight, key }) => weight > 0 && key <= query)
    .sort((a, b) => b.weight - a.weight)
    .slice(0, count);
}

/**
 * The largest weight on any token but the first.
 * @param {WeightBlock} block
 */
export function largestRest(block) {
  let largest = 0;
  for (let index = 0; index < block.data.length; index += 1) {
    const isFirst = block.k0 === 0 && index % block.width === 0;
    if (!isFirst && HALF[block.data[index]] > largest) largest = HALF[block.data[index]];
  }
  for (const bits of block.rest || []) if (HALF[bits] > largest) largest = HALF[bits];
  return largest;
}
