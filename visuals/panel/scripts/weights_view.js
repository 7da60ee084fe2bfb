// The attention weights of one run and choice, and the pictures of their planes.

/** @import { WeightBlock } from "./types.js" */
/**
 * @typedef {object} Style
 * @property {string} key Changes with everything that changes the picture but the weights.
 * @property {string} scale
 * @property {number} prompt Tokens of the prompt: later queries are decode steps.
 * @property {(query: number) => number} startOf The first key that a query may read.
 * @property {Uint32Array[]} tables The colours of prefill and of decode.
 * @property {number} notANumber The colour of a weight that is none.
 */

import { scaleTop } from "./colour_scales.js";
import { HALF, largestRest } from "./weight_blocks.js";
import { WeightsPicture } from "./weights_picture.js";

/** All planes of what was captured, painted as blocks come in. */
export class WeightsView {
  constructor() {
    /** @type {WeightBlock[]} */
    this.blocks = [];
    /** @type {Map<number, WeightBlock>} */
    this.single = new Map(); // blocks of one query by its position
    /** @type {WeightsPicture[]} */
    this.pictures = [];
    this.painted = 0;
    this.largestRest = 0;
    this.end = 0; // one past the newest query
    this.hasNan = false; // some weight is not a number
    /** @type {(number | null)[]} */
    this.heads = [];
    this.key = "";
  }

  reset() {
    Object.assign(this, new WeightsView());
  }

  /** @param {WeightBlock[]} blocks */
  add(blocks) {
    for (const block of blocks) {
      this.blocks.push(block);
      if (block.qn === 1) this.single.set(block.q0, block);
      this.largestRest = Math.max(this.largestRest, largestRest(block));
      this.hasNan ||= block.data.some((bits) => Number.isNaN(HALF[bits]));
      this.end = Math.max(this.end, block.q0 + block.qn);
      this.heads = block.heads;
    }
  }

  // Everything is painted again, such as after another scale was chosen.
  repaint() {
    this.painted = 0;
    for (const picture of this.pictures) if (picture.size) picture.clear();
  }

  get planes() {
    return Math.max(1, this.heads.length);
  }

  get newestQuery() {
    return this.blocks.length ? this.end - 1 : null;
  }

  /**
   * The block that holds a query's weights.
   * @param {number} query
   */
  holding(query) {
    return this.single.get(query) || this.blocks.find((block) => query >= block.q0 && query < block.q0 + block.qn) || null;
  }

  /**
   * Bring the pictures up to date at this size in pixels.
   * @param {number} size
   * @param {number} cells
   * @param {Style} style
   */
  update(size, cells, style) {
    if (this.pictures.length !== this.planes) {
      this.pictures = Array.from({ length: this.planes }, (_, plane) => new WeightsPicture(plane));
      this.painted = 0;
    }
    let isFresh = false;
    for (const picture of this.pictures) isFresh = picture.fit(size, cells) || isFresh;
    const key = `${style.key} ${this.topOf(style.scale)}`;
    if (key !== this.key) {
      this.key = key;
      this.repaint();
    }
    if (isFresh) this.repaint();
    for (; this.painted < this.blocks.length; this.painted += 1) {
      const block = this.blocks[this.painted];
      const how = { startOf: style.startOf, withoutFirst: style.scale === "rest", isDecode: block.q0 >= style.prompt };
      for (const picture of this.pictures) picture.paint(block, how);
    }
    const top = this.topOf(style.scale);
    for (const picture of this.pictures) picture.colour({ ...style, top });
    return this.pictures;
  }

  /** @param {string} scale */
  topOf(scale) {
    return scale === "rest" ? scaleTop(this.largestRest) : 1;
  }
}
