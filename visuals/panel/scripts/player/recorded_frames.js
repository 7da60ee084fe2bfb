// The frames of a run that the page holds: it stands in for the WebSocket of the run. Like the server
// it sends what the panel has not drawn, as one frame, and the next one once that is drawn.

/** @import { Acknowledge, Frame, RunStatus } from "../types.js" */
/** @import { FollowEvent } from "../follow.js" */

import { merged } from "./merged_frames.js";

export class RecordedFrames {
  /**
   * @param {Frame[][]} frames For each stop those that lead to it from the one before.
   * @param {object} calls
   * @param {() => void} calls.shown The panels show another stop.
   */
  constructor(frames, { shown }) {
    this.frames = frames;
    /** @type {(frame: Frame, acknowledge: Acknowledge) => void} */
    this.receive = () => undefined; // until there is a panel
    /** @type {() => void} */
    this.again = () => undefined; // have the panel begin anew
    this.shown = shown;
    this.isFed = false;
    this.isFollowed = false;
    this.isPlaying = false;
    this.target = 0;
    this.sent = -1; // the newest stop that the panel was sent; -1 for none
    this.stop = -1; // likewise, that it shows
    this.sentState = "";
    this.follows = 0;
    this.isDrawing = false;
  }

  /** @param {FollowEvent} event Of the panel, which begins a run from its beginning or is closed. */
  on({ type }) {
    if (type !== "follow" && type !== "leave") return;
    this.follows += 1; // what was sent before is not waited for
    this.isFollowed = type === "follow";
    this.isDrawing = false;
    this.sent = this.stop = -1;
    this.next();
  }

  /**
   * Show a stop; for one before what is drawn all is drawn anew up to there.
   * @param {number} stop
   * @param {boolean} isPlaying
   */
  show(stop, isPlaying) {
    this.target = stop;
    this.isPlaying = isPlaying;
    if (stop < this.sent) this.again();
    else this.next();
  }

  next() {
    const { target, follows } = this;
    const run = this.status(target);
    if (!this.isFollowed || this.isDrawing) return;
    if (target <= this.sent && run.state === this.sentState) return;
    const added = this.frames.slice(this.sent + 1, target + 1).flat();
    const frame = { ...(added.length ? merged(added) : this.nothing()), run };
    this.isDrawing = true;
    this.sent = target;
    this.sentState = run.state;
    this.receive(frame, () => {
      if (follows !== this.follows) return;
      this.isDrawing = false;
      this.reached(target);
      this.next();
    });
    // The panel draws in the next animation frame; what depends on it is drawn in the same one.
    requestAnimationFrame(() => follows === this.follows && this.reached(target));
  }

  /** @param {number} stop */
  reached(stop) {
    this.stop = Math.max(this.stop, stop);
    this.shown();
  }

  /**
   * Where the run stands at a stop: as it ended, or as it plays again.
   * @param {number} stop
   * @returns {RunStatus}
   */
  status(stop) {
    const { run } = this.newest(stop);
    return run.final ? run : { ...run, state: this.isPlaying ? "running" : "paused" };
  }

  /** A frame that adds nothing to what is drawn. */
  nothing() {
    const { run, to } = this.newest(this.sent);
    return { run, from: to, to, total: to };
  }

  /** @param {number} stop */
  newest(stop) {
    const frames = this.frames[stop];
    return frames[frames.length - 1];
  }
}
