// What the panel says to the page. Each message makes the page run again, so none is sent that
// changes nothing, none after the panel is gone, and none while the page is being left: a rerun of
// the page that is being left would win over the one that was asked for.

/** @import { Component } from "./types.js" */

export const COALESCE_MS = 60; // states of one moment are one message
export const LEAVING_MS = 3000; // how long another page may take to come

// States between which the page's buttons do not change.
const GOING = new Set(["queued", "running"]);
const FINAL = new Set(["done", "stopped", "failed", "abandoned"]);

/**
 * Whether the page must run again for a state of the run that the panel has drawn.
 * @param {string} state
 * @param {object} known
 * @param {string} known.page The state that the page's buttons show.
 * @param {string} known.said The state that the panel said last.
 */
export function isWorthSaying(state, { page, said }) {
  const kind = kindOf(state);
  return kind !== kindOf(said) && kind !== kindOf(page) && !FINAL.has(page);
}

/** @param {string} state */
function kindOf(state) {
  return GOING.has(state) ? "going" : state;
}

/**
 * Whether a press on a link leads to another page of the app, in this tab.
 * @param {{ href: string, target: string }} link
 * @param {string} address Of the page that is shown.
 * @param {{ button: number, ctrlKey: boolean, metaKey: boolean, shiftKey: boolean }} press
 */
export function isLeaving(link, address, press) {
  if (press.button !== 0 || press.ctrlKey || press.metaKey || press.shiftKey) return false;
  if (link.target && link.target !== "_self") return false;
  const to = new URL(link.href, address);
  const from = new URL(address);
  return to.origin === from.origin && to.pathname !== from.pathname;
}

let leftAt = -Infinity;

/**
 * Take note of presses on other pages' links, once for all panels.
 * @param {Document} document
 */
export function watchLinks(document) {
  document.addEventListener(
    "click",
    (event) => {
      const [target] = event.composedPath();
      const link = target instanceof Element ? target.closest("a") : null;
      if (link?.href && isLeaving(link, document.location.href, event)) leftAt = performance.now();
    },
    { capture: true },
  );
}

export class PageMessages {
  /** @param {Component} component */
  constructor(component) {
    this.component = component;
    this.said = "";
    this.isClosed = false;
    /** @type {Map<string, unknown>} */
    this.waiting = new Map();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
  }

  /**
   * The page has run again; where it shows another state, what was said before is past.
   * @param {Component} component
   */
  call(component) {
    if (component.data.state !== this.component.data.state) this.said = "";
    this.component = component;
  }

  /** Another run is followed: nothing that waits is about it. */
  reset() {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.waiting.clear();
    this.said = "";
  }

  /**
   * Say a value at the next opportunity.
   * @param {string} name
   * @param {unknown} value
   */
  send(name, value, pauseMs = 0) {
    if (this.isClosed) return;
    this.waiting.set(name, value);
    this.timer ??= setTimeout(() => this.flush(), pauseMs);
  }

  /**
   * The state that was drawn; the page's buttons follow it, where it is of the page's own run.
   * @param {string} state
   * @param {string} [runId]
   */
  sendState(state, runId = this.component.data.run_id) {
    if (runId !== this.component.data.run_id) return;
    if (this.waiting.has("state") || this.isWorthSaying(state)) this.send("state", state, COALESCE_MS);
  }

  /** @param {string} state */
  isWorthSaying(state) {
    return isWorthSaying(state, { page: this.component.data.state, said: this.said });
  }

  flush() {
    this.timer = undefined;
    const leftMs = leftAt + LEAVING_MS - performance.now();
    if (leftMs > 0) {
      this.timer = setTimeout(() => this.flush(), leftMs);
      return;
    }
    const waiting = [...this.waiting];
    this.waiting.clear();
    for (const [name, value] of waiting) {
      if (name === "state") {
        if (!this.isWorthSaying(String(value))) continue;
        this.said = String(value);
      }
      this.component.setStateValue(name, value);
    }
  }

  close() {
    this.isClosed = true;
    this.reset();
  }
}
