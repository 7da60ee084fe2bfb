// What has come since Vega drew a chart, painted over its picture in its own scales.
//
// While a run goes, a chart's axes grow in steps, and between two of them a frame only adds marks at
// their end. Vega draws the whole chart anew for each; a pen adds them in a tenth of the time. So
// Vega is given the rows that will stay, and the rest is painted here, until something else changes
// or the run is over: then Vega draws all of it.

/** @import { Row } from "./types.js" */
/** @import { Store } from "./store.js" */
/** @import { Picture, TailPainter } from "./tail_painters.js" */

import { clearedPen, make, pixelRatio } from "./elements.js";

export class ChartTail {
  /**
   * @param {TailPainter} painter
   * @param {{ store: Store, names: Set<string>, spec: any }} chart
   */
  constructor(painter, { store, names, spec }) {
    this.painter = painter;
    this.store = store;
    this.spec = spec;
    this.own = [...painter.grows, ...painter.moves];
    this.fixed = [...names].filter((name) => !this.own.includes(name));
    this.canvas = make("canvas", "tail");
    this.canvas.setAttribute("aria-hidden", "true");
    /** @type {Map<string, Row[]>} */
    this.given = new Map(); // to Vega, of the tables that grow
    this.key = "";
    this.isOpen = false; // Vega was given what stays, and the rest is painted
  }

  /** What Vega's picture rests on besides the rows that are added. */
  get state() {
    const strides = this.painter.grows.map((name) => this.store.stride(name));
    return JSON.stringify([this.store.runs, strides, this.fixed.map((name) => this.store.rows(name))]);
  }

  /**
   * Vega is about to draw the whole chart; while a run goes on, all but its tail. Gives the tables of
   * which Vega has, or is to have, only a part.
   * @param {boolean} isGoing
   */
  begin(isGoing) {
    const wasOpen = this.isOpen;
    this.key = this.state;
    this.given = new Map(this.painter.grows.map((name) => [name, this.store.settled(name)]));
    this.isOpen = isGoing && this.isPlain;
    if (!this.isOpen) this.given = new Map(this.painter.grows.map((name) => [name, this.store.rows(name)]));
    return wasOpen || this.isOpen ? this.own : [];
  }

  /**
   * The rows of a table that Vega draws.
   * @param {string} name
   * @returns {Row[]}
   */
  rows(name) {
    if (this.isOpen && this.painter.moves.includes(name)) return [];
    return this.given.get(name) ?? this.store.rows(name);
  }

  /** Whether what has come since can be painted over what Vega drew. */
  get goesOn() {
    return this.isOpen && this.key === this.state && this.isPlain;
  }

  get isPlain() {
    return this.painter.grows.every((name) => this.added(name).every((row) => this.painter.isPlain(row, this.store)));
  }

  /**
   * @param {string} name
   * @returns {Row[]}
   */
  added(name) {
    const given = this.given.get(name) ?? [];
    const last = given.length ? Number(given[given.length - 1].k) : -Infinity;
    return this.store.rows(name).filter((row) => Number(row.k) > last);
  }

  /**
   * @param {any} view Vega's.
   * @param {{ left: number, top: number, right: number, bottom: number, text: string, font: string }} around
   */
  paint(view, { left, top, right, bottom, text, font }) {
    const [width, height] = [view.width(), view.height()];
    const size = { width: width + left + right, height: height + top + bottom, scale: pixelRatio() };
    this.canvas.style.width = size.width + "px";
    this.canvas.style.height = size.height + "px";
    this.canvas.hidden = !this.isOpen;
    if (!this.isOpen) return;
    const pen = clearedPen(this.canvas, size);
    pen.save();
    pen.translate(left, top);
    /** @type {Picture} */
    const picture = {
      spec: this.spec,
      ...{ width, height, text, font },
      x: view.scale("x"),
      y: view.scale("y"),
      given: (name) => this.given.get(name) ?? [],
      added: (name) => this.added(name),
      moved: (name) => this.store.rows(name),
    };
    this.painter.paint(pen, picture);
    pen.restore();
  }
}
