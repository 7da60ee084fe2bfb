// Where a panel's run comes from: here the server, over two WebSockets. A page that holds the run
// itself has another origin (player/recorded_origin.js).

/** @import { Origin } from "./types.js" */

import { AttentionLink } from "./attention_link.js";
import { RunLink } from "./run_link.js";

/**
 * @param {URL} base Where the server is.
 * @returns {Origin}
 */
export function serverOrigin(base) {
  return {
    hasServer: true,
    frames: (calls) => new RunLink(calls),
    weights: (take) => new AttentionLink(base, take),
  };
}
