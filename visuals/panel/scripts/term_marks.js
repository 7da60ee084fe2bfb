// Which terms of the page are marked, and where. The underlines are painted by the browser over
// ranges of text: nothing that Streamlit draws is changed, and nothing has to follow what moves.

/** @import { TermWords } from "./term_words.js" */
/** @import { Mark } from "./types.js" */

import { isSeen, isStreaming, placesIn } from "./term_places.js";

export const PAUSE_MS = 250; // after the last change of the page
const NAME = "term";
const DRAWN = "term-drawn"; // in a chart's picture, where no line is painted under a text
const POINTED = "term-pointed";
const STYLE = `
::highlight(${NAME}) {
  text-decoration: underline dotted color-mix(in srgb, currentcolor 60%, transparent) 1px;
  text-underline-offset: 0.25em;
}
::highlight(${DRAWN}) { background-color: light-dark(#e4ebf0, #2a343d); }
@supports (-moz-appearance: none) { /* Firefox paints no line there */
  ::highlight(${NAME}) { background-color: color-mix(in srgb, currentcolor 9%, transparent); }
}
::highlight(${POINTED}) { background-color: light-dark(#cfe6f5, #1d4a66); }
`;
// A panel's own small window gives way to the card: one explanation at a time.
const ALONE = ".tip { visibility: hidden; }";
const PASSING = "[data-testid=stProgress], [data-testid=stToast], [data-testid=stStatusWidget], .vg-tooltip";
// What a panel sets when its words are others for a while: its run's state, and its first step.
const ATTRIBUTES = {
  attributes: true,
  attributeOldValue: true,
  attributeFilter: ["data-state", "data-steps"],
  subtree: true,
};

export class TermMarks {
  /**
   * @param {TermWords} words
   * @param {(marks: Mark[]) => void} tell Called when other terms are marked, in reading order.
   */
  constructor(words, tell) {
    this.words = words;
    this.tell = tell;
    /** @type {Mark[]} */
    this.marks = [];
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.sheet = new CSSStyleSheet();
    this.sheet.replaceSync(STYLE);
    document.adoptedStyleSheets.push(this.sheet);
    /** @type {WeakMap<ShadowRoot, boolean>} Whether frames were changing it when it was last seen. */
    this.known = new WeakMap();
    this.page = new MutationObserver((records) => {
      if (!records.every(isPassing)) this.soon();
    });
    this.panels = new MutationObserver((records) => {
      if (records.some(isNews)) this.soon();
    });
    this.page.observe(document.body, { childList: true, characterData: true, subtree: true });
    this.soon = this.soon.bind(this);
    for (const name of ["click", "keyup"]) document.addEventListener(name, this.soon, { passive: true });
    window.addEventListener("resize", this.soon);
    this.soon();
  }

  /** Look again once the page has not changed for a moment. */
  soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look(), PAUSE_MS);
  }

  /** Mark each term where it first stands, in what no press sets off if it stands there at all. */
  look() {
    const { places, roots } = placesIn(document.body);
    for (const root of roots) this.follow(root);
    /** @type {Map<string, Mark>} */
    const first = new Map();
    for (const isPressed of [false, true]) {
      places.forEach((place, order) => {
        if (place.isPressed !== isPressed) return;
        for (const found of this.words.find(place.node.data)) {
          if (!first.has(found.key) && isSeen(place.node)) first.set(found.key, { ...found, node: place.node, order });
        }
      });
    }
    const marks = [...first.values()].sort((one, other) => one.order - other.order || one.from - other.from);
    if (!isSame(marks, this.marks)) this.tell(marks);
    this.marks = marks;
    paint(NAME, marks.filter((mark) => !isDrawn(mark)));
    paint(DRAWN, marks.filter(isDrawn));
  }

  /**
   * Hear of a panel's changes; of those that frames make only of what says that they have ended.
   * @param {ShadowRoot} root
   */
  follow(root) {
    const isGoing = isStreaming(root);
    if (this.known.get(root) === isGoing) return;
    if (!this.known.has(root)) {
      root.adoptedStyleSheets.push(this.sheet);
      this.page.observe(root, { childList: true });
    }
    this.known.set(root, isGoing);
    const words = isGoing ? {} : { childList: true, characterData: true };
    this.panels.observe(root, { ...ATTRIBUTES, ...words });
  }

  /**
   * The mark under a point of the window.
   * @param {number} x
   * @param {number} y
   */
  at(x, y) {
    const top = deepest(x, y);
    return this.marks.find(({ node, ...ends }) => {
      if (!node.isConnected || !top?.contains(node.parentNode)) return false;
      return [...rangeOf({ node, ...ends }).getClientRects()].some(
        (box) => x >= box.left && x <= box.right && y >= box.top && y <= box.bottom,
      );
    });
  }

  /** @param {Mark | null} mark The one that is explained. */
  point(mark) {
    paint(POINTED, mark ? [mark] : []);
    this.sheet.replaceSync(mark ? STYLE + ALONE : STYLE);
  }

  close() {
    clearTimeout(this.timer);
    this.page.disconnect();
    this.panels.disconnect();
    for (const name of ["click", "keyup"]) document.removeEventListener(name, this.soon);
    window.removeEventListener("resize", this.soon);
    const rest = document.adoptedStyleSheets.filter((sheet) => sheet !== this.sheet);
    document.adoptedStyleSheets = rest;
    for (const name of [NAME, DRAWN, POINTED]) paint(name, []);
  }
}

/** @param {Mark} mark */
function isDrawn({ node }) {
  return node.parentElement instanceof SVGElement;
}

/** @param {Mark} mark */
export function rangeOf({ node, from, to }) {
  const range = document.createRange();
  const { length } = node.data;
  range.setStart(node, Math.min(from, length));
  range.setEnd(node, Math.min(to, length));
  return range;
}

/**
 * Whether only what comes and goes has changed, as a bar of progress does twice a second.
 * @param {MutationRecord} record
 */
function isPassing({ target }) {
  const element = target instanceof Element ? target : target.parentElement;
  return element !== null && element.closest(PASSING) !== null;
}

/**
 * Whether words may be others: an attribute is really another one, or there for the first time, or
 * something changed that no frame did.
 * @param {MutationRecord} record
 */
function isNews({ type, target, attributeName, oldValue }) {
  const root = target.getRootNode();
  if (type !== "attributes") return !(root instanceof ShadowRoot && isStreaming(root));
  if (attributeName === "data-steps") return oldValue === null;
  return attributeName !== null && /** @type {Element} */ (target).getAttribute(attributeName) !== oldValue;
}

/**
 * @param {Mark[]} marks
 * @param {Mark[]} others
 */
function isSame(marks, others) {
  return (
    marks.length === others.length &&
    marks.every(({ key, node, from }, at) => {
      const other = others[at];
      return key === other.key && node === other.node && from === other.from;
    })
  );
}

/**
 * @param {string} name
 * @param {Mark[]} marks
 */
function paint(name, marks) {
  if (!("highlights" in CSS)) return; // an older browser, where the card opens and nothing is underlined
  const ranges = marks.map(
    ({ node, from, to }) =>
      new StaticRange({ startContainer: node, startOffset: from, endContainer: node, endOffset: to }),
  );
  CSS.highlights.set(name, new Highlight(...ranges));
}

/**
 * What is seen at a point, within shadow roots too.
 * @param {number} x
 * @param {number} y
 */
function deepest(x, y) {
  let seen = document.elementFromPoint(x, y);
  for (let within = seen?.shadowRoot; within; within = seen?.shadowRoot) {
    const next = within.elementFromPoint(x, y);
    if (!next || next === seen) break;
    seen = next;
  }
  return seen;
}
