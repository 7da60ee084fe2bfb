// One Vega chart: one view for its spec, made once; new rows go in by the name of their data.

/** @import { Context, Theme } from "./types.js" */

import { make } from "./elements.js";

// Room for axis labels and titles, kept whatever the numbers are, so that nothing twitches.
const ROOM = { left: 74, right: 16, top: 10, bottom: 42 };
const BARE_ROOM = 22; // under an axis without a title
const LEGEND_ROOM = 96;
const ERRORS_ONLY = 1; // Vega warns of every chart that is still empty
const PAUSE_MS = 2000; // before a chart that could not be made is tried again
const SENTENCE = "This chart could not be drawn; trying again.";

/** @typedef {{ hasLegend?: boolean, isBare?: boolean, top?: number }} ChartOptions */

/** @param {Theme} theme */
function vegaConfig(theme, { hasLegend = true } = {}) {
  const soft = theme.text;
  return {
    background: null,
    font: theme.font,
    view: { stroke: null },
    axis: {
      labelColor: soft,
      titleColor: soft,
      tickColor: theme.border,
      domainColor: theme.border,
      gridColor: theme.border,
      labelFontSize: 14,
      titleFontSize: 14,
      titleFontWeight: 500,
      titlePadding: 4,
      labelOverlap: true,
    },
    axisY: { minExtent: 44, maxExtent: 44 },
    style: { bound: { stroke: theme.text } },
    legend: {
      labelColor: soft,
      titleColor: soft,
      labelFontSize: 14,
      titleFontSize: 14,
      ...(hasLegend ? {} : { disable: true }),
    },
  };
}

/**
 * The names of the data that a spec draws.
 * @param {any} spec
 * @returns {Set<string>}
 */
export function dataNames(spec) {
  /** @type {Set<string>} */
  const names = new Set();
  if (spec?.data?.name) names.add(spec.data.name);
  for (const layer of spec?.layer || []) for (const name of dataNames(layer)) names.add(name);
  return names;
}

export class ChartView {
  /**
   * @param {HTMLElement} node
   * @param {string} name
   * @param {Context} ctx
   * @param {ChartOptions} [options]
   */
  constructor(node, name, ctx, { hasLegend = false, isBare = false, top = ROOM.top } = {}) {
    this.node = node;
    this.name = name;
    this.ctx = ctx;
    this.hasLegend = hasLegend;
    this.names = dataNames(ctx.data.specs[name]);
    this.room = { ...ROOM, top };
    if (hasLegend) this.room.right = LEGEND_ROOM;
    if (isBare) this.room.bottom = BARE_ROOM;
    /** @type {Map<string, number>} */
    this.drawn = new Map(); // the version of each table that the picture shows
    /** @type {any} */
    this.result = null;
    /** @type {Promise<void> | null} */
    this.embedding = null;
    this.isClosed = false;
    this.failedAt = -Infinity;
    this.hasFailed = false;
    this.observer = new ResizeObserver(() => void this.fit());
    this.observer.observe(node);
  }

  get isShown() {
    return this.node.clientWidth > 0;
  }

  get isEmpty() {
    return [...this.names].every((name) => !this.ctx.store.rows(name).length);
  }

  size() {
    const { left, right, top, bottom } = this.room;
    return {
      width: Math.max(40, this.node.clientWidth - left - right),
      height: Math.max(30, this.node.clientHeight - top - bottom),
    };
  }

  async embed() {
    const embed = await this.ctx.vega.load();
    if (!embed || this.isClosed) return;
    const spec = structuredClone(this.ctx.data.specs[this.name]);
    Object.assign(spec, this.size(), { padding: this.room, autosize: { type: "none" } });
    const holder = make("div", "vega");
    const result = await embed(holder, spec, {
      actions: false,
      renderer: "canvas",
      config: vegaConfig(this.ctx.theme, { hasLegend: this.hasLegend }),
      logLevel: ERRORS_ONLY,
    });
    if (this.isClosed) {
      result.finalize();
      return;
    }
    this.result?.finalize();
    this.result = result;
    this.drawn.clear();
    this.node.replaceChildren(holder);
  }

  /** Draw what has changed; resolves when the picture stands. */
  async draw() {
    if (!this.isShown) return;
    this.node.style.visibility = this.isEmpty ? "hidden" : "";
    if (this.isEmpty || performance.now() - this.failedAt < PAUSE_MS) return;
    try {
      await this.drawChanges();
    } catch (error) {
      this.failed(error);
    }
  }

  async drawChanges() {
    if (!this.result) await (this.embedding ??= this.embed());
    const view = this.result?.view;
    if (!view) return;
    let isChanged = false;
    for (const name of this.names) {
      const version = this.ctx.store.version(name);
      if (this.drawn.get(name) === version) continue;
      this.drawn.set(name, version);
      view.data(name, this.ctx.store.copies(name));
      isChanged = true;
    }
    if (isChanged) await view.runAsync();
  }

  /**
   * Say so in the chart's place, and make the chart from scratch the next time.
   * @param {unknown} error
   */
  failed(error) {
    if (this.isClosed) return;
    if (!this.hasFailed) console.error(`The chart ${this.name} could not be drawn:`, error);
    this.hasFailed = true;
    this.failedAt = performance.now();
    this.result?.finalize();
    this.result = this.embedding = null;
    this.node.replaceChildren(make("p", "broken", SENTENCE));
    setTimeout(() => void (this.isClosed || this.draw()), PAUSE_MS);
  }

  async fit() {
    const view = this.result?.view;
    if (!view || !this.isShown) return;
    const { width, height } = this.size();
    if (view.width() === width && view.height() === height) return;
    try {
      await view.width(width).height(height).runAsync();
    } catch (error) {
      this.failed(error);
    }
  }

  async retheme() {
    if (!this.result) return;
    try {
      await this.embed();
    } catch (error) {
      this.failed(error);
    }
    await this.draw();
  }

  close() {
    this.isClosed = true;
    this.observer.disconnect();
    this.result?.finalize();
  }
}
