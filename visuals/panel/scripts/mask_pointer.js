// The cell of the attention picture that the pointer, or the arrow keys in its place, is at.

/** @import { Cell } from "./types.js" */
/** @import { MaskPanel } from "./mask_panel.js" */

import { make } from "./elements.js";
import { cellAt, middleOf } from "./mask_layout.js";

const EXACT_AFTER_MS = 120; // the pointer rests before an exact row is asked for
/** @type {Map<string, [number, number]>} */
const MOVES = new Map([
  ["ArrowUp", [-1, 0]],
  ["ArrowDown", [1, 0]],
  ["ArrowLeft", [0, -1]],
  ["ArrowRight", [0, 1]],
]);

export class MaskPointer {
  /** @param {MaskPanel} panel */
  constructor(panel) {
    this.panel = panel;
    /** @type {(Cell & { x: number, y: number }) | null} */
    this.at = null; // with where it is in the window
    this.isByKey = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.asking = undefined;
    panel.canvas.addEventListener("mousemove", (event) => this.pointed(event));
    panel.canvas.addEventListener("mouseleave", () => this.isByKey || this.leave());
    panel.canvas.addEventListener("keydown", (event) => this.moved(event));
    panel.canvas.addEventListener("blur", () => this.leave());
  }

  /** @param {MouseEvent} event */
  pointed(event) {
    const { painter, row } = this.panel;
    if (this.isByKey && !event.movementX && !event.movementY) return; // the page moved, not the pointer
    this.isByKey = false;
    const cell = painter.layout && cellAt(event.offsetX, event.offsetY, painter.layout);
    if (!cell || cell.query >= row.context || cell.key >= row.context) this.leave();
    else this.point(cell, { x: event.clientX, y: event.clientY });
  }

  /** @param {KeyboardEvent} event */
  moved(event) {
    const { canvas, painter, row } = this.panel;
    const move = MOVES.get(event.key);
    if (event.key === "Escape") this.leave();
    if (!move || !row.context || !painter.layout) return;
    event.preventDefault();
    this.isByKey = true;
    const cell = this.stepped(move, event.shiftKey ? 10 : 1);
    const box = canvas.getBoundingClientRect();
    const by = box.width / canvas.clientWidth || 1; // presenter mode enlarges the canvas
    const { x, y } = middleOf(cell, painter.layout) || { x: 0, y: 0 };
    this.point(cell, { x: box.left + by * x, y: box.top + by * y });
  }

  /**
   * The cell after a press; the first press enters the picture at the newest query.
   * @param {[number, number]} move
   * @param {number} step
   * @returns {Cell}
   */
  stepped([down, right], step) {
    const last = this.panel.row.context - 1;
    if (!this.at) return { plane: 0, query: last, key: last };
    /** @param {number} position */
    const within = (position) => Math.min(last, Math.max(0, position));
    const { plane, query, key } = this.at;
    return { plane, query: within(query + step * down), key: within(key + step * right) };
  }

  /**
   * @param {Cell} cell
   * @param {{ x: number, y: number }} where In the window.
   */
  point(cell, { x, y }) {
    const { ctx, rowNumber, view } = this.panel;
    const isMoved = cell.query !== this.at?.query || cell.plane !== this.at?.plane;
    this.at = { ...cell, x, y };
    ctx.hover.point(rowNumber, cell.query);
    if (this.isByKey) this.panel.draw();
    this.describe();
    if (isMoved && view === "weights") this.askExact(cell);
  }

  /** @param {Cell} cell */
  askExact({ query, plane }) {
    const { link, weights } = this.panel;
    clearTimeout(this.asking);
    const head = weights.heads[plane] ?? null;
    this.asking = setTimeout(() => link.ask({ query, head }), EXACT_AFTER_MS);
  }

  describe() {
    if (!this.at) return;
    const { canvas, ctx, speech } = this.panel;
    const { x, y } = this.at;
    const lines = speech.describe(this.at);
    ctx.tip.show(
      { getBoundingClientRect: () => new DOMRect(x, y, 1, 1) },
      lines.map(([className, text]) => make("p", className, text)),
    );
    if (this.isByKey) canvas.setAttribute("aria-label", lines.map(([, text]) => text).join(". "));
  }

  leave() {
    const { ctx, rowNumber } = this.panel;
    this.at = null;
    clearTimeout(this.asking);
    ctx.hover.point(rowNumber, null);
    ctx.tip.hide();
    if (!this.isByKey) return;
    this.isByKey = false;
    this.panel.say();
    this.panel.draw();
  }

  close() {
    clearTimeout(this.asking);
  }
}
