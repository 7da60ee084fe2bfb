// What the panels with charts share: their charts, and how often these are drawn.

/** @import { Context, Frame, Panel } from "./types.js" */
/** @import { ChartOptions } from "./chart_view.js" */

import { ChartPace } from "./chart_pace.js";
import { ChartView } from "./chart_view.js";
import { make } from "./elements.js";

const SPARE_MS = 250; // a frame that comes within this time draws the charts with everything else

/** @implements {Panel} */
export class ChartPanel {
  /**
   * @param {Context} ctx
   * @param {{ panel: HTMLElement, caption: HTMLElement }} parts
   */
  constructor(ctx, { panel, caption }) {
    this.ctx = ctx;
    this.box = panel;
    this.caption = caption;
    /** @type {ChartView[]} */
    this.charts = [];
    this.pace = new ChartPace();
    this.isGoing = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.later = undefined;
  }

  /**
   * @param {HTMLElement} parent
   * @param {string} name
   * @param {string} [className]
   * @param {ChartOptions} [options]
   */
  chart(parent, name, className, options) {
    const node = make("div", "chart " + (className || ""));
    parent.append(node);
    this.charts.push(new ChartView(node, name, this.ctx, options));
    return node;
  }

  reset() {
    this.caption.textContent = "";
    this.repaint();
  }

  /**
   * @param {Frame} frame
   * @returns {void | Promise<unknown>}
   */
  update(frame) {
    const leftMs = this.pace.leftMs(performance.now());
    const isEnd = frame.run.final && frame.to === frame.total;
    this.isGoing = frame.run.state === "running";
    const isBegin = frame.from === 0; // what stood there is gone
    if (!isEnd && !isBegin && leftMs > 0) {
      clearTimeout(this.later);
      this.later = setTimeout(() => this.repaint(), leftMs + SPARE_MS);
      return undefined;
    }
    return this.paint({ isUnseen: isEnd });
  }

  /** @param {{ isUnseen?: boolean }} [how] */
  paint(how) {
    clearTimeout(this.later);
    const painted = this.ctx.turn.then(() => this.paintAlone(how));
    this.ctx.turn = painted.catch(() => undefined); // whoever waits for this one hears of it
    return painted;
  }

  /** @param {{ isUnseen?: boolean }} [how] */
  async paintAlone(how) {
    const now = performance.now();
    for (const chart of this.charts) await chart.draw({ ...how, isGoing: this.isGoing });
    this.pace.drawn(now, performance.now() - now);
  }

  /** Paint beside the frames: what goes wrong is said as if it had been in one. */
  repaint() {
    this.paint().catch((error) => this.ctx.failed(this, error));
  }

  async retheme() {
    await Promise.all(this.charts.map((chart) => chart.retheme()));
  }

  close() {
    clearTimeout(this.later);
    for (const chart of this.charts) chart.close();
  }
}
