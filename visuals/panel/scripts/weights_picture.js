// One plane of attention weights as a picture.

/** @import { WeightBlock } from "./types.js" */
/**
 * @typedef {object} Painting
 * @property {(query: number) => number} startOf The first key that a query may read.
 * @property {boolean} withoutFirst The sequence's first token is left out.
 * @property {boolean} isDecode
 */

import { SCALES } from "./colour_scales.js";
import { HALF } from "./weight_blocks.js";

const NOTHING = -1; // no weight: a key that this query may not read, or a row that was not captured
const NOT_A_NUMBER = 2; // above every weight, so that it shows wherever it is

/** One plane of weights on a square of pixels. */
export class WeightsPicture {
  /** @param {number} plane */
  constructor(plane) {
    this.plane = plane;
    this.canvas = document.createElement("canvas");
    this.size = 0;
    this.cells = 0;
    this.image = new ImageData(1, 1);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.values = new Float32Array(0);
    this.isDecode = new Uint8Array(0);
    this.dirty = [0, 0]; // rows of pixels whose colours are out of date
  }

  /**
   * True when everything must be painted again.
   * @param {number} size
   * @param {number} cells
   */
  fit(size, cells) {
    if (size === this.size && cells === this.cells) return false;
    this.size = size;
    this.cells = cells;
    this.canvas.width = this.canvas.height = size;
    this.image = new ImageData(size, size);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.clear();
    return true;
  }

  clear() {
    this.values = new Float32Array(this.size * this.size).fill(NOTHING);
    this.isDecode = new Uint8Array(this.size);
    this.dirty = [0, this.size];
  }

  /**
   * The pixels of some cells.
   * @param {number} from
   * @param {number} to
   */
  span(from, to) {
    const start = Math.min(this.size - 1, Math.floor((from * this.size) / this.cells));
    return [start, Math.max(start + 1, Math.floor((to * this.size) / this.cells))];
  }

  /**
   * @param {WeightBlock} block
   * @param {Painting} how
   */
  paint(block, { startOf, withoutFirst, isDecode }) {
    for (let row = 0; row < block.rows; row += 1) {
      const from = block.q0 + row * block.qb;
      const to = Math.min(block.q0 + block.qn, from + block.qb);
      const [top, bottom] = this.span(from, to);
      this.isDecode.fill(isDecode ? 1 : 0, top, bottom);
      this.dirty = [Math.min(this.dirty[0], top), Math.max(this.dirty[1], bottom)];
      this.row(block, row, { top, bottom, first: startOf(from), last: to - 1, withoutFirst });
    }
  }

  /**
   * @param {WeightBlock} block
   * @param {number} row
   * @param {{ top: number, bottom: number, first: number, last: number, withoutFirst: boolean }} where
   */
  row(block, row, { top, bottom, first, last, withoutFirst }) {
    const start = (this.plane * block.rows + row) * block.width;
    for (let cell = 0; cell < block.width; cell += 1) {
      const from = block.k0 + cell * block.kb;
      const to = Math.min(block.k0 + block.kn, from + block.kb);
      if (from > last) break;
      if (to <= first) continue;
      let weight = HALF[block.data[start + cell]];
      if (withoutFirst && from === 0 && block.rest) {
        if (block.kb === 1) continue;
        weight = HALF[block.rest[this.plane * block.rows + row]];
      }
      if (Number.isNaN(weight)) weight = NOT_A_NUMBER;
      const [left, right] = this.span(from, Math.min(to, last + 1));
      this.fill(weight, { top, bottom, left, right });
    }
  }

  /**
   * @param {number} weight
   * @param {{ top: number, bottom: number, left: number, right: number }} pixels
   */
  fill(weight, { top, bottom, left, right }) {
    for (let y = top; y < bottom; y += 1) {
      for (let at = y * this.size + left; at < y * this.size + right; at += 1) {
        if (weight > this.values[at]) this.values[at] = weight;
      }
    }
  }

  /** @param {{ scale: string, top: number, tables: Uint32Array[], notANumber: number }} style */
  colour({ scale, top, tables, notANumber }) {
    const [from, to] = this.dirty;
    for (let y = from; y < to; y += 1) {
      const table = tables[this.isDecode[y]];
      for (let at = y * this.size; at < (y + 1) * this.size; at += 1) {
        const value = this.values[at];
        if (value === NOTHING) this.pixels[at] = 0;
        else if (value === NOT_A_NUMBER) this.pixels[at] = notANumber;
        else this.pixels[at] = table[Math.max(0, Math.min(255, Math.round(SCALES[scale].share(value, top) * 255)))];
      }
    }
    if (to > from) this.canvas.getContext("2d")?.putImageData(this.image, 0, 0, 0, from, this.size, to - from);
    this.dirty = [this.size, 0];
  }
}
