// The token strips and the text: every token of each row with its state, and the text they make.

/** @import { Context, Frame, TextPart, Token, TokenRow } from "./types.js" */

import { make, makePanel } from "./elements.js";
import { Strip } from "./strip.js";

const LEGEND = [
  ["stored", "stored"],
  ["fed", "fed in this step"],
  ["selected", "selected, not stored"],
];

export class TokensPanel {
  /**
   * @param {HTMLElement} parent
   * @param {Context} ctx
   */
  constructor(parent, ctx) {
    this.ctx = ctx;
    const { panel, caption, body, tools, help } = makePanel("tokens", "Tokens", ctx.data.explanations.tokens);
    this.box = panel;
    caption.remove();
    tools.insertBefore(legend(), help);
    this.strips = make("div", "strips");
    this.texts = make("div", "texts");
    for (const node of [this.strips, this.texts]) node.setAttribute("translate", "no"); // not our words
    this.texts.setAttribute("role", "group");
    this.texts.setAttribute("aria-label", "Text so far");
    body.append(this.strips, this.texts);
    parent.append(panel);
    /** @type {TokenRow[]} */
    this.rows = [];
    /** @type {Map<number, number>} Tokens that the first step feeds to each row. */
    this.firstFed = new Map();
    ctx.hover.listen((pointed) => {
      for (const { strip } of this.rows) strip.light(pointed?.row === strip.row ? pointed.position : null);
    });
    this.reset();
  }

  reset() {
    this.close();
    this.rows = [];
    this.box.classList.remove("has-tokens");
    this.strips.replaceChildren();
    this.texts.replaceChildren();
    this.ctx.tokens = this.rows;
  }

  /**
   * @param {number} number
   * @returns {TokenRow}
   */
  row(number) {
    while (this.rows.length <= number) {
      const strip = new Strip(this.rows.length, this.ctx);
      const text = make("div", "text");
      text.dir = "auto";
      text.tabIndex = 0;
      const done = document.createTextNode("");
      const end = document.createTextNode("");
      text.append(done, end, make("span", "caret"));
      strip.node.dataset.row = text.dataset.row = String(this.rows.length + 1);
      this.strips.append(strip.node);
      this.texts.append(text);
      this.rows.push({ strip, text, done, end });
    }
    return this.rows[number];
  }

  /** @param {Frame} frame */
  update(frame) {
    const added = newTokens(frame);
    if (frame.model) this.box.classList.toggle("several", frame.model.requests.length > 1);
    for (const [number, tokens] of added) this.row(number).strip.add(tokens);
    for (const [number, fed, stored] of frame.batch?.step.strips || []) {
      this.row(number).strip.step(fed, stored);
    }
    const steps = frame.batch ? [] : frame.mask || [];
    if (steps.length) this.row(0).strip.step(steps[steps.length - 1][1], steps[steps.length - 1][2]);
    if (frame.model) this.firstFed = new Map(frame.model.first_fed);
    if (frame.run.state === "running" && !frame.run.held) this.begins();
    else for (const row of this.rows) row.strip.before(0);
    this.box.classList.toggle("has-tokens", this.rows.length > 0); // which show the wait themselves
    for (const part of frame.text || []) this.write(part);
    this.texts.classList.toggle("going", frame.run.state === "running");
  }

  begins() {
    this.rows.forEach(({ strip }, number) => strip.before(this.firstFed.get(number) ?? 0));
  }

  /** @param {TextPart} part */
  write(part) {
    const row = this.row(part.row);
    if (part.add) row.done.appendData(part.add);
    row.end.data = part.end;
    if (part.add) this.ctx.afterwards(() => (row.text.scrollTop = row.text.scrollHeight));
  }

  retheme() {}

  close() {
    for (const { strip } of this.rows) strip.close();
  }
}

/**
 * The tokens that a frame adds, by the number of their row.
 * @param {Frame} frame
 */
function newTokens(frame) {
  /** @type {Map<number, Token[]>} */
  const added = new Map();
  /** @type {(number: number, token: Token) => void} */
  const add = (number, token) => {
    const tokens = added.get(number);
    if (tokens) tokens.push(token);
    else added.set(number, [token]);
  };
  for (const [number, id, hex, text, kind] of frame.prompt || []) {
    add(number, { id, hex, text, kind, isOutput: false });
  }
  for (const [number, step, id, hex, text, kind, p, finish, candidates] of frame.outputs || []) {
    add(number, { id, hex, text, kind, p, step, finish, candidates, isOutput: true });
  }
  return added;
}

function legend() {
  const node = make("div", "legend");
  for (const [state, words] of LEGEND) {
    const sample = make("span", "tok sample", "a");
    sample.dataset.state = state;
    node.append(legendEntry(sample, words));
  }
  node.append(legendEntry(make("span", "tok special sample", "a"), "control token"));
  const bar = make("span", "tok out sample", "a");
  bar.style.setProperty("--p", "0.7");
  const entry = legendEntry(bar, "bar: probability");
  entry.classList.add("entry-p");
  node.append(entry);
  return node;
}

/**
 * @param {HTMLElement} sample
 * @param {string} words
 */
function legendEntry(sample, words) {
  const entry = make("span", "entry");
  sample.setAttribute("aria-hidden", "true");
  entry.append(sample, make("span", null, words));
  return entry;
}
