// One Vega chart: one view for its spec, made once; new rows go in by the name of their data.

/** @import { Context, Theme } from "./types.js" */

import { ChartTail } from "./chart_tail.js";
import { isEnlarged, make } from "./elements.js";
import { Place } from "./place.js";
import { copied } from "./store.js";
import { TAILS } from "./tail_painters.js";

// Room for axis labels and titles, kept whatever the numbers are, so that nothing twitches.
const ROOM = { left: 74, right: 16, top: 10, bottom: 42 };
const BARE_ROOM = 22; // under an axis without a title
const LEGEND_ROOM = 96;
const ERRORS_ONLY = 1; // Vega warns of every chart that is still empty
const PAUSE_MS = 2000; // before a chart that could not be made is tried again
const TIMER_MS = 20; // a timer may come a little early
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
    style: { bound: { color: theme.text } },
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

/**
 * The panel's own tip in place of Vega's, which lies under presenter mode.
 * @param {{ show(anchor: { getBoundingClientRect(): DOMRect }, nodes: Node[]): void, hide(): void }} tip
 */
export function tipOf(tip) {
  return (
    /** @type {unknown} */ _handler,
    /** @type {MouseEvent | null} */ event,
    /** @type {unknown} */ _item,
    /** @type {Record<string, string> | string | null | undefined} */ value,
  ) => {
    if (!value || !event) return tip.hide(); // no event where Vega clears up
    const { clientX, clientY } = event;
    const lines = typeof value === "string" ? [value] : Object.entries(value).map(([name, text]) => `${name}: ${text}`);
    const spot = { getBoundingClientRect: () => new DOMRect(clientX, clientY, 1, 1) };
    return tip.show(spot, lines.map((line) => make("p", null, line)));
  };
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
    const painter = TAILS.get(name);
    this.tail = painter && new ChartTail(painter, { store: ctx.store, names: this.names, spec: ctx.data.specs[name] });
    this.isGoing = false; // the run goes on, so that most frames only add to the picture
    this.isPointedAt = false; // Vega's tips are of what Vega drew
    node.addEventListener("pointerenter", () => this.pointed(true));
    node.addEventListener("pointerleave", () => this.pointed(false));
    /** @type {any} */
    this.result = null;
    /** @type {Promise<void> | null} */
    this.embedding = null;
    this.isClosed = false;
    this.failedAt = -Infinity;
    this.hasFailed = false;
    this.place = new Place(node, () => void this.placed());
  }

  get isEmpty() {
    return [...this.names].every((name) => !this.ctx.store.rows(name).length);
  }

  size() {
    const { left, right, top, bottom } = this.room;
    return {
      width: Math.max(40, this.place.size.width - left - right),
      height: Math.max(30, this.place.size.height - top - bottom),
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
      renderer: isEnlarged() ? "svg" : "canvas",
      config: vegaConfig(this.ctx.theme, { hasLegend: this.hasLegend }),
      logLevel: ERRORS_ONLY,
      ...(isEnlarged() ? { tooltip: tipOf(this.ctx.tip) } : {}),
    });
    if (this.isClosed) {
      result.finalize();
      return;
    }
    this.result?.finalize();
    this.result = result;
    this.drawn.clear();
    if (this.tail) holder.append(this.tail.canvas);
    this.node.replaceChildren(holder);
  }

  /**
   * Draw what has changed; resolves when the picture stands. A chart without data is only made, so
   * that this is done before the first step.
   * @param {{ isUnseen?: boolean, isGoing?: boolean }} [how] Draw it off screen too, as at the end of
   *   a run; and whether the run goes on.
   */
  async draw({ isUnseen = false, isGoing = this.isGoing } = {}) {
    this.isGoing = isGoing;
    if (!this.place.hasRoom || !(this.place.isSeen || isUnseen)) return;
    if (performance.now() - this.failedAt < PAUSE_MS) return;
    const visibility = this.isEmpty ? "hidden" : "";
    if (this.node.style.visibility !== visibility) this.node.style.visibility = visibility;
    try {
      if (!this.isEmpty) await this.drawChanges();
      else if (!this.result) await (this.embedding ??= this.embed());
    } catch (error) {
      this.failed(error);
    }
  }

  async drawChanges() {
    if (!this.result) await (this.embedding ??= this.embed());
    const view = this.result?.view;
    if (!view) return;
    const { store } = this.ctx;
    const isAdding = this.isGoing && !this.isPointedAt;
    const changed = [...this.names].filter((name) => this.drawn.get(name) !== store.version(name));
    if (!changed.length && (isAdding || !this.tail?.isOpen)) return;
    for (const name of changed) this.drawn.set(name, store.version(name));
    if (!isAdding || !this.tail?.goesOn) await this.drawWhole(view, { changed, isAdding });
    this.paintTail();
  }

  /**
   * @param {any} view
   * @param {{ changed: string[], isAdding: boolean }} how
   */
  async drawWhole(view, { changed, isAdding }) {
    const own = this.tail?.begin(isAdding) ?? [];
    for (const name of new Set([...changed, ...own])) view.data(name, copied(this.rows(name)));
    await view.runAsync();
  }

  /** @param {string} name */
  rows(name) {
    return this.tail?.rows(name) ?? this.ctx.store.rows(name);
  }

  paintTail() {
    const { room, ctx, result } = this;
    if (result) this.tail?.paint(result.view, { ...room, text: ctx.theme.text, font: ctx.theme.font });
  }

  /** @param {boolean} isPointedAt */
  pointed(isPointedAt) {
    this.isPointedAt = isPointedAt;
    if (isPointedAt && this.tail?.isOpen) void this.draw();
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
    setTimeout(() => void (this.isClosed || this.draw()), PAUSE_MS + TIMER_MS);
  }

  /** The chart has another size, or can be seen again. */
  async placed() {
    if (this.isClosed) return;
    await this.fit();
    await this.draw();
  }

  async fit() {
    const view = this.result?.view;
    if (!view || !this.place.hasRoom) return;
    const { width, height } = this.size();
    if (view.width() === width && view.height() === height) return;
    try {
      await view.width(width).height(height).runAsync();
      this.paintTail();
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
    this.place.close();
    this.result?.finalize();
  }
}
