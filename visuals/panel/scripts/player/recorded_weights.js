// The attention weights that the page holds: they stand in for the WebSocket of attention. Shown are
// those of queries whose tokens are stored, as visuals/live/attention_feed.py has it.

/** @import { BlockHeader, Choice } from "../types.js" */
/** @import { Header } from "../attention_link.js" */
/**
 * @typedef {{ stop: number, reason: string, blocks: BlockHeader[] }} RecordedMap
 * @typedef {{ choice: Choice, note: string, maps: RecordedMap[], body: string }} RecordedItem
 * @typedef {{ stop: number, reason: string, header: BlockHeader | null, halves: Uint16Array }} Part
 */

import { unpacked } from "./unpacked.js";

/** @type {(keyof Choice)[]} */
const PARTS = ["layer", "head", "all", "row"];

export class RecordedWeights {
  /**
   * @param {object} held
   * @param {RecordedItem[]} held.items
   * @param {string} held.none What is said where a choice is not among them.
   * @param {object} calls
   * @param {(header: Header, body: ArrayBuffer) => void} calls.take
   * @param {() => number} calls.stop That the panels show; -1 while they begin anew.
   */
  constructor({ items, none }, { take, stop }) {
    this.items = items;
    this.none = none;
    this.take = take;
    this.stop = stop;
    this.choice = items[0]?.choice ?? null;
    this.notice = "";
    this.note = "";
    this.isOpen = false;
    this.isBegun = false; // its weights are here
    this.isSaid = false; // the panel knows which they are
    this.begins = 0;
    /** @type {Part[]} */
    this.parts = [];
    this.sent = 0;
    /** @type {Map<RecordedItem, Promise<Uint16Array>>} */
    this.unpacked = new Map();
  }

  open() {
    this.isOpen = true;
    void this.begin();
  }

  close() {
    this.isOpen = false;
    this.begins += 1;
  }

  /** @param {{ capture?: Choice }} request For exact weights there is nothing but what is drawn. */
  ask({ capture }) {
    if (!capture || !this.isOpen) return;
    const found = this.found(capture);
    if (found) this.choice = capture;
    this.notice = found ? "" : this.none;
    if (found) void this.begin();
    else this.sayState(false);
  }

  /** The panels show another stop. */
  shown() {
    if (this.isOpen) this.send();
  }

  /** Say what is shown, and all of it that is there, from the beginning. */
  async begin() {
    const begins = (this.begins += 1);
    const { choice } = this;
    this.isBegun = false;
    this.parts = [];
    this.sent = 0;
    const found = choice && this.found(choice);
    const parts = found ? await this.partsOf(found, choice) : await [];
    if (begins !== this.begins) return;
    this.note = found?.note ?? "";
    this.parts = parts;
    this.isBegun = true;
    this.isSaid = false;
    this.send();
  }

  send() {
    const stop = this.stop();
    if (!this.isBegun || stop < 0) return; // the panels draw their frame first
    if (!this.isSaid) {
      this.isSaid = true;
      this.sayState(true);
    }
    const added = [];
    while (this.sent < this.parts.length && this.parts[this.sent].stop <= stop) {
      added.push(this.parts[this.sent]);
      this.sent += 1;
    }
    if (added.some(({ reason }) => reason)) this.sayState(false);
    const drawn = added.filter(({ header }) => header);
    if (!drawn.length) return;
    const body = new Uint16Array(drawn.reduce((sum, { halves }) => sum + halves.length, 0));
    let at = 0;
    for (const { halves } of drawn) {
      body.set(halves, at);
      at += halves.length;
    }
    const blocks = drawn.map(({ header }) => /** @type {BlockHeader} */ (header));
    this.take({ kind: "blocks", blocks }, body.buffer);
  }

  /** @param {boolean} reset */
  sayState(reset) {
    const reasons = this.parts.slice(0, this.sent).map(({ reason }) => reason);
    const reason = reasons.findLast(Boolean) ?? "";
    const { choice, notice, note } = this;
    this.take({ kind: "state", choice, notice, note, reason, over: true, reset }, new ArrayBuffer(0));
  }

  /**
   * The weights that answer for a choice: its own, or of a head those of all heads.
   * @param {Choice} choice
   */
  found(choice) {
    const own = this.items.find((item) => PARTS.every((part) => item.choice[part] === choice[part]));
    if (own || choice.all || choice.head === null) return own ?? null;
    const { layer, row } = choice;
    return this.items.find(({ choice: held }) => held.all && held.layer === layer && held.row === row) ?? null;
  }

  /**
   * The blocks of weights in the order of their queries, each with the stop from which on it is shown.
   * @param {RecordedItem} item
   * @param {Choice} choice
   * @returns {Promise<Part[]>}
   */
  async partsOf(item, choice) {
    if (!this.unpacked.has(item)) this.unpacked.set(item, unpacked(item.body).then(halvesOf));
    const halves = await /** @type {Promise<Uint16Array>} */ (this.unpacked.get(item));
    const isOneOfAll = item.choice.all && !choice.all;
    /** @type {Part[]} */
    const parts = [];
    let at = 0;
    for (const { stop, reason, blocks } of item.maps) {
      if (!blocks.length) parts.push({ stop, reason, header: null, halves: new Uint16Array() });
      for (const header of blocks) {
        const end = at + sizeOf(header);
        const own = halves.subarray(at, end);
        parts.push({ stop, reason, ...(isOneOfAll ? planeOf(header, own, choice.head) : { header, halves: own }) });
        at = end;
      }
    }
    return parts;
  }
}

/**
 * Half-precision numbers whose high bytes all come before their low ones.
 * @param {ArrayBuffer} buffer
 */
export function halvesOf(buffer) {
  const bytes = new Uint8Array(buffer);
  const count = bytes.length / 2;
  return Uint16Array.from({ length: count }, (_, index) => (bytes[index] << 8) | bytes[count + index]);
}

/** @param {BlockHeader} header */
function sizeOf({ shape: [planes, rows, width], rest }) {
  return planes * rows * (width + (rest ? 1 : 0));
}

/**
 * One head's part of a block of all heads.
 * @param {BlockHeader} header
 * @param {Uint16Array} halves
 * @param {number | null} head
 */
function planeOf(header, halves, head) {
  const [planes, rows, width] = header.shape;
  const plane = header.heads.indexOf(head);
  if (plane < 0) return { header: null, halves: new Uint16Array() };
  const data = halves.subarray(plane * rows * width, (plane + 1) * rows * width);
  const rests = planes * rows * width;
  const rest = header.rest ? halves.subarray(rests + plane * rows, rests + (plane + 1) * rows) : [];
  const own = new Uint16Array(data.length + rest.length);
  own.set(data);
  own.set(rest, data.length);
  return { header: { ...header, heads: [head], shape: /** @type {[number, number, number]} */ ([1, rows, width]) }, halves: own };
}
