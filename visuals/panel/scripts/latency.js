// The step times of both phases.

/** @import { Context, Frame } from "./types.js" */

import { ChartPanel } from "./chart_panel.js";
import { makePanel, write } from "./elements.js";

const NOTE_ROOM = 20; // over a chart with notes above its plot

export class LatencyPanel extends ChartPanel {
  /**
   * @param {HTMLElement} parent
   * @param {Context} ctx
   */
  constructor(parent, ctx) {
    const parts = makePanel("latency", "Step latency", ctx.data.explanations.latency);
    super(ctx, parts);
    parts.body.classList.add("pair");
    this.chart(parts.body, "prefill_step_times", "narrow", { top: NOTE_ROOM });
    this.chart(parts.body, "decode_step_times", "wide", { top: NOTE_ROOM });
    parent.append(parts.panel);
  }

  /** @param {Frame} frame */
  update(frame) {
    if (frame.captions) write(this.caption, frame.captions.latency);
    return super.update(frame);
  }
}
