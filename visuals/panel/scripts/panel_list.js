// Every panel below and beside the header, each with the name by which a page asks for it.

/** @import { PanelClass, PanelData } from "./types.js" */

import { BatchPanel } from "./batch.js";
import { CachePanel } from "./cache.js";
import { HeaderPanel } from "./header.js";
import { LatencyPanel } from "./latency.js";
import { MaskPanel } from "./mask_panel.js";
import { NextTokenPanel } from "./next_token.js";
import { RooflinePanel } from "./roofline.js";
import { TokensPanel } from "./tokens.js";
import { UtilizationPanel } from "./utilization.js";
import { WeightReusePanel } from "./weight_reuse.js";

/** @type {[string, PanelClass][]} */
export const WIDE_PANELS = [["head", HeaderPanel], ["tokens", TokensPanel], ["batch", BatchPanel]];
/** @type {[string, PanelClass][]} */
export const PANELS = [
  ["mask", MaskPanel],
  ["roofline", RooflinePanel],
  ["latency", LatencyPanel],
  ["weights", WeightReusePanel],
  ["kv", CachePanel],
  ["utilization", UtilizationPanel],
  ["next", NextTokenPanel],
];

/**
 * The panels that a page has: all, or those that it names and the header. A page that presents has
 * all, since a presenter chooses among them.
 * @param {[string, PanelClass][]} panels
 * @param {PanelData} data
 */
export function panelsOf(panels, { panels: names, stage }) {
  return panels.filter(([name]) => !names || stage || name === "head" || names.includes(name));
}

/**
 * Show the panels that a page names; none named for all.
 * @param {HTMLElement} root
 * @param {Map<string, HTMLElement>} boxes
 * @param {PanelData} data
 */
export function showNamed(root, boxes, { panels }) {
  root.classList.toggle("some", Boolean(panels));
  for (const [name, box] of boxes) box.classList.toggle("unnamed", Boolean(panels && !panels.includes(name)));
}
