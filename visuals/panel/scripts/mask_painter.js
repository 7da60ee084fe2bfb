// The attention picture on its canvas: axes, the mask's cells or the weights, marks and labels.

/** @import { HeadLayout, Layout, Square } from "./types.js" */
/** @import { MaskPanel } from "./mask_panel.js" */

import { pixelOf, rampTable, rgbOf } from "./colour_scales.js";
import { clearedPen, COLOURS, isEnlarged, pixelRatio, withAlpha } from "./elements.js";
import { headLayout, middleOf, squareLayout } from "./mask_layout.js";
import { paintBlocks } from "./mask_blocks.js";
import { group } from "./numbers.js";

const LINES_FROM_CELL = 5; // from this cell size on, lines part the cells of weights

/** Pixels of the smallest type; a room has to read it too. */
function smallest() {
  return isEnlarged() ? 13 : 11;
}

export class MaskPainter {
  /** @param {MaskPanel} panel */
  constructor(panel) {
    this.panel = panel;
    /** @type {Layout | null} */
    this.layout = null; // of what was drawn last
    /** @type {Uint32Array[] | null} */
    this.tables = null;
  }

  /** The theme has changed. */
  forget() {
    this.tables = null;
  }

  draw() {
    const { canvas, axisCells: cells, place, view, weights } = this.panel;
    const { width } = place.size;
    const height = Math.max(160, place.size.height);
    if (!place.isSeen) return;
    const scale = pixelRatio();
    const pen = clearedPen(canvas, { width, height, scale });
    canvas.style.height = height + "px";
    if (view === "weights" && weights.planes > 1) {
      const layout = headLayout(weights.planes, this.panel.model?.kv_heads || 1, { width, height });
      this.layout = { cells, square: null, heads: layout.heads };
      this.multiples(pen, { cells, ...layout }, scale);
      this.pointer(pen);
      return;
    }
    const square = squareLayout(width, height, cells);
    this.layout = { cells, square, heads: null };
    this.frameAndAxes(pen, square);
    if (view === "weights") this.picture(pen, square, scale);
    else this.mask(pen, square);
    this.firstOutput(pen, square);
    this.highlight(pen, square);
    this.pointer(pen);
    if (square.isLabelled) this.labels(pen, square);
  }

  /**
   * Where the arrow keys are.
   * @param {CanvasRenderingContext2D} pen
   */
  pointer(pen) {
    const { at, isByKey } = this.panel.pointer;
    if (!isByKey || !at || !this.layout) return;
    const middle = middleOf(at, this.layout);
    if (!middle) return;
    pen.strokeStyle = this.panel.ctx.theme.text;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.arc(middle.x, middle.y, 6, 0, 2 * Math.PI);
    pen.stroke();
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {Square} square
   */
  mask(pen, square) {
    if (!this.panel.kind.attends) return;
    paintBlocks(pen, square, this.panel.row.blocks, this.panel.kind);
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {Square} square
   */
  frameAndAxes(pen, { left, top, side, cells, cell, isLabelled }) {
    const theme = this.panel.ctx.theme;
    pen.fillStyle = withAlpha(theme.text, 0.05);
    pen.fillRect(left, top, side, side);
    pen.fillStyle = withAlpha(theme.text, 0.8);
    pen.font = `14px ${theme.font}`;
    pen.textBaseline = "middle";
    pen.textAlign = "left";
    pen.fillText("key read \u2192", isLabelled ? 0 : left, isLabelled ? 9 : 10);
    pen.fillText("query \u2193", 0, isLabelled ? 27 : 10);
    if (isLabelled) return;
    pen.textAlign = "right";
    for (let tick = 0; tick <= 4; tick += 1) {
      const at = (cells * tick) / 4;
      const y = Math.min(top + side - 7, Math.max(top + 7, top + at * cell));
      pen.fillText(group(at), left - 8, y);
      if (tick > 1 && side > 150) pen.fillText(group(at), left + at * cell, 10);
    }
  }

  style() {
    const { panel } = this;
    this.tables ??= [rampTable(COLOURS.prefill, panel.ctx.theme), rampTable(COLOURS.decode, panel.ctx.theme)];
    return {
      key: `${panel.scale} ${panel.layer}`,
      scale: panel.scale,
      prompt: panel.row.prompt,
      startOf: (/** @type {number} */ query) => panel.start(query),
      tables: this.tables,
      notANumber: pixelOf(rgbOf(COLOURS.notANumber)),
    };
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {Square} square
   * @param {number} scale
   */
  picture(pen, { left, top, side, cells, cell }, scale) {
    const [picture] = this.panel.weights.update(Math.max(1, Math.round(side * scale)), cells, this.style());
    pen.imageSmoothingEnabled = false;
    pen.drawImage(picture.canvas, left, top, side, side);
    if (cell < LINES_FROM_CELL) return;
    pen.fillStyle = this.panel.ctx.theme.background;
    for (let line = 1; line < cells; line += 1) {
      pen.fillRect(left + line * cell - 0.5, top, 1, side);
      pen.fillRect(left, top + line * cell - 0.5, side, 1);
    }
  }

  /**
   * Every head by itself, those of one K/V head together.
   * @param {CanvasRenderingContext2D} pen
   * @param {HeadLayout & { cells: number }} layout
   * @param {number} scale
   */
  multiples(pen, { cells, heads, groups }, scale) {
    const theme = this.panel.ctx.theme;
    const size = Math.max(1, Math.round(heads[0].side * scale));
    const pictures = this.panel.weights.update(size, cells, this.style());
    pen.imageSmoothingEnabled = false;
    pen.font = `${smallest()}px ${theme.font}`;
    pen.textBaseline = "top";
    pen.textAlign = "right";
    for (const { x, y, width, height } of groups) {
      pen.strokeStyle = withAlpha(theme.text, 0.35);
      pen.lineWidth = 1;
      pen.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
    }
    heads.forEach(({ x, y, side }, plane) => {
      pen.fillStyle = withAlpha(theme.text, 0.05);
      pen.fillRect(x, y, side, side);
      pen.drawImage(pictures[plane].canvas, x, y, side, side);
      pen.fillStyle = theme.text;
      if (side >= 24) pen.fillText(String(this.panel.weights.heads[plane]), x + side - 2, y + 2);
    });
  }

  /**
   * The last row of prefill, whose output chose the first output token.
   * @param {CanvasRenderingContext2D} pen
   * @param {Square} square
   */
  firstOutput(pen, { left, top, side, cell }) {
    const query = this.panel.row.prompt - 1;
    if (this.panel.row.context < this.panel.row.prompt) return;
    const y = top + query * cell;
    pen.strokeStyle = COLOURS.decode;
    pen.lineWidth = 1.5;
    const start = left + this.panel.start(query) * cell;
    if (cell >= 3) pen.strokeRect(start, y, left + this.panel.row.prompt * cell - start, cell);
    pen.fillStyle = COLOURS.decode;
    pen.font = `600 14px ${this.panel.ctx.theme.font}`;
    pen.textBaseline = "middle";
    const isRoom = left + this.panel.row.prompt * cell + 40 < left + side;
    pen.textAlign = isRoom ? "left" : "right";
    const x = isRoom ? left + this.panel.row.prompt * cell + 5 : left + side - 2;
    pen.fillText(isRoom ? "\u2190 x\u2080" : "x\u2080 \u2193", x, isRoom ? y + cell / 2 : Math.max(top + 8, y - 9));
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {Square} square
   */
  highlight(pen, { left, top, side, cell }) {
    const { lit, row } = this.panel;
    if (lit === null || lit >= row.context) return;
    const at = lit * cell;
    const thick = Math.max(cell, 3);
    pen.strokeStyle = this.panel.ctx.theme.text;
    pen.lineWidth = 1.5;
    pen.strokeRect(left + 0.75, Math.min(top + at, top + side - thick), (lit + 1) * cell - 1.5, thick);
    pen.strokeRect(Math.min(left + at, left + side - thick), top + at, thick, (row.context - lit) * cell);
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {Square} square
   */
  labels(pen, { left, top, cell }) {
    const theme = this.panel.ctx.theme;
    const tokens = this.panel.ctx.tokens[this.panel.rowNumber]?.strip.tokens || [];
    pen.font = `${Math.min(14, Math.max(smallest(), cell - 2))}px ${theme.font}`;
    pen.textBaseline = "middle";
    for (let position = 0; position < Math.min(tokens.length, this.panel.row.context); position += 1) {
      const isLit = position === this.panel.lit;
      pen.fillStyle = withAlpha(theme.text, isLit ? 1 : 0.85);
      const text = this.clipped(pen, tokens[position].text, 62);
      const middle = (position + 0.5) * cell;
      pen.textAlign = "right";
      pen.fillText(text, left - 6, top + middle);
      pen.save();
      pen.translate(left + middle, top - 5);
      pen.rotate(-Math.PI / 3);
      pen.textAlign = "left";
      pen.fillText(this.clipped(pen, tokens[position].text, 56), 0, 0);
      pen.restore();
    }
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {string} text
   * @param {number} most Pixels.
   */
  clipped(pen, text, most) {
    const characters = [...text];
    while (characters.length > 1 && pen.measureText(characters.join("")).width > most) characters.pop();
    return characters.length < [...text].length ? characters.join("") + "\u2026" : text;
  }
}
