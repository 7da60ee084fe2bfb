// Elements, colours and the theme. Text from prompts and models only ever goes through textContent.

/** @import { Explanation, Theme } from "./types.js" */

const TEXT_NODE = 3; // Node.TEXT_NODE, which the tests lack
const HELP_WIDTH = 368; // pixels, with the gap beside a panel

export const COLOURS = {
  prefill: "#0072B2",
  decode: "#D55E00",
  kv: "#009E73",
  notANumber: "#e6009e",
};

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {string | null} [className]
 * @param {string | number | null} [text]
 * @returns {HTMLElementTagNameMap[T]}
 */
export function make(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined && text !== null) node.textContent = String(text);
  return node;
}

/**
 * Have a node say something. Text that is the same stays, and other text is changed in place, since
 * a new text node has its whole line made anew.
 * @param {HTMLElement} node
 * @param {string} text
 */
export function write(node, text) {
  const only = node.childNodes.length === 1 ? node.firstChild : null;
  if (only?.nodeType !== TEXT_NODE) node.textContent = text;
  else if (only.nodeValue !== text) only.nodeValue = text;
}

/**
 * @param {string} text
 * @param {() => void} press
 */
export function makeButton(text, press) {
  const button = make("button", null, text);
  button.type = "button";
  button.addEventListener("click", press);
  return button;
}

/** @param {string} label What is chosen, for those who cannot see it. */
export function makeChoice(label) {
  const choice = make("div", "choice");
  choice.setAttribute("role", "group");
  choice.setAttribute("aria-label", label);
  return choice;
}

/**
 * @param {string} value
 * @param {string} text
 */
export function makeOption(value, text) {
  const option = make("option", null, text);
  option.value = value;
  return option;
}

/**
 * The page's theme, from the variables that Streamlit sets around the component.
 * @param {Element} node
 * @returns {Theme}
 */
export function readTheme(node) {
  const style = getComputedStyle(node);
  /** @type {(name: string, fallback: string) => string} */
  const value = (name, fallback) => style.getPropertyValue("--st-" + name).trim() || fallback;
  return {
    text: value("text-color", "#31333F"),
    background: value("background-color", "#ffffff"),
    border: value("border-color", "rgba(128,128,128,0.35)"),
    font: value("font", "system-ui, sans-serif"),
  };
}

/**
 * A colour with an opacity, for canvases; takes #rgb, #rrggbb and rgb().
 * @param {string} colour
 * @param {number} alpha
 */
export function withAlpha(colour, alpha) {
  return `color-mix(in srgb, ${colour} ${Math.round(alpha * 100)}%, transparent)`;
}

let enlarged = 1; // how far presenter mode enlarges the page

/** @param {number} by */
export function enlarge(by) {
  enlarged = by;
}

/** How many of the screen's pixels there are to one of the page's. */
export function pixelRatio() {
  return (window.devicePixelRatio || 1) * enlarged;
}

/** Whether the page is enlarged, which makes Vega's canvases coarse, and its SVG not. */
export function isEnlarged() {
  return enlarged !== 1;
}

/**
 * A canvas's pen at the screen's own resolution, on a cleared canvas.
 * @param {HTMLCanvasElement} canvas
 * @param {{ width: number, height: number, scale: number }} size In CSS pixels, and how many of the
 *   screen's there are to one.
 */
export function clearedPen(canvas, { width, height, scale }) {
  const across = Math.round(width * scale);
  const down = Math.round(height * scale);
  if (canvas.width !== across || canvas.height !== down) {
    canvas.width = across;
    canvas.height = down;
  }
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

/**
 * A panel with a title, its caption of the moment, and a "?" that says what it is.
 * @param {string} name
 * @param {string} title
 * @param {Explanation | undefined} explanation
 */
export function makePanel(name, title, explanation) {
  const panel = make("section", "panel panel-" + name);
  const head = make("header", "panel-head");
  const heading = make("h3", null, title);
  const tools = make("div", "tools");
  const more = make("div", "more");
  more.hidden = true;
  /** @param {boolean} isOpen */
  const open = (isOpen) => {
    if (isOpen) more.dataset.side = sideFor(panel);
    more.hidden = !isOpen;
    help.setAttribute("aria-expanded", String(isOpen));
  };
  const help = makeButton("?", () => open(Boolean(more.hidden)));
  help.className = "help";
  help.setAttribute("aria-label", "What is this? " + title);
  help.setAttribute("aria-expanded", "false");
  tools.append(help);
  head.append(heading, tools);
  const caption = make("p", "caption", "");
  const body = make("div", "body");
  more.append(...explained(explanation));
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape") open(false);
  });
  const wait = make("p", "wait"); // what is waited for, while there is nothing to show
  panel.append(head, caption, body, wait, more);
  return { panel, caption, body, tools, help };
}

/**
 * Where an explanation has room without covering the chart that it explains.
 * @param {HTMLElement} panel
 * @returns {"right" | "left" | "below"}
 */
function sideFor(panel) {
  const own = panel.getBoundingClientRect();
  const all = (panel.parentElement ?? panel).getBoundingClientRect();
  if (all.right - own.right >= HELP_WIDTH) return "right";
  return own.left - all.left >= HELP_WIDTH ? "left" : "below";
}

/**
 * @param {Explanation | undefined} explanation
 * @returns {HTMLElement[]}
 */
function explained(explanation) {
  /** @type {[string, string | undefined][]} */
  const parts = [
    ["What you see", explanation?.what],
    ["How to read it", explanation?.read],
    ["Where the numbers come from", explanation?.how],
    ["Formula", explanation?.formula],
    ["Source", explanation?.source],
  ];
  return parts.flatMap(([label, text]) =>
    text ? [make("h4", null, label), make("p", label === "Formula" ? "formula" : null, text)] : [],
  );
}
