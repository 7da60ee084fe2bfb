// The small window beside what is pointed at, and which token that is.

/** @import { Position } from "./types.js" */

import { make } from "./elements.js";

/** Which token is pointed at; strips and masks light it together. */
export class Hover {
  constructor() {
    /** @type {((position: Position | null) => void)[]} */
    this.listeners = [];
    /** @type {Position | null} */
    this.position = null;
  }

  /** @param {(position: Position | null) => void} call */
  listen(call) {
    this.listeners.push(call);
  }

  /**
   * @param {number} row
   * @param {number | null} position
   */
  point(row, position) {
    const next = position === null ? null : { row, position };
    if (next?.row === this.position?.row && next?.position === this.position?.position) return;
    this.position = next;
    for (const call of this.listeners) call(next);
  }
}

/** One small window beside what is pointed at or focused. */
export class Tip {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.box = make("div", "tip");
    this.box.setAttribute("role", "tooltip");
    this.box.hidden = true;
    root.append(this.box);
  }

  /**
   * @param {{ getBoundingClientRect(): DOMRect }} anchor
   * @param {Node[]} nodes
   */
  show(anchor, nodes) {
    this.box.replaceChildren(...nodes);
    this.box.hidden = false;
    const frame = this.root.getBoundingClientRect();
    const spot = anchor.getBoundingClientRect();
    const box = this.box.getBoundingClientRect();
    const by = frame.width / this.root.offsetWidth || 1; // presenter mode enlarges the root
    const left = Math.min(Math.max(0, spot.left - frame.left), Math.max(0, frame.width - box.width));
    const below = spot.bottom - frame.top + 8;
    const isRoomBelow = spot.bottom + 8 + box.height <= window.innerHeight;
    const top = isRoomBelow ? below : spot.top - frame.top - box.height - 8;
    this.box.style.left = left / by + "px";
    this.box.style.top = Math.max(0, top) / by + "px";
  }

  hide() {
    this.box.hidden = true;
  }
}
