// The K/V cache: its growth, its layers, the tokens they keep, and the bytes by the formula.

/** @import { Account, Context, Frame } from "./types.js" */

import { ChartPanel } from "./chart_panel.js";
import { make, makeButton, makeChoice, makePanel, write } from "./elements.js";

const VIEWS = [
  ["cache_growth", "total"],
  ["cache_layers", "layers"],
  ["tokens_per_layer", "tokens"],
  ["account", "formula"],
];
/** @type {[string, string, string][]} The column of the rows, the line's style, its name. */
const LINES = [
  ["used", "stored", "stored"],
  ["allocated", "reserved", "reserved"],
  ["counted", "counted", "stored, counted"],
];

export class CachePanel extends ChartPanel {
  /**
   * @param {HTMLElement} parent
   * @param {Context} ctx
   */
  constructor(parent, ctx) {
    const parts = makePanel("kv", "K/V cache", ctx.data.explanations.kv);
    super(ctx, parts);
    const choice = makeChoice("Show the cache as");
    parts.tools.insertBefore(choice, parts.help);
    this.account = accountNode();
    this.views = VIEWS.map(([name, label]) => {
      const button = makeButton(label, () => this.choose(name));
      choice.append(button);
      if (name === "account") {
        parts.body.append(this.account);
        return { name, button, node: this.account };
      }
      return { name, button, node: this.chart(parts.body, name, "", { hasLegend: name === "cache_layers" }) };
    });
    this.verdict = make("span", "verdict");
    const line = make("div", "caption-line");
    parts.caption.replaceWith(line);
    line.append(parts.caption, this.verdict);
    this.legend = make("div", "legend");
    parts.panel.insertBefore(this.legend, parts.body);
    this.legendKey = "";
    this.choose("cache_growth");
    parent.append(parts.panel);
  }

  /** @param {string} chosen */
  choose(chosen) {
    for (const { name, button, node } of this.views) {
      button.setAttribute("aria-pressed", String(name === chosen));
      node.hidden = name !== chosen;
    }
    this.legend.hidden = chosen !== "cache_growth";
    this.repaint();
  }

  /** Only the lines that are drawn are named. */
  showLegend() {
    const rows = this.ctx.store.rows("cache_growth");
    const drawn = LINES.filter(([column]) => rows.some((row) => row[column] !== null));
    const key = rows.length ? drawn.map(([column]) => column).join() : "";
    if (key === this.legendKey) return;
    this.legendKey = key;
    this.legend.replaceChildren(...(key ? drawn : []).map(([, style, words]) => legendEntry(style, words)));
  }

  reset() {
    this.verdict.hidden = true;
    this.account.replaceChildren();
    super.reset();
    this.showLegend();
  }

  /** @param {Frame} frame */
  update(frame) {
    if (frame.captions) write(this.caption, frame.captions.kv);
    if (frame.account) this.showAccount(frame.account);
    this.showLegend();
    return super.update(frame);
  }

  /**
   * Each line: whose bytes, how they were counted, what was measured.
   * @param {Account} account
   */
  showAccount({ verdict, reason, lines }) {
    this.verdict.hidden = false;
    this.verdict.dataset.verdict = verdict;
    this.verdict.textContent = verdict;
    this.verdict.title = reason || "The cache stores exactly the bytes that the formula gives.";
    const nodes = lines.map(([name, formula, bytes]) => {
      const line = make("p", "account-line");
      line.append(make("b", null, name + ": "));
      if (formula) line.append(make("span", null, formula + "; "));
      line.append(make("span", "account-sum", bytes));
      return line;
    });
    if (reason) nodes.unshift(make("p", "account-line", reason));
    this.account.replaceChildren(...nodes);
  }
}

/**
 * @param {string} style
 * @param {string} words
 */
function legendEntry(style, words) {
  const entry = make("span", "entry");
  entry.append(make("span", "cache-line cache-" + style), make("span", null, words));
  return entry;
}

function accountNode() {
  const node = make("div", "account");
  node.tabIndex = 0;
  node.setAttribute("role", "group");
  node.setAttribute("aria-label", "Bytes counted and bytes measured");
  return node;
}
