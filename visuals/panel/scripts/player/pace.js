// Which stop of a run is reached, as visuals/live/playback.py has it: by the run's own pace, times a
// speed, from where it was held.

export class Pace {
  /**
   * @param {number[]} endsS When each stop is reached at the run's own pace; the first at 0.
   * @param {() => number} nowMs
   */
  constructor(endsS, nowMs) {
    this.endsS = endsS;
    this.nowMs = nowMs;
    this.speed = 1;
    this.isPlaying = false;
    this.reached = 0;
    this.positionS = 0;
    this.anchorMs = nowMs();
  }

  get last() {
    return this.endsS.length - 1;
  }

  /** The stop reached by now; playing ends at the last one. */
  get stop() {
    this.advance();
    return this.reached;
  }

  advance() {
    const nowMs = this.nowMs();
    if (this.isPlaying) {
      this.positionS += ((nowMs - this.anchorMs) / 1000) * this.speed;
      while (this.reached < this.last && this.endsS[this.reached + 1] <= this.positionS) this.reached += 1;
    }
    this.anchorMs = nowMs;
    if (this.reached === this.last) this.isPlaying = false;
  }

  /** Go on, or from the beginning where all was shown. */
  play() {
    this.advance();
    if (this.reached === this.last) this.seek(0);
    this.isPlaying = this.last > 0;
  }

  hold() {
    this.advance();
    this.isPlaying = false;
  }

  /** @param {number} stop */
  seek(stop) {
    this.advance();
    this.reached = Math.min(Math.max(stop, 0), this.last);
    this.positionS = this.endsS[this.reached];
  }

  /** @param {number} speed Times the run's own pace. */
  change(speed) {
    this.advance();
    this.speed = speed;
  }

  /** How long until the next stop is reached; null where none will be. */
  get leftMs() {
    this.advance();
    if (!this.isPlaying) return null;
    return Math.max(0, ((this.endsS[this.reached + 1] - this.positionS) / this.speed) * 1000);
  }
}
