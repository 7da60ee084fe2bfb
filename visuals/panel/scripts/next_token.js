// The next token: its likeliest candidates before and after sampling, and the entropy over the run.

/** @import { Context, Frame, NextRow, NextToken } from "./types.js" */

import { ChartPanel } from "./chart_panel.js";
import { make, makePanel } from "./elements.js";
import { group, percentText } from "./numbers.js";
import { Place } from "./place.js";

export class NextTokenPanel extends ChartPanel {
  /**
   * @param {HTMLElement} parent
   * @param {Context} ctx
   */
  constructor(parent, ctx) {
    const parts = makePanel("next", "Next token", ctx.data.explanations.next);
    super(ctx, parts);
    this.how = make("span", "next-how");
    parts.tools.insertBefore(this.how, parts.help);
    parts.body.classList.add("pair");
    this.table = make("div", "next-table");
    parts.body.append(this.table);
    this.chart(parts.body, "entropy_by_step", "wide");
    parent.append(parts.panel);
    /** @type {NextToken | null} */
    this.newest = null; // that the table does not show
    this.place = new Place(parts.body, () => this.showNewest());
  }

  reset() {
    this.newest = null;
    this.table.replaceChildren();
    this.how.textContent = "";
    super.reset();
  }

  /** @param {Frame} frame */
  update(frame) {
    this.newest = frame.next ?? this.newest;
    if (this.place.isSeen || frame.run.final) this.showNewest();
    return super.update(frame);
  }

  showNewest() {
    if (this.newest) this.show(this.newest);
    this.newest = null;
  }

  /** @param {NextToken} next */
  show({ step, how, caption, rows }) {
    this.caption.textContent = `Step ${group(step)}. ${caption}`;
    this.caption.title = this.caption.textContent;
    this.how.textContent = how;
    const isGreedy = rows.every((row) => row[3] === null);
    this.table.classList.toggle("greedy", isGreedy);
    const head = make("div", "next-row next-head");
    head.append(make("span", null, "token"), make("span", null, isGreedy ? "probability" : "model\u2019s own"));
    if (!isGreedy) head.append(make("span", null, "drawn from"));
    this.table.replaceChildren(head, ...rows.map((row) => this.row(row, isGreedy)));
  }

  /**
   * @param {NextRow} candidate
   * @param {boolean} isGreedy
   */
  row([, text, before, after, isChosen], isGreedy) {
    const line = make("div", "next-row" + (isChosen ? " chosen" : ""));
    const token = make("span", "tip-token", (isChosen ? "\u25b8 " : "") + text);
    token.setAttribute("translate", "no");
    line.append(token, this.bar(before));
    if (!isGreedy) line.append(this.bar(after, after === 0 ? "ruled out" : null));
    return line;
  }

  /**
   * @param {number | null} p
   * @param {string | null} [words]
   */
  bar(p, words) {
    const cell = make("span", "next-bar");
    const track = make("span", "chance-track");
    const filled = make("span", "chance-bar");
    filled.style.width = `${(p || 0) * 100}%`;
    track.append(filled);
    cell.append(track, make("span", "chance-p", words || percentText(p)));
    return cell;
  }

  close() {
    this.place.close();
    super.close();
  }
}
