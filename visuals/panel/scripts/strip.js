// One row's tokens: each with its state, the middle of a long row folded away.

/** @import { Context, Token } from "./types.js" */

import { make, makeButton } from "./elements.js";
import { group, percentText } from "./numbers.js";

const HEAD_TOKENS = 80;
const TAIL_TOKENS = 400;
const MOVES = new Map([
  ["ArrowRight", 1],
  ["ArrowLeft", -1],
]);
/** @type {Record<string, string>} */
const STATE_NAMES = {
  waiting: "not fed yet",
  feeding: "being fed",
  fed: "fed in this step, stored",
  stored: "stored",
  selected: "selected, not stored",
};

export class Strip {
  /**
   * @param {number} row
   * @param {Context} ctx
   */
  constructor(row, ctx) {
    this.row = row;
    this.ctx = ctx;
    /** @type {Token[]} */
    this.tokens = [];
    /** @type {Map<number, HTMLElement>} */
    this.drawn = new Map();
    this.isOpen = false;
    this.fedFrom = 0;
    this.fedTo = 0;
    this.feeds = 0; // tokens that the first step feeds, while it goes on
    /** @type {HTMLElement | null} */
    this.lit = null;
    this.node = make("div", "strip");
    this.node.setAttribute("role", "group");
    this.node.setAttribute("aria-label", "Tokens; arrow keys move from one to the next");
    this.gap = makeButton("", () => this.unfold());
    this.gap.className = "gap";
    this.gap.hidden = true;
    this.node.append(this.gap);
    this.isAtEnd = true; // it follows the newest token unless the reader has scrolled away
    this.scrolledTo = 0;
    this.node.addEventListener("scroll", () => this.scrolled());
    document.fonts.ready.then(() => this.follow());
    this.observer = new ResizeObserver(() => this.follow());
    this.observer.observe(this.node);
    this.node.addEventListener("mouseover", (event) => this.pointed(event.target));
    this.node.addEventListener("mouseleave", () => this.leave());
    this.node.addEventListener("focusin", (event) => this.pointed(event.target));
    this.node.addEventListener("focusout", () => this.leave());
    this.node.addEventListener("keydown", (event) => this.moved(event));
  }

  /** @param {Token[]} tokens */
  add(tokens) {
    if (!tokens.length) return;
    const before = this.tokens.length;
    for (const token of tokens) this.tokens.push(token);
    const tail = this.isOpen ? 0 : Math.max(HEAD_TOKENS, this.tokens.length - TAIL_TOKENS);
    for (let position = before; position < this.tokens.length; position += 1) {
      if (position < HEAD_TOKENS || position >= tail) this.draw(position);
    }
    if (!this.isOpen) this.fold(tail);
    this.ctx.afterwards(() => this.follow());
  }

  follow() {
    if (this.isAtEnd) this.node.scrollTop = this.node.scrollHeight;
  }

  // Only the reader scrolls up; a strip that has grown under its place is followed on.
  scrolled() {
    const { scrollHeight, scrollTop, clientHeight } = this.node;
    const isNearEnd = scrollHeight - scrollTop - clientHeight < 30;
    if (isNearEnd || scrollTop < this.scrolledTo) this.isAtEnd = isNearEnd;
    this.scrolledTo = scrollTop;
  }

  close() {
    this.observer.disconnect();
  }

  /** @param {number} position */
  draw(position) {
    const token = this.tokens[position];
    const node = make("span", "tok " + token.kind + (token.isOutput ? " out" : ""), token.text);
    node.dir = "auto";
    node.dataset.position = String(position);
    node.dataset.id = String(token.id);
    node.tabIndex = position === 0 ? 0 : -1;
    if (token.p !== null && token.p !== undefined) {
      node.style.setProperty("--p", String(Math.max(0.02, token.p)));
    }
    this.drawn.set(position, node);
    this.node.append(node);
    this.mark(position);
  }

  /** @param {number} tail */
  fold(tail) {
    if (tail <= HEAD_TOKENS) return;
    for (const [position, node] of this.drawn) {
      if (position >= tail) break;
      if (position < HEAD_TOKENS) continue;
      node.remove();
      this.drawn.delete(position);
    }
    if (this.gap.hidden) this.drawn.get(HEAD_TOKENS - 1)?.after(this.gap);
    this.gap.hidden = false;
    this.gap.textContent = `\u22ef ${group(tail - HEAD_TOKENS)} more tokens \u22ef`;
  }

  unfold() {
    this.isOpen = true;
    this.gap.hidden = true;
    for (const node of this.drawn.values()) node.remove();
    this.drawn.clear();
    for (let position = 0; position < this.tokens.length; position += 1) this.draw(position);
  }

  /**
   * The newest step fed T tokens; with them the cache holds L.
   * @param {number} fed
   * @param {number} context
   */
  step(fed, context) {
    const from = Math.min(this.fedFrom, context - fed);
    this.fedFrom = context - fed;
    this.fedTo = context;
    this.feeds = 0;
    this.markFrom(from);
  }

  /**
   * Before the first step: the prompt waits, or so many tokens of it are being fed.
   * @param {number} tokens
   */
  before(tokens) {
    if (this.fedTo || this.feeds === tokens) return;
    this.feeds = tokens;
    this.markFrom(0);
  }

  /** @param {number} from */
  markFrom(from) {
    for (const position of this.drawn.keys()) if (position >= from) this.mark(position);
  }

  /** @param {number} position */
  state(position) {
    if (!this.fedTo) return position < this.feeds ? "feeding" : "waiting";
    if (position < this.fedFrom) return "stored";
    if (position < this.fedTo) return "fed";
    return this.tokens[position].isOutput ? "selected" : "waiting";
  }

  /** @param {number} position */
  mark(position) {
    const node = this.drawn.get(position);
    if (node) node.dataset.state = this.state(position);
  }

  /** @param {EventTarget | null} target */
  pointed(target) {
    const position = positionOf(target);
    if (position === null || !(target instanceof HTMLElement)) return;
    this.ctx.hover.point(this.row, position);
    this.ctx.tip.show(target, this.explain(position));
    target.setAttribute("aria-label", this.spoken(position));
  }

  leave() {
    this.ctx.hover.point(this.row, null);
    this.ctx.tip.hide();
  }

  /** @param {KeyboardEvent} event */
  moved(event) {
    const move = MOVES.get(event.key);
    const position = positionOf(event.target);
    if (!move || position === null) return;
    const positions = [...this.drawn.keys()].sort((a, b) => a - b);
    const next = this.drawn.get(positions[positions.indexOf(position) + move]);
    const before = this.drawn.get(position);
    if (!next || !before) return;
    event.preventDefault();
    before.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  /** @param {number | null} position */
  light(position) {
    this.lit?.classList.remove("lit");
    this.lit = position === null ? null : (this.drawn.get(position) ?? null);
    this.lit?.classList.add("lit");
  }

  /** @param {number} position */
  spoken(position) {
    const token = this.tokens[position];
    const chance = token.p === null || token.p === undefined ? "" : `, probability ${percentText(token.p)}`;
    const kind = token.kind === "special" ? "control token, " : "";
    return `token ${position}: ${token.text}, ${kind}id ${token.id}, ${STATE_NAMES[this.state(position)]}${chance}`;
  }

  /** @param {number} position */
  explain(position) {
    const token = this.tokens[position];
    const title = make("p", "tip-title");
    title.append(make("span", "tip-token", token.text));
    const origin = token.isOutput ? `output, step ${token.step}` : "prompt";
    const nodes = [
      title,
      make("p", null, `position ${group(position)}, ${origin}: ${STATE_NAMES[this.state(position)]}`),
      make("p", "mono", `id ${token.id}   bytes ${token.hex || "none"}`),
    ];
    if (token.kind === "special") nodes.push(make("p", null, "A control token: the model reads it as structure, not as text."));
    if (token.kind === "fragment") nodes.push(make("p", null, "Only a part of a character: its bytes are shown."));
    if (token.isOutput) nodes.push(...this.chances(token));
    return nodes;
  }

  /** @param {Token} token */
  chances(token) {
    const own = make("p", null, `probability ${percentText(token.p)}, measured, before temperature`);
    const table = make("div", "chances");
    for (const [id, text, p] of token.candidates || []) {
      const line = make("div", "chance" + (id === token.id ? " chosen" : ""));
      const bar = make("span", "chance-bar");
      bar.style.width = `${Math.max(1, (p || 0) * 100)}%`;
      const track = make("span", "chance-track");
      track.append(bar);
      line.append(make("span", "tip-token", text), track, make("span", "chance-p", percentText(p)));
      table.append(line);
    }
    return [own, table];
  }
}

/**
 * The position of the token that an event is about; null beside all tokens.
 * @param {EventTarget | null} target
 */
function positionOf(target) {
  if (!(target instanceof HTMLElement) || target.dataset.position === undefined) return null;
  return Number(target.dataset.position);
}
