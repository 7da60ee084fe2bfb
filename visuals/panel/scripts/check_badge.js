// The badge beside the model's name: what was checked of it on this machine. It asks the server by
// itself and never reports anything to the page: a report would run the page again.

/** @import { BadgeComponent, BadgeStatus } from "./types.js" */

import { make } from "./elements.js";
import { StatusPoll } from "./status_poll.js";

const ASKED_EVERY_MS = 3000;

/**
 * Show the badge where Streamlit says.
 * @param {BadgeComponent} component
 * @param {object} how
 * @param {URL} how.base Where the server is.
 */
export function open(component, { base }) {
  return new CheckBadge(component, base);
}

class CheckBadge {
  /**
   * @param {BadgeComponent} component
   * @param {URL} base
   */
  constructor(component, base) {
    /** @type {StatusPoll<BadgeStatus>} */
    this.poll = new StatusPoll({
      address: new URL(component.data.status_address, base),
      everyMs: ASKED_EVERY_MS,
      show: (status) => this.show(status),
      isChanging: (status) => status.is_changing,
    });
    this.host = make("div", "line");
    this.model = make("span", "model");
    this.badge = document.createElement("a");
    this.badge.className = "badge";
    this.badge.href = new URL(component.data.page_address, base).href;
    // Another tab, since a page that is left by its address forgets what was typed.
    this.badge.target = "_blank";
    this.badge.rel = "noopener";
    this.badge.title = "What was compared with what, and what came of it (opens in another tab)";
    this.host.append(this.model, this.badge);
    component.parentElement.append(this.host);
    this.call(component);
  }

  /** @param {BadgeComponent} component */
  call(component) {
    this.poll.from(component.data.status);
  }

  close() {
    this.poll.close();
    this.host.remove();
  }

  /** @param {BadgeStatus} status */
  show(status) {
    this.host.hidden = !status.model;
    this.model.textContent = status.model;
    this.badge.hidden = !status.words;
    this.badge.textContent = status.words;
    this.badge.dataset.state = status.state;
  }
}
