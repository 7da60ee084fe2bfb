// The card that explains a term, beside where it stands and above everything else on the page.

/** @import { Term } from "./types.js" */

import { make } from "./elements.js";

const GAP = 6; // pixels between a term and its card
const EDGE = 8; // and between the card and the window's edge

export class TermCard {
  /** @param {HTMLElement | ShadowRoot} parent */
  constructor(parent) {
    this.box = make("div", "term-card");
    this.box.id = "term-card";
    this.box.setAttribute("popover", "manual");
    this.box.setAttribute("role", "group");
    this.title = make("p", "term-title");
    this.sentence = make("p");
    this.number = make("p", "term-number");
    this.link = make("a");
    // Another tab, since a page that is left by its address forgets what was typed.
    this.link.target = "_blank";
    this.link.rel = "noopener";
    this.keys = make("p", "term-keys");
    this.box.append(this.title, this.sentence, this.number, this.link, this.keys);
    parent.append(this.box);
    this.isOpen = false;
  }

  /**
   * @param {Term} term
   * @param {object} about
   * @param {string} about.number What it is in the run that is shown; empty where that is not known.
   * @param {string} about.address Of the tour's chapter; empty for those who have no tour.
   * @param {string} about.chapter Its title.
   * @param {string} about.keys What the keyboard does; empty for a pointer.
   */
  say(term, { number, address, chapter, keys }) {
    this.title.textContent = term.title;
    this.box.setAttribute("aria-label", term.title);
    this.sentence.textContent = term.sentence;
    this.number.textContent = number && `In this run: ${number}`;
    this.number.hidden = !number;
    this.link.hidden = !address;
    if (address) this.link.href = address;
    this.link.textContent = `Tour: ${chapter}`;
    this.keys.textContent = keys;
    this.keys.hidden = !keys;
  }

  /**
   * Open it, or move it, below a place of the window; above where there is no room.
   * @param {DOMRect} spot
   */
  show(spot) {
    if (!this.isOpen) this.box.showPopover();
    this.isOpen = true;
    const { width, height } = this.box.getBoundingClientRect();
    const isRoomBelow = spot.bottom + GAP + height + EDGE <= window.innerHeight;
    const top = isRoomBelow ? spot.bottom + GAP : spot.top - GAP - height;
    const left = Math.min(spot.left, window.innerWidth - width - EDGE);
    this.box.style.top = `${Math.max(EDGE, top)}px`;
    this.box.style.left = `${Math.max(EDGE, left)}px`;
  }

  hide() {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.box.hidePopover();
  }
}
