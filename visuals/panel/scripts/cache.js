// The K/V cache: its growth, its layers, the tokens they keep, and the bytes by the formula.

/** @import { Account, Context, Frame } from "./types.js" */

import { ChartPanel } from "./chart_panel.js";
import { make, makeButton, makeChoice, makePanel } from "./elements.js";

const VIEWS = [
  ["cache_growth", "total"],
  ["cache_layers", "layers"],
  ["tokens_per_layer", "tokens"],
  ["account", "formula"],
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
    this.choose("cache_growth");
    parent.append(parts.panel);
  }

  /** @param {string} chosen */
  choose(chosen) {
    for (const { name, button, node } of this.views) {
      button.setAttribute("aria-pressed", String(name === chosen));
      node.hidden = name !== chosen;
    }
    this.repaint();
  }

  reset() {
    this.verdict.hidden = true;
    this.account.replaceChildren();
    super.reset();
  }

  /** @param {Frame} frame */
  update(frame) {
    if (frame.captions) this.caption.textContent = frame.captions.kv;
    if (frame.account) this.showAccount(frame.account);
    return super.update(frame);
  }

  /**
   * Each line: whose bytes, how they were counted, what the tensors hold.
   * @param {Account} account
   */
  showAccount({ verdict, reason, lines }) {
    this.verdict.hidden = false;
    this.verdict.dataset.verdict = verdict;
    this.verdict.textContent = verdict;
    this.verdict.title = reason || "The tensors hold exactly what the formula gives.";
    const nodes = lines.map(([name, formula, bytes]) => {
      const line = make("p", "account-line");
      line.append(make("b", null, name + ": "));
      if (formula) line.append(make("span", null, formula + "; "));
      line.append(make("span", "account-sum", "tensors " + bytes));
      return line;
    });
    if (reason) nodes.unshift(make("p", "account-line", reason));
    this.account.replaceChildren(...nodes);
  }
}

function accountNode() {
  const node = make("div", "account");
  node.tabIndex = 0;
  node.setAttribute("role", "group");
  node.setAttribute("aria-label", "Bytes counted and bytes of the tensors");
  return node;
}
