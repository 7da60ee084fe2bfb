// Weight reuse: one matrix W, read once a step, and the rows of X that stream through it.
// Prefill above, decode below, so that the same W meets many rows and then one.

/** @import { Context, Frame, Matrix, Phase, ReuseItem } from "./types.js" */
/**
 * @typedef {object} Line
 * @property {Phase} phase
 * @property {HTMLElement} node
 * @property {HTMLCanvasElement} canvas
 * @property {Place} place Of the canvas.
 * @property {string} drawn What the canvas shows.
 * @property {HTMLElement} formula
 * @property {HTMLElement} bytes
 * @property {HTMLElement} used
 * @property {ReuseItem | null} item
 */

import { clearedPen, COLOURS, make, makeOption, makePanel, pixelRatio, withAlpha, write } from "./elements.js";
import { Place } from "./place.js";

/** @type {Phase[]} */
const PHASES = ["prefill", "decode"];
const WEIGHT_COLOUR = "#CC79A7";
const MOST_ROWS_DRAWN = 9; // lines that stand for the rows of X
const STREAM_MS = 600; // steps that follow each other faster are drawn without the motion

export class WeightReusePanel {
  /**
   * @param {HTMLElement} parent
   * @param {Context} ctx
   */
  constructor(parent, ctx) {
    this.ctx = ctx;
    const parts = makePanel("weights", "Weight reuse", ctx.data.explanations.weights);
    this.box = parts.panel;
    this.caption = parts.caption;
    this.select = make("select", "matrix");
    this.select.setAttribute("aria-label", "Weight matrix");
    this.select.addEventListener("change", () => this.choose());
    parts.tools.insertBefore(this.select, parts.help);
    /** @type {Line[]} */
    this.lines = PHASES.map((phase) => this.line(parts.body, phase));
    parent.append(parts.panel);
    /** @type {Partial<Record<Phase, ReuseItem>>[]} */
    this.items = [];
    /** @type {Matrix[]} */
    this.matrices = [];
    /** @type {Phase | null} */
    this.phase = null;
    /** @type {string | undefined} */
    this.wanted = undefined;
    this.startedAt = 0;
    this.newest = -1; // the step that was drawn last, and when
    this.steppedAt = -Infinity;
    this.isStreaming = false;
    this.isClosed = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.reset();
  }

  /**
   * @param {HTMLElement} parent
   * @param {Phase} phase
   * @returns {Line}
   */
  line(parent, phase) {
    const node = make("div", "reuse reuse-" + phase);
    node.setAttribute("role", "group");
    const canvas = make("canvas", "stream");
    canvas.setAttribute("aria-hidden", "true");
    const words = make("div", "reuse-words");
    const name = make("b", "reuse-phase", phase);
    const formula = make("span", "reuse-formula");
    const bytes = make("span", "reuse-small");
    const used = make("b", "reuse-used");
    const top = make("div", "reuse-top");
    top.append(name, used);
    words.append(top, formula, bytes);
    node.append(canvas, words);
    parent.append(node);
    const place = new Place(canvas, () => this.draw());
    return { phase, node, canvas, place, drawn: "", formula, bytes, used, item: null };
  }

  reset() {
    this.items = [];
    this.matrices = [];
    this.phase = null;
    this.newest = -1;
    this.select.replaceChildren();
    this.caption.textContent = "";
    this.choose();
  }

  /** @param {Frame} frame */
  update(frame) {
    if (frame.captions) write(this.caption, frame.captions.weights);
    if (frame.model) this.offer(frame.model.matrices || []);
    if (frame.weights) {
      this.items = frame.weights;
      this.choose();
    }
    if (frame.step) {
      this.phase = frame.step.phase;
      if (frame.outputs?.length) this.step(frame.step.index);
    }
  }

  /**
   * The matrix chosen before stays chosen when the next run's model has one of that name.
   * @param {Matrix[]} matrices
   */
  offer(matrices) {
    this.matrices = matrices;
    const wanted = this.wanted || matrices.find(({ name }) => /up_proj|c_fc|dense_h_to_4h/.test(name))?.name;
    this.select.replaceChildren(
      ...matrices.map((matrix, index) => makeOption(String(index), matrix.label)),
    );
    const index = matrices.findIndex((matrix) => matrix.name === wanted);
    this.select.value = String(Math.max(0, index));
    this.choose();
  }

  choose() {
    const index = Number(this.select.value || 0);
    this.wanted = this.matrices[index]?.name || this.wanted;
    for (const line of this.lines) {
      const item = this.items[index]?.[line.phase];
      line.item = item || null;
      write(line.formula, item?.formula || "no step yet");
      write(line.bytes, item?.bytes || "");
      write(line.used, item?.reuse || "");
    }
    this.draw();
  }

  // Rows stream through W once for each step, where there is time to see it.
  /** @param {number} index */
  step(index) {
    const now = performance.now();
    const isSlow = index <= this.newest + 1 && now - this.steppedAt > STREAM_MS;
    this.newest = index;
    this.steppedAt = now;
    if (isSlow) this.stream();
    else if (!this.isStreaming) this.draw();
  }

  stream() {
    if (window.matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.draw();
      return;
    }
    this.startedAt = performance.now();
    if (!this.isStreaming) this.tick();
  }

  tick() {
    const done = (performance.now() - this.startedAt) / STREAM_MS;
    this.isStreaming = done < 1 && !this.isClosed;
    this.draw(this.isStreaming ? done : 1);
    if (this.isStreaming) this.timer = setTimeout(() => requestAnimationFrame(() => this.tick()), 60);
  }

  draw(done = 1) {
    for (const line of this.lines) this.drawLine(line, line.phase === this.phase ? done : 1);
  }

  /**
   * @param {Line} line
   * @param {number} done
   */
  drawLine(line, done) {
    const { canvas, phase, item, node, place } = line;
    node.classList.toggle("current", phase === this.phase);
    const { width, height } = place.size;
    if (!place.isSeen || !height) return;
    const { text, background } = this.ctx.theme;
    const drawn = [width, height, pixelRatio(), item?.tokens, done, text, background].join();
    if (drawn === line.drawn) return;
    line.drawn = drawn;
    const pen = clearedPen(canvas, { width, height, scale: pixelRatio() });
    this.block(pen, width, height);
    if (item) this.rows(pen, { width, height, tokens: item.tokens, colour: COLOURS[phase], done });
  }

  /**
   * W in the middle, as wide as the rows are long.
   * @param {CanvasRenderingContext2D} pen
   * @param {number} width
   * @param {number} height
   */
  block(pen, width, height) {
    const left = width * 0.37;
    pen.fillStyle = withAlpha(WEIGHT_COLOUR, 0.55);
    pen.fillRect(left, 1, width * 0.26, height - 2);
    pen.strokeStyle = WEIGHT_COLOUR;
    pen.lineWidth = 2;
    pen.strokeRect(left, 1, width * 0.26, height - 2);
    pen.fillStyle = this.ctx.theme.text;
    pen.font = `600 15px ${this.ctx.theme.font}`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillText("W", width / 2, height / 2);
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {{ width: number, height: number, tokens: number, colour: string, done: number }} rows
   */
  rows(pen, { width, height, tokens, colour, done }) {
    const drawn = Math.min(tokens, MOST_ROWS_DRAWN);
    const pitch = Math.min(7, (height - 4) / MOST_ROWS_DRAWN);
    const top = (height - drawn * pitch) / 2;
    const passed = Math.round(done * drawn);
    for (let row = 0; row < drawn; row += 1) {
      const y = top + row * pitch + 1;
      const isGap = tokens > drawn && row === drawn - 2;
      const isThrough = row < passed;
      pen.fillStyle = isThrough ? withAlpha(colour, 0.45) : colour;
      this.bar(pen, { left: 0, y, width: width * 0.34, height: pitch - 2, isGap });
      pen.fillStyle = colour;
      if (isThrough) this.bar(pen, { left: width * 0.66, y, width: width * 0.34, height: pitch - 2, isGap });
    }
  }

  /**
   * A dotted bar stands for the rows that are not drawn one by one.
   * @param {CanvasRenderingContext2D} pen
   * @param {{ left: number, y: number, width: number, height: number, isGap: boolean }} bar
   */
  bar(pen, { left, y, width, height, isGap }) {
    if (!isGap) {
      pen.fillRect(left, y, width, height);
      return;
    }
    for (let dot = 0; dot < 3; dot += 1) {
      pen.fillRect(left + width * (0.3 + dot * 0.2) - height / 2, y, height, height);
    }
  }

  retheme() {
    this.draw();
  }

  close() {
    this.isClosed = true;
    clearTimeout(this.timer);
    for (const { place } of this.lines) place.close();
  }
}
