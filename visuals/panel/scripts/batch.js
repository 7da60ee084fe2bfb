// A batch: one step of all rows, what every slot did over time, and the shared and the own bytes.
// Shown only for runs of several requests.

/** @import { BatchRow, BatchStep, Context, Frame, Plan, SharedBytes } from "./types.js" */

import { ChartPanel } from "./chart_panel.js";
import { make, makeButton, makeChoice, makePanel } from "./elements.js";
import { group, mibText } from "./numbers.js";

const KINDS = [
  ["prefill", "prefill"],
  ["decode", "decode"],
  ["padding", "padding"],
  ["waiting", "waits for a prefill"],
  ["queue", "no slot yet"],
];
const STEP_HEIGHT = 192; // pixels for all rows of the picture of a step
const ROWS_WITH_WORDS = 8;
const OWN_COLOURS = ["#009E73", "#3DB994", "#007455", "#7ED0B6"];

export class BatchPanel extends ChartPanel {
  /**
   * @param {HTMLElement} parent
   * @param {Context} ctx
   */
  constructor(parent, ctx) {
    const parts = makePanel("batch", "Batch", ctx.data.explanations.batch);
    super(ctx, parts);
    /** @type {Plan | null} */
    this.plan = null;
    const choice = makeChoice("Show the batch as");
    parts.tools.insertBefore(choice, parts.help);
    this.step = make("div", "batch-step");
    this.step.setAttribute("role", "img");
    const time = make("div", "batch-time");
    time.append(kindLegend());
    this.chart(time, "slot_timeline", "batch-chart");
    this.table = make("table", "batch-table");
    const holder = make("div", "batch-latency");
    holder.append(this.table);
    this.share = make("div", "batch-share");
    parts.body.classList.add("batch-body");
    parts.body.append(this.step, time, holder, this.share);
    /** @type {[string, HTMLElement[]][]} */
    const views = [
      ["steps", [this.step, time]],
      ["latency of each", [holder]],
    ];
    this.views = views.map(([name, nodes]) => {
      const button = makeButton(name, () => this.choose(name));
      choice.append(button);
      return { name, button, nodes };
    });
    parent.append(this.box);
    this.choose("steps");
    this.box.hidden = true;
  }

  /** @param {string} chosen */
  choose(chosen) {
    for (const { name, button, nodes } of this.views) {
      button.setAttribute("aria-pressed", String(name === chosen));
      for (const node of nodes) node.hidden = name !== chosen;
    }
    this.repaint();
  }

  reset() {
    this.box.hidden = true;
    this.plan = null;
    this.step.replaceChildren();
    this.table.replaceChildren();
    this.share.replaceChildren();
    super.reset();
  }

  /**
   * @param {Frame} frame
   * @returns {void | Promise<unknown>}
   */
  update(frame) {
    if (frame.model) {
      this.plan = frame.model.batch;
      this.box.hidden = !this.plan;
    }
    if (!this.plan) return undefined;
    if (frame.batch) {
      this.describe(frame.batch.step, this.plan);
      this.picture(frame.batch.step);
      this.bytes(frame.batch.shared, frame.batch.rates);
      this.latency(frame.batch.latency, this.plan.columns);
    }
    return super.update(frame);
  }

  /**
   * @param {BatchStep} step
   * @param {Plan} plan
   */
  describe(step, { policy, slots, requests }) {
    const waiting = step.queued ? `, ${step.queued} waiting for a slot` : "";
    const live = step.rows.filter((row) => !row[4]).length;
    const fed = step.rows.filter((row) => row[2]).length;
    const over = fed === 1 ? "1 row" : `${fed} rows`;
    const plan = `${requests} requests, ${slots ? `${slots} slots, ` : ""}${policy}.`;
    const goOn = live ? `; ${live} of ${step.rows.length} go on` : ", and all are done";
    this.caption.textContent = `${plan} This step fed T = ${group(step.T)} to ${over}${goOn}${waiting}.`;
  }

  /**
   * Many rows are drawn thin and without words, so that all of them are seen at once.
   * @param {BatchStep} step
   */
  picture(step) {
    const isMany = step.rows.length > ROWS_WITH_WORDS;
    const height = Math.max(4, Math.floor(STEP_HEIGHT / step.rows.length));
    const lines = step.rows.map((row) => {
      const track = make("div", "batch-track");
      track.append(...rowParts(row, step.columns));
      const words = rowWords(row);
      const line = make("div", "batch-row");
      line.title = `request ${row[0] + 1}: ${words}`;
      if (isMany) {
        line.style.height = `${height}px`;
        track.style.height = `${Math.max(3, Math.min(16, height - 2))}px`;
        track.style.borderRadius = "1px";
        line.append(track);
      } else {
        line.append(make("b", "batch-number", row[0] + 1), track, make("span", "batch-words", words));
      }
      return line;
    });
    this.step.replaceChildren(...lines);
    this.step.setAttribute("aria-label", this.spoken(step));
  }

  /** @param {BatchStep} step */
  spoken(step) {
    const rows = step.rows.map(
      ([number, kind, fed, stored, isDone]) =>
        `request ${number + 1}: ${isDone && !fed ? "done, padding" : `${kind}, fed ${fed}, stored ${stored}`}`,
    );
    return `One step of ${step.phase}, ${step.T} tokens in all. ${rows.join("; ")}.`;
  }

  /**
   * @param {SharedBytes} shared
   * @param {{ each: string, all: string }} rates
   */
  bytes(shared, rates) {
    const own = shared.own.reduce((sum, [, mib]) => sum + mib, 0);
    this.share.replaceChildren(
      shareLine("counted, this step:"),
      shareFigure("weights, read once", mibText(shared.weights_mib), "MiB", "counted"),
      shareBar(shared, own),
      shareFigure(ownWords(shared.own.length), mibText(own), "MiB", "counted"),
      shareFigure("per weight byte", shared.flops_per_byte, "FLOP", "counted: linear operations / weight bytes"),
      shareLine("measured, decode steps so far:"),
      shareFigure("each row", rates.each, "tok/s", "measured: tokens of a row / step times of the steps that fed it, all rows together"),
      shareFigure("all rows", rates.all, "tok/s", "measured: tokens of all rows / step times of the same steps"),
    );
  }

  /**
   * @param {string[][]} lines
   * @param {string[]} columns
   */
  latency(lines, columns) {
    const head = make("tr");
    head.append(...columns.map((name) => make("th", null, name)));
    const rows = lines.map((cells) => {
      const row = make("tr");
      row.append(...cells.map((cell) => make("td", null, cell)));
      return row;
    });
    this.table.replaceChildren(head, ...rows);
  }
}

function kindLegend() {
  const legend = make("div", "batch-legend");
  for (const [kind, words] of KINDS) {
    const entry = make("span", "entry");
    entry.append(make("span", "swatch kind-" + kind), make("span", null, words));
    legend.append(entry);
  }
  return legend;
}

/**
 * A row of the cache: padding, what was stored before, what this step feeds, padding.
 * @param {BatchRow} row
 * @param {number} columns Of the longest row.
 */
function rowParts([, kind, fed, stored, , behind], columns) {
  /** @type {[string, number][]} */
  const parts = [
    ["pad", Math.max(0, columns - stored - behind)],
    ["kv", stored - fed],
    [fed ? "kind-" + kind : "kv", fed],
    ["pad", behind],
  ];
  return parts
    .filter(([, tokens]) => tokens)
    .map(([name, tokens]) => {
      const part = make("span", "part " + name);
      part.style.flexGrow = String(tokens);
      return part;
    });
}

/** @param {BatchRow} row */
function rowWords([, , fed, stored, isDone]) {
  return isDone && !fed ? "done" : `T=${group(fed)} L=${group(stored)}`;
}

/**
 * The weights, shared, and each row's own K/V, as parts of all bytes.
 * @param {SharedBytes} shared
 * @param {number} own
 */
function shareBar(shared, own) {
  const bar = make("div", "share-bar");
  bar.setAttribute("role", "img");
  bar.setAttribute("aria-label", `weights ${shared.weights_mib} MiB, K/V of all rows ${own} MiB`);
  const total = shared.weights_mib + own;
  const weights = make("span", "share-weights");
  weights.style.flexGrow = String(shared.weights_mib / total);
  bar.append(weights);
  for (const [number, mib] of shared.own) {
    const part = make("span", "share-own");
    part.style.flexGrow = String(mib / total);
    part.style.background = OWN_COLOURS[number % OWN_COLOURS.length];
    bar.append(part);
  }
  return bar;
}

/**
 * @param {string} label
 * @param {string} value
 * @param {string} unit
 * @param {string} source
 */
function shareFigure(label, value, unit, source) {
  const line = make("p", "share-figure");
  line.append(make("span", null, label + " "), make("b", null, value), make("span", "unit", ` ${unit}`));
  line.title = source;
  return line;
}

/** @param {number} rows */
function ownWords(rows) {
  return rows === 1 ? "K/V of the row fed" : `K/V of the ${rows} rows fed, together`;
}

/** @param {string} words */
function shareLine(words) {
  const line = make("p", "share-figure");
  line.append(make("span", "unit", words));
  return line;
}
