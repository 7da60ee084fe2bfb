// The head of the panel: state, stage and step, tokens known and stored, and the headline figures.

/** @import { Context, Figure, Frame, Model, RunStatus, Step } from "./types.js" */
/** @typedef {{ node: HTMLElement, value: HTMLElement, note: HTMLElement, figure: Figure }} FigureBox */

import { make, write } from "./elements.js";
import { group, NONE } from "./numbers.js";
import { RunNumbers } from "./run_numbers.js";

/** @type {Record<string, string>} */
const STATE_WORDS = {
  queued: "waiting in the queue",
  loading: "loading the model",
  running: "running",
  paused: "paused",
  done: "finished",
  stopped: "stopped",
  failed: "failed",
  abandoned: "stopped: nobody was watching",
};

const TICK_MS = 1000; // a long prefill sends nothing for a while, and the time still goes on
const HELD = "starting when the page is quiet";

/** @param {Frame} frame */
function isPrefilling({ run, total }) {
  return run.state === "running" && !run.held && total > 0;
}

export class HeaderPanel {
  /**
   * @param {HTMLElement} parent
   * @param {Context} ctx
   */
  constructor(parent, ctx) {
    this.ctx = ctx;
    this.numbers = new RunNumbers();
    this.box = make("div", "head");
    this.state = make("span", "state");
    this.state.setAttribute("role", "status");
    this.prefill = stageChip("prefill");
    this.decode = stageChip("decode");
    this.tokens = make("span", "chip chip-tokens");
    this.known = make("b");
    this.stored = make("b");
    this.tokens.append(make("span", "word", "known "), this.known, make("span", "word", " \u00b7 stored "), this.stored);
    this.model = make("span", "model");
    const line = make("div", "head-line");
    line.append(this.state, this.prefill, this.decode, this.tokens, this.model);
    this.figures = make("div", "figures");
    this.figures.setAttribute("role", "list");
    this.notice = make("div", "notice");
    this.notice.hidden = true;
    this.noticeText = make("p");
    this.bar = make("progress");
    this.bar.max = 1;
    this.notice.append(this.noticeText, this.bar);
    this.warning = make("div", "notice bad");
    this.warning.hidden = true;
    this.box.append(line, this.figures, this.warning, this.notice);
    parent.append(this.box);
    /** @type {Map<string, FigureBox>} */
    this.boxes = new Map();
    this.most = 0;
    this.fedFirst = 0; // tokens of the first step
    /** @type {number | null} */
    this.prompt = null;
    /** @type {Step | null | undefined} */
    this.step = null;
    /** @type {{ tokens: number, since: number } | null} A prefill without a step yet. */
    this.feeding = null;
    /** @type {ReturnType<typeof setInterval> | undefined} */
    this.ticking = undefined;
    this.reset();
  }

  reset() {
    this.numbers.reset();
    this.boxes = new Map();
    this.figures.replaceChildren();
    this.state.textContent = "connecting";
    delete this.state.dataset.state;
    this.most = 0;
    this.prompt = null;
    this.model.textContent = this.ctx.data.label || "";
    this.notice.hidden = this.warning.hidden = true;
    this.hasWaited = false;
    this.fedFirst = 0;
    this.fed();
    this.stage(null);
  }

  /** @param {Frame} frame */
  update(frame) {
    this.numbers.take(frame);
    if (frame.model) this.describe(frame.model);
    if (frame.step) this.stage(frame.step);
    if (isPrefilling(frame) && !this.step) this.prefilling(this.fedFirst);
    else this.fed();
    this.hasWaited ||= frame.run.state !== "running" || Boolean(frame.run.held);
    for (const figure of frame.figures || []) this.figure(figure);
    this.status(frame.run);
  }

  /** @param {Frame} frame */
  begins(frame) {
    this.prefilling(this.fedFirst);
    this.status({ ...frame.run, held: false });
  }

  /** @param {Model} model */
  describe(model) {
    const words = [model.id, model.dtype, model.device];
    if (this.ctx.data.label) words.unshift(this.ctx.data.label);
    this.model.textContent = words.join(" \u00b7 ");
    this.model.title = this.model.textContent;
    this.prompt = model.requests.reduce((sum, request) => sum + request.prompt_tokens, 0);
    this.most = model.batch ? 0 : Math.max(0, ...model.requests.map((request) => request.max_new_tokens - 1));
    this.fedFirst = model.first_fed.reduce((sum, [, tokens]) => sum + tokens, 0);
    if (!this.step) this.stage(null);
  }

  /** @param {Step | null} step */
  stage(step) {
    this.step = step;
    const lengths = step ? this.lengths(step) : "";
    const isPrefill = step?.phase === "prefill";
    const isDecode = step?.phase === "decode";
    show(this.prefill, isPrefill, isPrefill ? lengths : "");
    const most = step?.decode_most ?? this.most;
    const done = group(step?.decode ?? 0);
    const count = most ? `${done}/${group(most)}` : done; // a batch's number of steps is not known
    show(this.decode, isDecode, isDecode ? `${count}  ${lengths}` : count);
    write(this.known, this.count(step?.known ?? this.prompt));
    write(this.stored, this.count(step?.stored ?? (this.prompt === null ? null : 0)));
  }

  /** @param {number | null} tokens */
  count(tokens) {
    return tokens === null ? NONE : group(tokens);
  }

  /**
   * @param {number} tokens
   */
  prefilling(tokens) {
    // Whoever comes later than the prefill began reads off the telemetry how long it has gone on.
    const rows = this.hasWaited ? [] : this.ctx.store.rows("utilization");
    const before = Number(rows[rows.length - 1]?.at_s ?? 0) * 1000;
    this.feeding ??= { tokens, since: performance.now() - before };
    this.ticking ??= setInterval(() => this.tick(), TICK_MS);
    this.tick();
  }

  tick() {
    if (!this.feeding) return;
    const { tokens, since } = this.feeding;
    const seconds = Math.floor((performance.now() - since) / 1000);
    const time = seconds ? `, ${group(seconds)} s so far` : "";
    show(this.prefill, true, `feeding ${group(tokens)} tokens${time}`);
  }

  /** The first step is there, or the run is not going. */
  fed() {
    if (this.feeding && !this.step) show(this.prefill, false, "");
    this.feeding = null;
    clearInterval(this.ticking);
    this.ticking = undefined;
  }

  close() {
    this.numbers.close();
    this.fed();
  }

  /** @param {Step} step */
  lengths(step) {
    return `T=${group(step.T)} L=${group(step.L)}`;
  }

  /** @param {Figure} figure */
  figure(figure) {
    let box = this.boxes.get(figure.key);
    if (!box) {
      box = this.figureBox(figure);
      this.boxes.set(figure.key, box);
    }
    const label = `${figure.label} ${figure.value} ${figure.unit} ${figure.note}`;
    box.figure = figure;
    if (box.node.getAttribute("aria-label") === label) return;
    write(box.value, figure.value);
    write(box.note, figure.note);
    box.node.setAttribute("aria-label", label);
  }

  /**
   * @param {Figure} figure
   * @returns {FigureBox}
   */
  figureBox(figure) {
    const node = make("div", "figure figure-" + figure.key);
    node.setAttribute("role", "listitem");
    node.tabIndex = 0;
    const label = make("span", "label", figure.label);
    const note = make("span", "note");
    const value = make("span", "value");
    const top = make("div", "top");
    top.append(label, note);
    const number = make("div", "number");
    number.append(value, make("span", "unit", figure.unit));
    node.append(top, number);
    this.figures.append(node);
    const box = { node, value, note, figure };
    const show = () => this.ctx.tip.show(node, this.explain(box.figure));
    const hide = () => this.ctx.tip.hide();
    node.addEventListener("mouseenter", show);
    node.addEventListener("focus", show);
    node.addEventListener("mouseleave", hide);
    node.addEventListener("blur", hide);
    return box;
  }

  /** @param {Figure} figure */
  explain(figure) {
    const steps = figure.steps === 1 ? "1 step" : `${group(figure.steps)} steps`;
    const rests = figure.steps ? `${figure.source}, from ${steps}` : "no step yet";
    const note = figure.note ? `; ${figure.note}` : "";
    return [
      make("p", "tip-title", `${figure.label}: ${figure.value} ${figure.value === NONE ? "" : figure.unit}`),
      make("p", null, figure.explanation),
      make("p", "tip-small", rests + note),
    ];
  }

  /** @param {RunStatus} run */
  status(run) {
    const words = run.held ? HELD : STATE_WORDS[run.state] || run.state;
    write(this.state, run.ended ? `${words}: ${run.ended}` : words);
    this.state.dataset.state = run.state;
    this.warning.hidden = !run.warning;
    write(this.warning, run.warning || "");
    const isWaiting = run.state === "queued" || run.state === "loading";
    let text = run.message;
    if (run.state === "queued" && run.queue_position) {
      text = `Number ${run.queue_position} in the queue. ${run.message}`;
    } else if (run.state === "loading" && run.stage) {
      const share = run.stage_ratio === null ? "" : ` (${Math.round(run.stage_ratio * 100)} %)`;
      text = `${run.stage}${share}`;
    }
    this.say(text, { isBad: run.state === "failed", ratio: isWaiting ? run.stage_ratio : undefined, isWaiting });
  }

  /**
   * @param {string} text
   * @param {{ isBad: boolean, ratio: number | null | undefined, isWaiting: boolean }} how
   */
  say(text, { isBad, ratio, isWaiting }) {
    this.notice.hidden = !text && !isWaiting;
    this.notice.classList.toggle("bad", isBad);
    write(this.noticeText, text);
    this.bar.hidden = !isWaiting;
    if (typeof ratio === "number") this.bar.value = ratio;
    else this.bar.removeAttribute("value");
  }

  retheme() {}
}

/** @param {string} phase */
function stageChip(phase) {
  const node = make("span", "chip chip-" + phase);
  node.append(make("span", "dot"), make("b", null, phase.toUpperCase()), make("span", "detail"));
  return node;
}

/**
 * @param {HTMLElement} chip
 * @param {boolean} isActive
 * @param {string} words
 */
function show(chip, isActive, words) {
  chip.classList.toggle("active", isActive);
  write(/** @type {HTMLElement} */ (chip.firstChild), isActive ? "\u25cf" : "\u25cb");
  write(/** @type {HTMLElement} */ (chip.lastChild), words);
}
