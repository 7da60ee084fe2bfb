// The roofline: whole steps, linear operations alone, or attention alone; roofs by provenance.

/** @import { Context, Frame } from "./types.js" */

import { ChartPanel } from "./chart_panel.js";
import { make, makeButton, makeChoice, makePanel, write } from "./elements.js";
import { RoofsLine } from "./roofs_line.js";

const VIEWS = [
  ["roofline_step", "step", "Whole steps"],
  ["roofline_linear", "linear", "Linear operations alone"],
  ["roofline_attention", "attention", "Attention alone"],
];
const ROOF_LINES = [
  ["measured", "measured here"],
  ["datasheet", "vendor's data sheet"],
];

export class RooflinePanel extends ChartPanel {
  /**
   * @param {HTMLElement} parent
   * @param {Context} ctx
   */
  constructor(parent, ctx) {
    const parts = makePanel("roofline", "Roofline", ctx.data.explanations.roofline);
    super(ctx, parts);
    const choice = makeChoice("Show the roofline of");
    parts.tools.insertBefore(choice, parts.help);
    this.legend = make("div", "legend");
    parts.panel.insertBefore(this.legend, parts.body);
    this.roofs = new RoofsLine(parts.panel, parts.body, ctx);
    /** @type {Record<string, string>} */
    this.captions = {};
    /** @type {Record<string, string>} */
    this.alarms = {};
    this.chosen = VIEWS[0][0];
    /** @type {string | null} */
    this.legendKey = null;
    this.views = VIEWS.map(([name, label, title]) => {
      const button = makeButton(label, () => {
        this.choose(name);
        ctx.send("part", label); // the engine times parts only while somebody looks at them
      });
      button.title = title;
      choice.append(button);
      return { name, label, button, node: this.chart(parts.body, name) };
    });
    parent.append(parts.panel);
    this.reset();
    this.choose(this.chosen);
  }

  reset() {
    this.captions = {};
    this.alarms = {};
    this.roofs.reset();
    super.reset();
    this.showLegend();
  }

  /** @param {string} chosen */
  choose(chosen) {
    this.chosen = chosen;
    for (const { name, button, node } of this.views) {
      button.setAttribute("aria-pressed", String(name === chosen));
      node.hidden = name !== chosen;
    }
    this.say();
    this.repaint();
  }

  say() {
    const view = this.views.find(({ name }) => name === this.chosen);
    write(this.caption, (view && this.captions[view.label]) || "");
    this.roofs.warn((view && this.alarms[view.label]) || "");
  }

  /** @param {Frame} frame */
  update(frame) {
    if (frame.roofline) {
      this.captions = frame.roofline.captions;
      Object.assign(this.alarms, frame.roofline.alarms);
      this.say();
    }
    this.roofs.update(frame);
    this.showLegend();
    return super.update(frame);
  }

  close() {
    this.roofs.close();
    super.close();
  }

  // Only the roofs that are drawn are named, each with the style of its line.
  showLegend() {
    const sources = new Set(this.ctx.store.rows("roofline_step_ridges").map((row) => String(row.source)));
    const key = [...sources].join();
    if (key === this.legendKey) return;
    this.legendKey = key;
    const entries = ["prefill", "decode"].map((phase) => legendEntry("dot dot-" + phase, phase));
    for (const [source, words] of ROOF_LINES) {
      if (sources.has(source)) entries.push(legendEntry("roof roof-" + source, words));
    }
    if (sources.size) entries.push(legendEntry("ridge-mark", "ridge"));
    this.legend.replaceChildren(...entries);
  }
}

/**
 * @param {string} className
 * @param {string} words
 */
function legendEntry(className, words) {
  const entry = make("span", "entry");
  entry.append(make("span", className), make("span", null, words));
  return entry;
}
