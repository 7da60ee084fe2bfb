// The entry: what the loader imports.

/** @import { Component } from "./types.js" */
/** @import { UntilLoaded } from "./vega.js" */

import { LivePanel } from "./live_panel.js";
import { watchLinks } from "./page_messages.js";

watchLinks(document);

/**
 * Show a run where Streamlit says.
 * @param {Component} component
 * @param {object} how
 * @param {URL} how.base Where the server is.
 * @param {UntilLoaded} how.untilLoaded
 */
export function open(component, how) {
  return new LivePanel(component, how);
}
