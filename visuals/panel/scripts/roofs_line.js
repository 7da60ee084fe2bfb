// The line about a run's roofs: what is missing or out of date, and the button that measures them.
// Roofs that are measured after a run are the run's too, so once it is over the line asks the
// server for them by itself.

/** @import { Context, Frame, RoofsStanding } from "./types.js" */

import { make, makeButton, write } from "./elements.js";
import { answer } from "./status_poll.js";

const ASKED_EVERY_MS = 1000;
const NOTHING = { version: "", isFinal: false, hasModel: false };
const LATER = "No roofs yet: they are measured once this run is over.";
const NEVER = "No roofs were measured where this run was made.";

export class RoofsLine {
  /**
   * @param {HTMLElement} parent
   * @param {Node} before
   * @param {Context} ctx
   */
  constructor(parent, before, ctx) {
    this.ctx = ctx;
    this.box = make("p", "alarm");
    this.box.setAttribute("role", "status");
    this.words = make("span");
    this.button = makeButton("", () => this.measure());
    this.button.className = "measure";
    this.box.append(this.words, " ", this.button);
    parent.insertBefore(this.box, before);
    this.presses = 0;
    this.asks = 0; // what was asked for another run is not listened to
    this.isClosed = false;
    this.isAsking = false;
    this.alarm = "";
    this.drawn = NOTHING;
    /** @type {RoofsStanding | null} */
    this.standing = null;
    this.show();
  }

  reset() {
    this.alarm = "";
    this.drawn = NOTHING;
    this.standing = null;
    this.asks += 1;
    this.isAsking = false;
    this.show();
  }

  /** @param {Frame} frame */
  update(frame) {
    if (frame.model) this.drawn = { ...this.drawn, version: frame.model.roofs, hasModel: true };
    this.drawn = { ...this.drawn, isFinal: frame.run.final };
    this.show();
    this.askIfNeeded();
  }

  /** @param {string} words About a point above a roof; empty for none. */
  warn(words) {
    this.alarm = words;
    this.show();
    this.askIfNeeded();
  }

  show() {
    const { standing, alarm, drawn } = this;
    const isMissing = drawn.hasModel && !drawn.version;
    const own = isMissing ? this.missing : "";
    const measuring = alarm && standing?.is_pending ? standing.words : "";
    write(this.words, [alarm && `\u26a0\ufe0e ${alarm}`, measuring, own].filter(Boolean).join(" "));
    write(this.button, isMissing ? "Measure the roofs" : "Measure again");
    this.button.hidden = !standing?.is_offered || !drawn.isFinal;
    this.box.classList.toggle("warns", Boolean(alarm));
    this.box.hidden = !this.words.textContent;
  }

  get missing() {
    if (!this.ctx.origin.hasServer) return NEVER;
    return this.drawn.isFinal ? (this.standing?.words ?? "") : LATER;
  }

  measure() {
    this.presses += 1;
    this.button.hidden = true;
    this.ctx.send("measure", this.presses);
    this.standing = null;
    this.asks += 1;
    void this.ask(ASKED_EVERY_MS / 2);
  }

  askIfNeeded() {
    if (!this.ctx.origin.hasServer) return;
    const isOf = this.drawn.hasModel && this.drawn.isFinal && (!this.drawn.version || this.alarm);
    if (isOf && !this.isAsking && !this.standing) void this.ask(0);
  }

  /** @param {number} afterMs */
  async ask(afterMs) {
    const number = this.asks;
    const isOld = () => this.isClosed || number !== this.asks;
    this.isAsking = true;
    let pauseMs = afterMs;
    do {
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
      const standing = isOld() ? null : await this.fetched();
      if (isOld()) return;
      if (standing && standing.version !== this.drawn.version) {
        this.ctx.again();
        return;
      }
      this.standing = standing ?? this.standing;
      this.show();
      pauseMs = ASKED_EVERY_MS;
    } while (this.standing?.is_pending);
    this.isAsking = false;
  }

  /** @returns {Promise<RoofsStanding | null>} Null where the server does not answer. */
  async fetched() {
    const { run_id, token } = this.ctx.data;
    const address = new URL(`live/roofs/${encodeURIComponent(run_id)}`, this.ctx.base);
    address.searchParams.set("k", token);
    return answer(address);
  }

  close() {
    this.isClosed = true;
  }
}
