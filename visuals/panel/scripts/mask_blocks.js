// The mask's cells: runs of query rows as cells, triangles and bands.

/** @import { LayerKind, Square } from "./types.js" */
/** @import { MaskBlock } from "./mask_rows.js" */

import { COLOURS, withAlpha } from "./elements.js";
import { firstKey } from "./mask_rows.js";

const SINGLE_CELLS_FROM = 5; // from this cell size on, cells are drawn one by one
const CHUNK_PIXELS = 3; // lower chunks of prefill are drawn as one triangle
const STORED_BEFORE = 0.55; // how much fainter keys of earlier chunks are

/**
 * @typedef {object} Brush
 * @property {CanvasRenderingContext2D} pen
 * @property {Square} square
 * @property {LayerKind} kind
 * @property {number} alpha
 * @property {boolean} isNewest
 */

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {Square} square
 * @param {MaskBlock[]} blocks
 * @param {LayerKind} kind
 */
export function paintBlocks(pen, square, blocks, kind) {
  blocks.forEach((block, number) => {
    const isNewest = number === blocks.length - 1;
    /** @type {Brush} */
    const brush = { pen, square, kind, alpha: isNewest ? 1 : 0.45, isNewest };
    pen.fillStyle = withAlpha(COLOURS[block.phase], brush.alpha);
    if (square.cell >= SINGLE_CELLS_FROM) paintCells(brush, block);
    else if (hasChunks(brush, block)) paintChunks(brush, block);
    else if (block.to - block.from === 1) paintRow(brush, block.from);
    else paintArea(brush, block);
  });
}

/**
 * @param {Brush} brush
 * @param {MaskBlock} block
 */
function paintCells({ pen, square, kind, alpha }, { phase, from, to, edges }) {
  const { left, top, cell } = square;
  const gap = cell >= 10 ? 2 : 1;
  let chunk = 0;
  for (let query = from; query < to; query += 1) {
    if (edges[chunk + 1] <= query) chunk += 1;
    for (let key = firstKey(kind, query); key <= query; key += 1) {
      const isBefore = phase === "prefill" && key < edges[chunk];
      pen.fillStyle = withAlpha(COLOURS[phase], isBefore ? alpha * STORED_BEFORE : alpha);
      pen.fillRect(left + key * cell + gap / 2, top + query * cell + gap / 2, cell - gap, cell - gap);
    }
  }
}

/**
 * Whether a prompt's chunks are drawn each by itself.
 * @param {Brush} brush
 * @param {MaskBlock} block
 */
function hasChunks({ square, kind }, { phase, from, to, edges }) {
  const isWhole = from === 0 && edges.length === 1;
  const rows = (to - from) / edges.length;
  return phase === "prefill" && !isWhole && kind.window === null && rows * square.cell >= CHUNK_PIXELS;
}

/**
 * A chunk of prefill: a rectangle over what was stored before it, fainter, and a triangle.
 * @param {Brush} brush
 * @param {MaskBlock} block
 */
function paintChunks({ pen, square, alpha }, { to, edges }) {
  const { left, top, cell } = square;
  edges.forEach((start, number) => {
    const end = edges[number + 1] ?? to;
    pen.fillStyle = withAlpha(COLOURS.prefill, alpha * STORED_BEFORE);
    pen.fillRect(left, top + start * cell + 1, start * cell, (end - start) * cell - 1);
    pen.fillStyle = withAlpha(COLOURS.prefill, alpha);
    pen.beginPath();
    pen.moveTo(left + start * cell, top + start * cell + 1);
    pen.lineTo(left + end * cell, top + end * cell);
    pen.lineTo(left + start * cell, top + end * cell);
    pen.fill();
  });
}

/**
 * One row, with an arrow beside it where it is the newest.
 * @param {Brush} brush
 * @param {number} query
 */
function paintRow({ pen, square, kind, isNewest }, query) {
  const { left, top, side, cell } = square;
  const thick = Math.max(isNewest ? 2.5 : 1, cell);
  const y = Math.min(top + query * cell, top + side - thick);
  const start = firstKey(kind, query);
  pen.fillRect(left + start * cell, y, (query + 1 - start) * cell, thick);
  if (!isNewest) return;
  pen.beginPath();
  pen.moveTo(left - 7, y - 5);
  pen.lineTo(left - 1, y + thick / 2);
  pen.lineTo(left - 7, y + thick + 5);
  pen.fill();
}

/**
 * Many rows as one shape: down the right edge in steps of whole rows, and up the left one.
 * @param {Brush} brush
 * @param {MaskBlock} block
 */
function paintArea({ pen, square, kind }, { from, to }) {
  const { left, top, cell } = square;
  const rows = Math.max(1, Math.round(1 / cell));
  /** @type {(key: number, query: number) => void} */
  const point = (key, query) => pen.lineTo(left + key * cell, top + query * cell);
  pen.beginPath();
  for (let query = from; query < to; query += rows) {
    point(query + 1, query);
    point(query + 1, Math.min(query + rows, to));
  }
  point(to, to);
  for (let query = to - 1; query >= from; query -= rows) {
    point(firstKey(kind, query), query + 1);
    point(firstKey(kind, query), query);
  }
  point(firstKey(kind, from), from);
  pen.fill();
}
