// Where everything is on the attention picture: its square, its cells, and the squares of heads.

/** @import { Cell, HeadLayout, HeadSquare, Layout, Square } from "./types.js" */

const LABEL_CELL = 12; // from this cell size on, rows and columns carry their tokens

/**
 * One square with axes, in a canvas of this size.
 * @param {number} width
 * @param {number} height
 * @param {number} cells
 * @returns {Square}
 */
export function squareLayout(width, height, cells) {
  const isLabelled = Math.min((width - 74) / cells, (height - 62) / cells) >= LABEL_CELL;
  const left = isLabelled ? 74 : 56;
  const top = isLabelled ? 62 : 24;
  const side = Math.max(40, Math.min(width - left - 4, height - top - 4));
  return { cells, left, top, side, cell: side / cells, isLabelled };
}

/**
 * Where each head's square lies, and the frames around those that share a K/V head.
 * @param {number} heads
 * @param {number} shared K/V heads.
 * @param {{ width: number, height: number }} size
 * @returns {HeadLayout}
 */
export function headLayout(heads, shared, { width, height }) {
  const group = heads % shared === 0 ? heads / shared : 1;
  const count = heads / group;
  const gap = group > 1 ? 4 : 2;
  let best = { side: 0, across: 1 };
  for (let across = 1; across <= count; across += 1) {
    const rows = Math.ceil(count / across);
    const side = Math.min((width - across * (gap * 2)) / (across * group) - 2, height / rows - gap * 2 - 2);
    if (side > best.side) best = { side: Math.floor(side), across };
  }
  const side = Math.max(6, best.side);
  const wide = group * (side + 2) + gap;
  const tall = side + 2 + gap;
  /** @type {HeadLayout} */
  const layout = { heads: [], groups: [] };
  for (let head = 0; head < heads; head += 1) {
    const number = Math.floor(head / group);
    const x = (number % best.across) * (wide + gap) + gap / 2 + 1;
    const y = Math.floor(number / best.across) * (tall + gap) + gap / 2 + 1;
    if (head % group === 0 && group > 1) {
      layout.groups.push({ x: x - gap / 2 - 1, y: y - gap / 2 - 1, width: wide, height: tall });
    }
    layout.heads.push({ x: x + (head % group) * (side + 2), y, side });
  }
  return layout;
}

/**
 * Plane, query and key under a point of the one square, or of one of the heads'; null beside them.
 * @param {number} x
 * @param {number} y
 * @param {Layout} layout
 * @returns {Cell | null}
 */
export function cellAt(x, y, layout) {
  /** @param {HeadSquare} square */
  const isInside = (square) =>
    x >= square.x && y >= square.y && x < square.x + square.side && y < square.y + square.side;
  const plane = layout.heads ? layout.heads.findIndex(isInside) : 0;
  const grid = gridOf(plane, layout);
  if (!grid) return null;
  const query = Math.floor((y - grid.top) / grid.cell);
  const key = Math.floor((x - grid.left) / grid.cell);
  return query < 0 || key < 0 ? null : { plane, query, key };
}

/**
 * The middle of a cell, the other way round; null where nothing was drawn.
 * @param {Cell} cell
 * @param {Layout} layout
 */
export function middleOf({ plane, query, key }, layout) {
  const grid = gridOf(plane, layout);
  return grid && { x: grid.left + (key + 0.5) * grid.cell, y: grid.top + (query + 0.5) * grid.cell };
}

/**
 * @param {number} plane
 * @param {Layout} layout
 */
function gridOf(plane, { square, heads, cells }) {
  if (!heads) return square;
  const head = heads[plane];
  return head ? { left: head.x, top: head.y, cell: head.side / cells } : null;
}
