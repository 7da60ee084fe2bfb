// What presenter mode draws around the panels: it lies over the whole page, enlarged for a room, with
// the strip that names the panels, the idea of the moment, the ring, and controls while the pointer moves.

/** @import { StageData } from "./types.js" */

import { enlarge, make, makeButton, write } from "./elements.js";
import { enlargement } from "./present_keys.js";
import { qrCode } from "./qr_code.js";

const SHOWN_MS = 3000; // controls, after the pointer's last move
const SAID_MS = 8000;

/**
 * @typedef {object} Actions
 * @property {(name: string, isBeside: boolean) => void} choose
 * @property {(what: "step" | "back" | "light" | "link" | "leave") => void} press
 * @property {(pointer: [string, number, number] | null) => void} point
 * @property {() => void} fitted The enlargement has changed.
 */

export class Stage {
  /**
   * @param {HTMLElement} root Of all panels.
   * @param {Map<string, HTMLElement>} boxes Of each panel, by name.
   * @param {{ data: StageData, actions: Actions }} how
   */
  constructor(root, boxes, { data, actions }) {
    this.root = root;
    this.boxes = boxes;
    this.data = data;
    this.actions = actions;
    this.isOpen = false;
    this.ring = make("span", "ring");
    this.words = make("p", "said");
    this.words.setAttribute("role", "status");
    this.words.hidden = true;
    this.idea = make("p", "idea");
    this.card = make("div", "card");
    this.card.hidden = true;
    this.strip = make("div", "panel-strip");
    this.foot = make("div", "stage-foot");
    this.foot.append(this.idea);
    this.controls = make("div", "controls");
    this.line = make("div", "stage-line");
    root.prepend(this.words);
    if (data.role === "presenter") this.equip();
    this.moved = () => this.reveal();
    this.fit = () => this.fitted();
    this.focused = (/** @type {FocusEvent} */ event) => {
      if (!event.composedPath().includes(root)) root.focus({ preventScroll: true });
    };
    this.used = (/** @type {Event} */ event) => this.release(event);
    this.pointed = (/** @type {PointerEvent} */ event) => actions.point(this.pointer(event));
  }

  equip() {
    this.strip.setAttribute("role", "group");
    this.strip.setAttribute("aria-label", "Panels");
    this.data.ideas.forEach(({ name, title }, index) => {
      const button = makeButton("", () => undefined);
      button.append(make("b", null, index + 1), ` ${title}`);
      button.dataset.panel = name;
      button.addEventListener("click", (event) => this.actions.choose(name, event.shiftKey));
      this.strip.append(button);
    });
    /** @type {[string, string, "back" | "step" | "light" | "link" | "leave"][]} */
    const presses = [
      ["\u25c0", "One step back (Page Up)", "back"],
      ["\u25b6", "One step (space, Page Down)", "step"],
      ["light", "Light or dark (D)", "light"],
      ["link", "The viewers' link (V)", "link"],
      ["leave", "Leave presenter mode (F)", "leave"],
    ];
    for (const [words, title, what] of presses) {
      const button = makeButton(words, () => this.actions.press(what));
      button.title = title;
      button.setAttribute("aria-label", title);
      this.controls.append(button);
    }
    this.line.append(this.strip, this.controls);
    this.foot.append(this.line);
  }

  open() {
    if (this.isOpen) return;
    this.isOpen = true;
    const { root } = this;
    root.classList.add("presented");
    root.append(this.foot, this.card);
    root.tabIndex = -1;
    root.popover = "manual";
    root.showPopover?.(); // over everything else of the page, whatever it lies in
    root.focus({ preventScroll: true });
    root.addEventListener("click", this.used);
    root.addEventListener("change", this.used);
    root.addEventListener("pointermove", this.moved);
    root.addEventListener("pointermove", this.pointed);
    root.addEventListener("pointerleave", this.pointed);
    document.addEventListener("focusin", this.focused);
    window.addEventListener("resize", this.fit);
    this.fitted();
  }

  close() {
    if (!this.isOpen) return;
    this.isOpen = false;
    const { root } = this;
    document.removeEventListener("focusin", this.focused);
    window.removeEventListener("resize", this.fit);
    root.removeEventListener("click", this.used);
    root.removeEventListener("change", this.used);
    root.removeEventListener("pointermove", this.moved);
    root.removeEventListener("pointermove", this.pointed);
    root.removeEventListener("pointerleave", this.pointed);
    clearTimeout(this.hiding);
    root.classList.remove("presented", "moved");
    root.hidePopover?.();
    root.removeAttribute("popover");
    root.removeAttribute("style");
    root.removeAttribute("tabindex");
    delete root.dataset.light;
    delete root.dataset.panels;
    for (const box of this.boxes.values()) {
      box.classList.remove("shown");
      box.style.order = "";
    }
    this.foot.remove();
    this.card.hidden = true;
    this.card.remove();
    this.ring.remove();
    enlarge(1);
    this.actions.fitted();
  }

  fitted() {
    const by = enlargement(window.innerWidth, window.innerHeight);
    const { style } = this.root;
    style.width = `${window.innerWidth / by}px`;
    style.height = `${window.innerHeight / by}px`;
    style.transform = `scale(${by})`;
    enlarge(by);
    this.actions.fitted();
  }

  /**
   * Once a button was clicked or something chosen, the keys belong to the presentation again.
   * @param {Event} event
   */
  release(event) {
    const [target] = event.composedPath();
    const isClicked = event instanceof UIEvent && event.detail > 0 && target instanceof Element && target.closest("button");
    if (event.type === "change" || isClicked) this.root.focus({ preventScroll: true });
  }

  reveal() {
    this.root.classList.add("moved");
    clearTimeout(this.hiding);
    this.hiding = setTimeout(() => this.root.classList.remove("moved"), SHOWN_MS);
  }

  /** @type {ReturnType<typeof setTimeout> | undefined} */
  hiding = undefined;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  silencing = undefined;

  /**
   * Show these panels, in this order, and none else.
   * @param {string[]} panels
   */
  choose(panels) {
    this.root.dataset.panels = String(panels.length);
    for (const [name, box] of this.boxes) {
      const place = panels.indexOf(name);
      box.classList.toggle("shown", place >= 0);
      box.style.order = String(Math.max(0, place));
    }
    for (const button of this.strip.children) {
      const isShown = panels.includes(String(/** @type {HTMLElement} */ (button).dataset.panel));
      button.setAttribute("aria-pressed", String(isShown));
    }
  }

  /** Name those panels only that the run has. */
  offer() {
    for (const button of this.strip.children) {
      const { dataset } = /** @type {HTMLElement} */ (button);
      /** @type {HTMLElement} */ (button).hidden = !this.has(String(dataset.panel));
    }
  }

  /** @param {string} name Of a panel; that of batches has nothing to show of a single prompt. */
  has(name) {
    return this.boxes.get(name)?.hidden === false;
  }

  /** @param {boolean} isDark */
  light(isDark) {
    this.root.dataset.light = isDark ? "dark" : "light";
  }

  /** @param {string} words The idea of the moment. */
  think(words) {
    write(this.idea, words);
  }

  /**
   * Say a sentence for a while, in presenter mode and after it.
   * @param {string} words
   * @param {{ isLasting?: boolean }} [how] Until something else is said.
   */
  say(words, { isLasting = false } = {}) {
    clearTimeout(this.silencing);
    write(this.words, words);
    this.words.hidden = !words;
    if (words && !isLasting) this.silencing = setTimeout(() => this.say(""), SAID_MS);
  }

  /**
   * What a pointer is at: a panel, and how far across and down it; null where no panel is.
   * @param {PointerEvent} event
   * @returns {[string, number, number] | null}
   */
  pointer(event) {
    if (event.type === "pointerleave") return null;
    const path = event.composedPath();
    for (const [name, box] of this.boxes) {
      if (!path.includes(box)) continue;
      const { left, top, width, height } = box.getBoundingClientRect();
      return [name, share(event.clientX - left, width), share(event.clientY - top, height)];
    }
    return null;
  }

  /** @param {[string, number, number] | null} pointer */
  point(pointer) {
    const box = pointer && this.boxes.get(pointer[0]);
    if (!pointer || !box) {
      this.ring.remove();
      return;
    }
    this.ring.style.left = `${100 * pointer[1]}%`;
    this.ring.style.top = `${100 * pointer[2]}%`;
    if (this.ring.parentElement !== box) box.append(this.ring);
  }

  /** The viewers' link with its code, or nothing again. */
  link() {
    this.card.hidden = !this.card.hidden;
    this.fillCard();
  }

  /** @param {StageData} data What the page knows by now; a link that was waited for is shown. */
  take(data) {
    this.data = data;
    this.fillCard();
  }

  fillCard() {
    this.card.replaceChildren();
    if (this.card.hidden) return;
    this.card.append(make("h3", null, "Follow on your own screen"));
    const { link } = this.data;
    if (!link) {
      this.card.append(make("p", null, "The link comes in a moment."));
      return;
    }
    if (link.code.length) this.card.append(qrCode(link.code, "QR code of the viewers' link"));
    this.card.append(make("p", "address", link.url), make("p", "note", link.note));
  }

  get hasLink() {
    return !this.card.hidden;
  }
}

/**
 * @param {number} length
 * @param {number} whole
 */
function share(length, whole) {
  return whole > 0 ? Math.round(1000 * Math.min(1, Math.max(0, length / whole))) / 1000 : 0;
}
