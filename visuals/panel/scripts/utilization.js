// The readings of the machine: utilisation over the run, and power where it is measured.

/** @import { Context, Frame, Reading } from "./types.js" */

import { ChartPanel } from "./chart_panel.js";
import { make, makePanel, write } from "./elements.js";

export class UtilizationPanel extends ChartPanel {
  /**
   * @param {HTMLElement} parent
   * @param {Context} ctx
   */
  constructor(parent, ctx) {
    const parts = makePanel("utilization", "Utilisation", ctx.data.explanations.utilization);
    super(ctx, parts);
    this.readings = make("div", "readings");
    /** @type {Map<string, HTMLElement>} */
    this.values = new Map(); // by the names of the readings that are shown
    this.missing = make("p", "missing");
    parts.caption.replaceWith(this.readings);
    parts.body.classList.add("pair");
    this.chart(parts.body, "utilization", "wide", { isBare: true });
    this.power = this.chart(parts.body, "power", "third", { isBare: true });
    this.power.hidden = true;
    parts.panel.insertBefore(this.missing, parts.body.nextSibling);
    parent.append(parts.panel);
  }

  /** @param {Frame} frame */
  update(frame) {
    if (frame.unavailable) {
      this.missing.textContent = frame.unavailable.join(" ");
      this.missing.title = this.missing.textContent;
      this.missing.hidden = !frame.unavailable.length;
    }
    if (this.ctx.store.rows("power").length) this.power.hidden = false;
    this.box.classList.toggle("has-readings", this.ctx.store.rows("utilization").length > 0); // before a step
    if (frame.readings?.length) this.showReadings(frame.readings);
    return super.update(frame);
  }

  /** @param {Reading[]} readings */
  showReadings(readings) {
    if (readings.some(({ name }) => !this.values.has(name)) || readings.length !== this.values.size) {
      this.values = new Map(readings.map(({ name }) => [name, make("b")]));
      const entries = [...this.values.values()].map((value, index) => readingEntry(readings[index], value));
      this.readings.replaceChildren(...entries);
    }
    for (const { name, text } of readings) write(/** @type {HTMLElement} */ (this.values.get(name)), text);
  }
}

/**
 * @param {Reading} reading
 * @param {HTMLElement} value
 */
function readingEntry({ name, colour, width }, value) {
  const entry = make("span", "entry");
  const line = make("span", "line");
  line.style.background = colour;
  line.style.height = width + "px";
  entry.append(line, make("span", null, name + " "), value);
  return entry;
}
