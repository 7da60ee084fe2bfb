// The badge beside the model's name: what was checked of it on this machine. It asks the server by
// itself and never reports anything to the page: a report would run the page again.

/** @import { BadgeComponent, BadgeStatus } from "./types.js" */

import { make } from "./elements.js";

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
    this.address = new URL(component.data.status_address, base);
    this.isClosed = false;
    this.isFollowing = false;
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
    this.show(component.data.status);
    if (!this.isFollowing) void this.follow();
  }

  close() {
    this.isClosed = true;
    this.host.remove();
  }

  /** @param {BadgeStatus} status */
  show(status) {
    this.status = status;
    this.host.hidden = !status.model;
    this.model.textContent = status.model;
    this.badge.hidden = !status.words;
    this.badge.textContent = status.words;
    this.badge.dataset.state = status.state;
  }

  async follow() {
    this.isFollowing = true;
    while (!this.isClosed && this.status?.is_changing) {
      await new Promise((resolve) => setTimeout(resolve, ASKED_EVERY_MS));
      const status = this.isClosed ? null : await this.ask();
      if (status && !this.isClosed) this.show(status);
    }
    this.isFollowing = false;
  }

  /** @returns {Promise<BadgeStatus | null>} Null where the server does not answer, as at its restart. */
  async ask() {
    try {
      const response = await fetch(this.address);
      return response.ok ? await response.json() : null;
    } catch {
      return null;
    }
  }
}
