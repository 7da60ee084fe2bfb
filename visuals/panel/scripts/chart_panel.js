// What the panels with charts share: their charts, and how often these are drawn.

/** @import { Context, Frame, Panel } from "./types.js" */
/** @import { ChartOptions } from "./chart_view.js" */

import { ChartView } from "./chart_view.js";
import { make } from "./elements.js";

const CHART_INTERVAL_MS = 180; // charts follow at about 5 a second, text and mask at 10

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
    this.paintedAt = 0;
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
    const now = performance.now();
    const isEnd = frame.run.final && frame.to === frame.total;
    if (!isEnd && now - this.paintedAt < CHART_INTERVAL_MS) {
      clearTimeout(this.later);
      this.later = setTimeout(() => this.repaint(), CHART_INTERVAL_MS);
      return undefined;
    }
    return this.paint();
  }

  async paint() {
    clearTimeout(this.later);
    this.paintedAt = performance.now();
    await Promise.all(this.charts.map((chart) => chart.draw()));
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
