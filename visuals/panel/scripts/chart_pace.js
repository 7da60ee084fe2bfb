// How often charts are drawn: as seldom as keeps their drawing to a small share of the time.

export const LEAST_PAUSE_MS = 180; // at most about five times a second
export const LONGEST_PAUSE_MS = 2000;
export const SHARE = 0.01; // of the main thread, for the charts of one panel
const WEIGHT = 0.3; // of the newest drawing in the mean

/** The pace of one panel's charts, from what drawing them has taken. */
export class ChartPace {
  constructor() {
    this.meanMs = 0;
    this.drawnAt = -Infinity;
  }

  get pauseMs() {
    return Math.min(LONGEST_PAUSE_MS, Math.max(LEAST_PAUSE_MS, this.meanMs / SHARE));
  }

  /** @param {number} now */
  leftMs(now) {
    return Math.max(0, this.drawnAt + this.pauseMs - now);
  }

  /**
   * @param {number} now When drawing began.
   * @param {number} tookMs
   */
  drawn(now, tookMs) {
    this.drawnAt = now;
    this.meanMs = this.meanMs ? (1 - WEIGHT) * this.meanMs + WEIGHT * tookMs : tookMs;
  }
}
