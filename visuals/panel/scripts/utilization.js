// The readings of the machine: utilisation over the run, and power where it is measured.

/** @import { Context, Frame, Reading } from "./types.js" */

import { ChartPanel } from "./chart_panel.js";
import { make, makePanel } from "./elements.js";

export class UtilizationPanel extends ChartPanel {
  /**
   * @param {HTMLElement} parent
   * @param {Context} ctx
   */
  constructor(parent, ctx) {
    const parts = makePanel("utilization", "Utilisation", ctx.data.explanations.utilization);
    super(ctx, parts);
    this.readings = make("div", "readings");
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
    if (frame.readings?.length) this.readings.replaceChildren(...frame.readings.map(readingEntry));
    return super.update(frame);
  }
}

/** @param {Reading} reading */
function readingEntry({ name, colour, width, text }) {
  const entry = make("span", "entry");
  const line = make("span", "line");
  line.style.background = colour;
  line.style.height = width + "px";
  entry.append(line, make("span", null, name + " "), make("b", null, text));
  return entry;
}
