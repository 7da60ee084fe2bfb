// Attention on a canvas, in two views of one picture: the mask, which keys each token may read, and
// the weights, what the chosen layer and head made of them. Rows are queries, columns keys.

/** @import { AttentionModel, AttentionState, Choice, Context, ExactRow, Frame, MaskWords as Words } from "./types.js" */
/** @import { Header } from "./attention_link.js" */

import { axisEnd } from "./axes.js";
import { make, makeButton, makeChoice, makePanel, write } from "./elements.js";
import { MaskPainter } from "./mask_painter.js";
import { MaskPickers } from "./mask_pickers.js";
import { MaskPointer } from "./mask_pointer.js";
import { ALL_KEYS, firstKey, MaskRow } from "./mask_rows.js";
import { MaskWords, NO_SOCKET } from "./mask_words.js";
import { Place } from "./place.js";
import { blocksOf } from "./weight_blocks.js";
import { WeightsView } from "./weights_view.js";

const LEAST_CELLS = 8;
const TICKS = 4; // parts of an axis, each of whole tokens
/** @type {(keyof Choice)[]} */
const CHOICE_PARTS = ["layer", "head", "all", "row"];

/** @typedef {"mask" | "weights"} View */

/**
 * What was last chosen in any panel; the next one begins with it. Until a view is chosen, a run that
 * has weights in its file begins with them, and any other with its mask.
 * @type {{ view: View | null, scale: string, picked: Choice | null }}
 */
const chosen = { view: null, scale: "log", picked: null };

export class MaskPanel {
  /**
   * @param {HTMLElement} parent
   * @param {Context} ctx
   */
  constructor(parent, ctx) {
    this.ctx = ctx;
    const parts = makePanel("mask", "Attention", ctx.data.explanations.mask);
    this.box = parts.panel;
    this.caption = parts.caption;
    this.body = parts.body;
    /** @type {View} */
    this.view = chosen.view || "mask";
    this.scale = chosen.scale;
    this.picked = chosen.picked;
    this.rows = [new MaskRow()];
    /** @type {Words[]} */
    this.words = [];
    this.cost = "";
    /** @type {AttentionModel | null} */
    this.model = null;
    /** @type {number | null} */
    this.lit = null; // the position that is pointed at here or in the strip
    this.hasSocket = true; // else the page feeds the panel
    this.isResent = false; // what was picked before there was a connection has been asked for
    this.isFinal = false; // no step will follow
    /** @type {AttentionState | null} */
    this.state = null;
    /** @type {ExactRow | null} */
    this.exact = null;
    this.weights = new WeightsView();
    this.painter = new MaskPainter(this);
    this.speech = new MaskWords(this);
    this.canvas = make("canvas", "mask");
    this.place = new Place(parts.body, () => this.draw());
    this.canvas.setAttribute("role", "img");
    this.canvas.tabIndex = 0;
    this.pointer = new MaskPointer(this);
    this.link = ctx.origin.weights((header, body) => this.take(header, body));
    this.pickers = new MaskPickers({ pick: () => this.pick(), scale: (scale) => this.rescale(scale) });
    this.pickers.scales.value = this.scale;
    parts.panel.insertBefore(this.pickers.line, parts.caption);
    const choice = makeChoice("Show");
    this.buttons = ["mask", "weights"].map((view) => ({
      view,
      button: makeButton(view, () => this.choose(/** @type {View} */ (view))),
    }));
    choice.append(...this.buttons.map(({ button }) => button));
    parts.tools.insertBefore(choice, parts.help);
    parts.body.append(this.canvas);
    this.foot = make("p", "mask-foot");
    parts.panel.insertBefore(this.foot, parts.body.nextSibling);
    parent.append(parts.panel);
    ctx.hover.listen((pointed) => {
      this.lit = pointed?.row === this.rowNumber ? pointed.position : null;
      this.say();
      this.draw();
    });
    this.reset();
  }

  reset() {
    this.rows = [new MaskRow()];
    this.words = [];
    this.cost = "";
    this.model = null;
    this.lit = null;
    this.isFinal = false;
    this.pointer.at = null;
    this.hasSocket = !this.ctx.data.frame;
    this.pickers.clear();
    this.forget();
    this.show(this.view);
  }

  forget() {
    this.weights.reset();
    this.state = null;
    this.exact = null;
  }

  /** @param {View} view */
  choose(view) {
    chosen.view = view;
    this.show(view);
  }

  /** @param {View} view */
  show(view) {
    this.view = view;
    for (const { view: name, button } of this.buttons) {
      button.setAttribute("aria-pressed", String(name === view));
    }
    this.connect();
    this.arrange();
  }

  connect() {
    const { run_id: runId, token, stage } = this.ctx.data;
    if (this.view === "mask") this.link.close();
    else if (this.hasSocket) this.link.open(runId, token, stage?.role ?? "");
    else this.state = { choice: null, notice: NO_SOCKET, note: "", reason: "", over: false };
  }

  /** @param {boolean} hasSocket */
  connected(hasSocket) {
    this.hasSocket = hasSocket;
    if (hasSocket && this.state?.notice === NO_SOCKET) this.state = null;
    if (this.view === "weights") this.connect();
    this.say();
  }

  /** @param {string} scale */
  rescale(scale) {
    this.scale = chosen.scale = scale;
    this.say();
    this.draw();
  }

  arrange() {
    this.pickers.arrange({ isWeights: this.view === "weights", requests: this.rows.length });
    this.say();
    this.draw();
  }

  // What the pickers say goes to the engine, and to the page for the next run.
  pick() {
    this.picked = chosen.picked = this.pickers.choice;
    this.link.ask({ capture: this.picked });
    this.ctx.send("capture", this.picked);
    this.say();
    this.draw();
  }

  // The weights are of what was captured, which may be another layer than the one just picked.
  get captured() {
    return this.view === "weights" ? (this.state?.choice ?? null) : null;
  }

  get layer() {
    return this.captured?.layer ?? this.pickers.layer;
  }

  get rowNumber() {
    const number = this.captured?.row ?? this.pickers.request;
    return number < this.rows.length ? number : 0;
  }

  get row() {
    return this.rows[this.rowNumber];
  }

  get kind() {
    return this.model?.kinds[this.model.of_layer[this.layer]] || ALL_KEYS;
  }

  /**
   * The first key that a query of the layer may read.
   * @param {number} query
   */
  start(query) {
    return firstKey(this.kind, query);
  }

  // Tokens along each axis: steps of growth, but no more than the run can have. Weights may come
  // before the frame of their step.
  get axisCells() {
    const captured = this.view === "weights" ? this.weights.end : 0;
    const held = Math.max(this.row.context, captured, 1);
    const most = this.isFinal ? held : Math.max(held, this.row.most);
    return Math.min(axisEnd(held, LEAST_CELLS), Math.max(LEAST_CELLS, Math.ceil(most / TICKS) * TICKS));
  }

  /**
   * @param {Header} header
   * @param {ArrayBuffer} body
   */
  take(header, body) {
    if (header.kind === "state") this.judge(header);
    else if (header.kind === "row") this.exact = { ...header, weights: new Float32Array(body) };
    else this.weights.add(blocksOf(header, body));
    this.say();
    if (header.kind === "row") this.pointer.describe();
    else this.draw();
  }

  /** @param {AttentionState} state */
  judge(state) {
    if (state.reset) this.forget();
    this.state = state;
    const { choice } = state;
    const { picked } = this;
    const isOther = choice && picked && CHOICE_PARTS.some((part) => choice[part] !== picked[part]);
    // Of a run that is over what is there is shown, and where nothing is, what the pickers say.
    if (state.reset && !this.isResent && (state.over ? !choice : isOther)) {
      this.isResent = true;
      this.link.ask({ capture: state.over ? this.pickers.choice : picked });
    } else if (choice) {
      this.pickers.mark(choice); // a picture stands under its own layer and head
    }
  }

  /** @type {(frame: Frame) => void | Promise<unknown>} */
  update(frame) {
    this.isFinal = frame.run.final;
    if (frame.model) {
      const begins = frame.model.captured && this.hasSocket ? "weights" : "mask";
      if (!chosen.view && this.view !== begins) this.show(begins);
      this.rows = frame.model.requests.map((request) => new MaskRow(request.prompt_tokens, request.max_new_tokens));
      if (!this.rows.length) this.rows = [new MaskRow()];
      this.isResent = false;
      this.model = frame.model.attention;
      this.pickers.offer(this.model, this.rows.length);
      this.pickers.mark(this.picked || { layer: this.model.default, head: null, all: false, row: 0 });
    }
    this.addSteps(frame);
    if (frame.mask_words) {
      this.words = frame.mask_words;
      this.cost = frame.capture || "";
    }
    if (frame.model) this.arrange();
    else if (frame.mask_words) this.say();
    if (!frame.mask?.length && !frame.masks?.length) return undefined;
    // A pen that is given a font has the page laid out; once all of it has changed is soon enough.
    return new Promise((resolve) => this.ctx.afterwards(() => resolve(undefined))).then(() => this.draw());
  }

  /** @param {Frame} frame */
  addSteps(frame) {
    for (const [phase, fed, context] of frame.masks?.length ? [] : frame.mask || []) {
      this.rows[0].add(phase, fed, context);
    }
    for (const [phase, rows] of frame.masks || []) {
      for (const [number, fed, context] of rows) this.rows[number].add(phase, fed, context);
    }
  }

  draw() {
    this.painter.draw();
  }

  say() {
    const caption = this.speech.caption();
    write(this.caption, caption);
    if (this.caption.title !== caption) this.caption.title = caption;
    const hasWeights = this.view === "weights" && this.weights.blocks.length > 0;
    // A row in words takes two lines at most; they are kept free, so that no step moves the picture.
    this.caption.classList.toggle("two", this.view === "weights");
    if (!this.pointer.isByKey) this.canvas.setAttribute("aria-label", this.speech.label());
    const { notes, title, isWarning } = this.speech.foot();
    if (this.foot.title !== title) this.foot.title = title;
    this.foot.replaceChildren(...(hasWeights ? [this.speech.key()] : []), make("span", null, notes));
    this.foot.classList.toggle("warns", isWarning);
  }

  retheme() {
    this.painter.forget();
    this.weights.repaint();
    this.draw();
  }

  close() {
    this.link.close();
    this.place.close();
    this.pointer.close();
  }
}
