// One panel by itself: what it throws stops no other, and is said in its own box.

/** @import { Context, Frame, Panel, PanelClass } from "./types.js" */

import { make } from "./elements.js";

const SENTENCE = "This panel could not be drawn; the browser's console says why. The others go on.";

export class PanelGuard {
  /**
   * @param {PanelClass} PanelOf
   * @param {HTMLElement} parent
   * @param {Context} ctx
   */
  constructor(PanelOf, parent, ctx) {
    this.note = make("p", "broken", SENTENCE);
    this.note.setAttribute("role", "alert");
    this.note.hidden = true;
    this.isBroken = false;
    /** @type {Panel | null} */
    this.panel = null;
    try {
      this.panel = new PanelOf(parent, ctx);
    } catch (error) {
      this.failed(error);
    }
    (this.panel?.box || parent).append(this.note);
  }

  reset() {
    this.isBroken = false;
    this.note.hidden = this.panel !== null;
    this.attempt((panel) => panel.reset());
  }

  /** @param {Frame} frame */
  async update(frame) {
    await this.attempt((panel) => panel.update(frame));
  }

  retheme() {
    void this.attempt((panel) => panel.retheme());
  }

  /** @param {boolean} hasSocket */
  connected(hasSocket) {
    void this.attempt((panel) => panel.connected?.(hasSocket));
  }

  /** @param {Frame} frame */
  begins(frame) {
    void this.attempt((panel) => panel.begins?.(frame));
  }

  close() {
    void this.attempt((panel) => panel.close?.());
  }

  /** @param {(panel: Panel) => unknown} act */
  async attempt(act) {
    if (!this.panel) return;
    try {
      await act(this.panel);
    } catch (error) {
      this.failed(error);
    }
  }

  /** @param {unknown} error */
  failed(error) {
    if (!this.isBroken) console.error("A panel of the live page failed:", error);
    this.isBroken = true;
    this.note.hidden = false;
  }
}
