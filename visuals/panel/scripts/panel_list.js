// Every panel below and beside the header, each with the name by which a page asks for it.

/** @import { PanelClass } from "./types.js" */

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
