// Which keys each query may read, and what the steps of one request added to the mask;
// inference/counting/masks.py says the same.

/** @import { LayerKind, Phase } from "./types.js" */
/**
 * @typedef {object} MaskBlock A run of query rows of one phase.
 * @property {Phase} phase
 * @property {number} from
 * @property {number} to
 * @property {number[]} edges Where each step of the run begins.
 */

/** @type {LayerKind} */
export const ALL_KEYS = { window: null, chunked: false, attends: true };

/**
 * The first key that a query of a layer may read; it reads all from there to itself.
 * @param {Pick<LayerKind, "window" | "chunked">} kind
 * @param {number} query
 */
export function firstKey({ window: size, chunked }, query) {
  if (size === null) return 0;
  return chunked ? query - (query % size) : Math.max(0, query + 1 - size);
}

/** One request's part of the mask. */
export class MaskRow {
  constructor(prompt = Infinity, output = 0) {
    /** @type {MaskBlock[]} */
    this.blocks = []; // the newest step's last
    this.context = 0;
    this.prompt = prompt;
    this.most = Number.isFinite(prompt) ? prompt + Math.max(0, output - 1) : 0; // tokens that can be fed
  }

  /** @returns {MaskBlock | undefined} */
  get newest() {
    return this.blocks[this.blocks.length - 1];
  }

  get isPromptFed() {
    return this.context >= this.prompt;
  }

  /**
   * A step: the newest one stays by itself, those before it are joined.
   * @param {Phase} phase
   * @param {number} fed
   * @param {number} to
   */
  add(phase, fed, to) {
    const from = to - fed;
    const before = this.blocks[this.blocks.length - 2];
    const { newest } = this;
    if (before && newest && before.phase === newest.phase && before.to === newest.from) {
      before.to = newest.to;
      before.edges.push(newest.from);
      this.blocks.pop();
    }
    this.blocks.push({ phase, from, to, edges: [from] });
    this.context = Math.max(this.context, to);
  }
}
