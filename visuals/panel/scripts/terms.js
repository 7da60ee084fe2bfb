// The terms of the page: each underlined where it first stands, with a card that opens by pointer,
// tap and keyboard. For the keyboard there is one stop at the top of the page: arrow keys go from
// term to term, and the page follows.

/** @import { Mark, Term, TermsComponent, TermsFile } from "./types.js" */

import { make, makeButton } from "./elements.js";
import { numberOf } from "./run_numbers.js";
import { answer } from "./status_poll.js";
import { TermCard } from "./term_card.js";
import { rangeOf, TermMarks } from "./term_marks.js";
import { isPressedWith } from "./term_places.js";
import { TermWords } from "./term_words.js";

const REST_MS = 140; // a pointer that only passes opens nothing
const LEAVE_MS = 260; // to come from the term to its card
const RETRY_MS = 3000;
const HEADER = 64; // pixels at the top that Streamlit's own bar covers
const ROOM_BELOW = 180; // for a card
/** @type {Record<string, number>} */
const MOVES = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/**
 * Explain the page's terms.
 * @param {TermsComponent} component
 * @param {object} how
 * @param {URL} how.base Where the server is.
 * @param {TermsFile} [how.file] The glossary, where the page itself holds it.
 */
export function open(component, { base, file }) {
  return new Terms(component, base, file ?? null);
}

class Terms {
  /**
   * @param {TermsComponent} component
   * @param {URL} base
   * @param {TermsFile | null} file
   */
  constructor(component, base, file) {
    this.component = component;
    this.base = base;
    this.file = file;
    this.isClosed = false;
    this.host = make("div", "terms");
    this.host.setAttribute("translate", "no"); // not part of the page that is looked through
    this.bar = make("div", "term-bar");
    this.bar.setAttribute("role", "toolbar");
    this.bar.setAttribute("aria-label", "Terms explained on this page");
    this.card = new TermCard(this.host);
    this.host.prepend(this.bar);
    component.parentElement.append(this.host);
    /** @type {TermMarks | null} */
    this.marks = null;
    /** @type {Mark | null} The one that the card is about. */
    this.shown = null;
    this.isByKey = false;
    this.pressedKey = ""; // of the term in the button that was pressed, while the pointer rests there
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.bar.addEventListener("keydown", (event) => this.move(event));
    this.host.addEventListener("focusout", (event) => this.left(event));
    this.card.box.addEventListener("pointerenter", () => clearTimeout(this.timer));
    this.card.box.addEventListener("pointerleave", () => this.hideSoon());
    this.ending = new AbortController();
    const how = { signal: this.ending.signal, passive: true };
    document.addEventListener("pointermove", (event) => this.pointed(event), how);
    document.addEventListener("click", (event) => this.pressed(event), how);
    document.addEventListener("scroll", () => this.follow(), { ...how, capture: true });
    document.addEventListener("keydown", (event) => this.escaped(event), { ...how, capture: true });
    void this.load();
  }

  async load() {
    const address = new URL(this.component.data.terms, this.base);
    const file = this.file ?? (await answer(address));
    if (this.isClosed) return;
    if (file) {
      this.words = new TermWords(file);
      this.marks = new TermMarks(this.words, (marks) => this.list(marks));
    } else {
      this.timer = setTimeout(() => void this.load(), RETRY_MS);
    }
  }

  /** @param {TermsComponent} component */
  call(component) {
    this.component = component;
  }

  /**
   * One button for each term that is marked, in reading order; those that stay keep their focus.
   * @param {Mark[]} marks
   */
  list(marks) {
    const known = new Map(this.buttons.map((button) => [button.dataset.term, button]));
    const buttons = marks.map(({ key }) => known.get(key) ?? this.button(key));
    const current = buttons.find((button) => button.tabIndex === 0) ?? buttons[0];
    for (const button of buttons) button.tabIndex = button === current ? 0 : -1;
    const isOther = buttons.length !== known.size || buttons.some((button, at) => this.bar.children[at] !== button);
    const focused = buttons.find((button) => button.matches(":focus"));
    if (isOther) this.bar.replaceChildren(...buttons);
    if (isOther) focused?.focus({ preventScroll: true });
    if (this.shown && !marks.some(({ key }) => key === this.shown?.key)) this.hide();
  }

  /** @returns {HTMLButtonElement[]} */
  get buttons() {
    return /** @type {HTMLButtonElement[]} */ ([...this.bar.children]);
  }

  /** @param {string} key */
  button(key) {
    const button = makeButton(this.term(key).title, () => this.go(key));
    button.dataset.term = key;
    button.setAttribute("aria-describedby", this.card.box.id);
    button.addEventListener("focus", () => this.go(key));
    return button;
  }

  /** @param {string} key */
  term(key) {
    return /** @type {Term} */ (this.words?.byKey.get(key));
  }

  /** @param {string} key The term that the keyboard is at. */
  go(key) {
    const mark = this.marks?.marks.find((one) => one.key === key);
    if (!mark) return;
    for (const button of this.buttons) button.tabIndex = button.dataset.term === key ? 0 : -1;
    const { top, bottom } = rangeOf(mark).getBoundingClientRect();
    const isInView = top >= HEADER && bottom + ROOM_BELOW <= window.innerHeight;
    if (!isInView) mark.node.parentElement?.scrollIntoView({ block: "center", inline: "nearest" });
    this.isByKey = true;
    this.show(mark);
  }

  /** @param {KeyboardEvent} event */
  move(event) {
    const { buttons } = this;
    const at = buttons.findIndex((button) => button.matches(":focus"));
    const step = MOVES[event.key];
    /** @type {Record<string, number>} */
    const ends = { Home: 0, End: buttons.length - 1 };
    const next = ends[event.key] ?? (step && (at + step + buttons.length) % buttons.length);
    if (next === undefined || at < 0) return;
    event.preventDefault();
    event.stopPropagation(); // arrow keys steer other things as well
    buttons[next].focus({ preventScroll: true });
  }

  /** @param {FocusEvent} event */
  left({ relatedTarget }) {
    if (relatedTarget instanceof Node && this.host.contains(relatedTarget)) return;
    if (this.isByKey) this.hide();
  }

  /** @param {PointerEvent} event */
  pointed({ clientX, clientY, pointerType, buttons }) {
    if (pointerType === "touch" || buttons) return;
    clearTimeout(this.timer);
    if (this.isOnCard(clientX, clientY)) return;
    this.timer = setTimeout(() => {
      const mark = this.marks?.at(clientX, clientY);
      if (mark?.key !== this.pressedKey) this.pressedKey = "";
      if (mark && !this.pressedKey) this.show(mark);
      else if (!this.isByKey) this.hideSoon();
    }, REST_MS);
  }

  /**
   * A tap or a click on a term; beside it the card closes. One on a button is the button's: a card
   * would cover what it opens.
   * @param {MouseEvent} event
   */
  pressed(event) {
    if (event.composedPath().includes(this.host)) return;
    const mark = this.marks?.at(event.clientX, event.clientY);
    this.pressedKey = mark && isPressedWith(mark.node) ? mark.key : "";
    if (mark && !this.pressedKey) this.show(mark);
    else this.hide();
  }

  /** @param {KeyboardEvent} event */
  escaped({ key }) {
    if (key === "Escape") this.hide();
  }

  /** @param {Mark} mark */
  show(mark) {
    const spot = rangeOf(mark).getBoundingClientRect();
    const term = this.term(mark.key);
    const { tour } = this.component.data;
    const address = tour && new URL(`${tour}?step=${term.chapter}`, this.base).href;
    const at = this.buttons.findIndex((button) => button.dataset.term === mark.key) + 1;
    const keys = this.isByKey ? `${at} of ${this.buttons.length}: arrow keys for the next, Esc closes` : "";
    const chapter = this.words?.chapters[term.chapter] ?? "";
    this.card.say(term, { number: numberOf(mark.key), address, chapter, keys });
    this.shown = mark;
    this.marks?.point(mark);
    this.card.show(spot);
  }

  /** The page moves under the card. */
  follow() {
    if (!this.shown) return;
    const spot = rangeOf(this.shown).getBoundingClientRect();
    if (spot.bottom < 0 || spot.top > window.innerHeight) this.hide();
    else this.card.show(spot);
  }

  hideSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.hide(), LEAVE_MS);
  }

  hide() {
    clearTimeout(this.timer);
    this.isByKey = false;
    this.shown = null;
    this.marks?.point(null);
    this.card.hide();
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  isOnCard(x, y) {
    const box = this.card.box.getBoundingClientRect();
    return this.card.isOpen && x >= box.left && x <= box.right && y >= box.top && y <= box.bottom;
  }

  close() {
    this.isClosed = true;
    this.ending.abort();
    this.hide();
    this.marks?.close();
    this.host.remove();
  }
}
