// The texts of a page that are its own, in reading order: through shadow roots, and past whatever
// a person or a model wrote (which says `translate="no"`), fields, code and charts' data.

/** @typedef {{ node: Text, isPressed: boolean }} Place A text; pressed: in what a press sets off. */
/** @typedef {{ places: Place[], roots: ShadowRoot[] }} Places */

const TEXT_NODE = 3; // Node.TEXT_NODE and Node.ELEMENT_NODE, which the tests lack
const ELEMENT_NODE = 1;
const SKIPPED = new Set(
  "script style noscript template code pre textarea input select option iframe canvas object video".split(" "),
);
// Streamlit's: texts of others or that quote them, tables of data, what comes and goes, its own menus.
const SKIPPED_PARTS = new Set([
  "stText", "stDataFrame", "stCode", "stAlert", "stProgress", "stToast", "stHeader", "stSidebar",
  "stStatusWidget", "stFileChip", "stIconMaterial", "stTooltipContent",
]);
const SKIPPED_ROLES = new Set(["tooltip", "img"]); // what comes and goes; icons, whose texts are their names
const PRESSED = new Set(["button", "a", "summary"]);
const PRESSED_ROLES = new Set(["tab", "radio", "button", "option", "menuitem", "checkbox", "switch"]);
const CHART_TITLES = ".role-axis-title, .role-legend-title, .role-title-text, .role-title-subtitle";
// What stays while a run's frames change all other words of its panels.
const STEADY = "h3, h4, .label, .legend, .more, .word";

/**
 * @param {Element} top
 * @returns {Places}
 */
export function placesIn(top) {
  /** @type {Places} */
  const found = { places: [], roots: [] };
  visit(top, found, { isPressed: false, isSteadyOnly: false });
  return found;
}

/**
 * @param {Node} parent
 * @param {Places} found
 * @param {{ isPressed: boolean, isSteadyOnly: boolean }} how
 */
function visit(parent, found, how) {
  for (let child = parent.firstChild; child; child = child.nextSibling) {
    if (child.nodeType === TEXT_NODE) {
      const node = /** @type {Text} */ (child);
      if (!how.isSteadyOnly && /\w/.test(node.data)) found.places.push({ node, isPressed: how.isPressed });
    } else if (child.nodeType === ELEMENT_NODE) {
      enter(/** @type {HTMLElement} */ (child), found, how);
    }
  }
}

/**
 * @param {HTMLElement} element
 * @param {Places} found
 * @param {{ isPressed: boolean, isSteadyOnly: boolean }} how
 */
function enter(element, found, { isPressed, isSteadyOnly }) {
  const tag = element.localName;
  const role = element.getAttribute("role") ?? "";
  if (SKIPPED.has(tag) || SKIPPED_ROLES.has(role)) return;
  if (element.hidden || element.getAttribute("translate") === "no") return;
  if (tag === "svg") {
    const titles = element.classList.contains("marks") ? element.querySelectorAll(CHART_TITLES) : [];
    for (const title of titles) visit(title, found, { isPressed: true, isSteadyOnly });
    return;
  }
  const { testid, baseweb } = element.dataset;
  if (baseweb === "select" || (testid && SKIPPED_PARTS.has(testid))) return;
  const how = {
    isPressed: isPressed || PRESSED.has(tag) || PRESSED_ROLES.has(role),
    isSteadyOnly: isSteadyOnly && !element.matches(STEADY),
  };
  const root = element.shadowRoot;
  if (!root) return visit(element, found, how);
  found.roots.push(root);
  visit(root, found, { ...how, isSteadyOnly: isStreaming(root) });
}

/**
 * Whether frames of a run are changing a panel.
 * @param {ShadowRoot} root
 */
export function isStreaming(root) {
  return root.querySelector('.state[data-state="running"]') !== null;
}

/**
 * Whether a reader can see this text: it takes room, and is not there for screen readers alone.
 * @param {Text} node
 */
export function isSeen(node) {
  const holder = node.parentElement;
  if (!holder?.checkVisibility({ visibilityProperty: true })) return false;
  for (const element of [holder, holder.parentElement]) {
    const box = element?.getBoundingClientRect();
    if (box && (box.width <= 1 || box.height <= 1)) return false;
  }
  return true;
}

const PRESSED_AROUND = [...PRESSED, ...[...PRESSED_ROLES].map((role) => `[role="${role}"]`)].join(", ");

/**
 * Whether a text stands in what a press sets off.
 * @param {Text} node
 */
export function isPressedWith({ parentElement }) {
  return parentElement !== null && parentElement.closest(PRESSED_AROUND) !== null;
}
