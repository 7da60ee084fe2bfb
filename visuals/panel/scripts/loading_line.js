// The loading line: says how far the engine is with its model, and asks for that by itself. It never
// reports anything to the page: a report would run the page again, even one that is being left.

/** @import { EngineStatus, LoadingComponent } from "./types.js" */

import { make } from "./elements.js";
import { StatusPoll } from "./status_poll.js";

const ASKED_EVERY_MS = 500;

/**
 * Show the loading of the model where Streamlit says.
 * @param {LoadingComponent} component
 * @param {object} how
 * @param {URL} how.base Where the server is.
 */
export function open(component, { base }) {
  return new LoadingLine(component, new URL(component.data.status_address, base));
}

class LoadingLine {
  /**
   * @param {LoadingComponent} component
   * @param {URL} address Of the engine's status.
   */
  constructor(component, address) {
    /** @type {StatusPoll<EngineStatus>} */
    this.poll = new StatusPoll({
      address: address,
      everyMs: ASKED_EVERY_MS,
      show: (status) => this.show(status),
      isChanging: (status) => status.stage,
    });
    this.host = make("div", "line");
    this.words = make("div");
    this.words.setAttribute("role", "status");
    this.track = make("div", "track");
    this.track.setAttribute("role", "progressbar");
    this.track.setAttribute("aria-label", "Loading the model");
    this.bar = make("div", "bar");
    this.track.append(this.bar);
    this.host.append(this.words, this.track);
    component.parentElement.append(this.host);
    this.call(component);
  }

  /** @param {LoadingComponent} component */
  call(component) {
    this.poll.from(component.data.status);
  }

  close() {
    this.poll.close();
    this.host.remove();
  }

  /** @param {EngineStatus} status */
  show(status) {
    const percent = 100 * (status.ratio ?? 0);
    this.host.hidden = !status.stage && !status.error;
    this.words.textContent = status.error
      ? `The default model could not be loaded: ${status.error}`
      : `Loading the model: ${status.stage} …`;
    this.host.classList.toggle("is-error", Boolean(status.error));
    this.track.hidden = Boolean(status.error);
    this.track.setAttribute("aria-valuenow", String(Math.round(percent)));
    this.bar.style.width = `${percent}%`;
  }
}
