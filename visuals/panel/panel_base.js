// What the parts of the live panel share: elements, theme, and the rows of all charts.
// Text from prompts and models only ever goes through textContent.

const NONE = "\u2013";
const COLOURS = { prefill: "#0072B2", decode: "#D55E00", kv: "#009E73", odd: "#e6009e" }; // odd: a weight that is not a number
const MAX_ROWS = 800;

function make(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined && text !== null) node.textContent = text;
  return node;
}

function group(number) {
  return Number(number).toLocaleString("en-GB");
}

function percentText(ratio) {
  if (ratio === null || ratio === undefined) return NONE;
  const pct = ratio * 100;
  if (pct >= 99.95) return "100 %";
  if (pct >= 10) return pct.toFixed(1) + " %";
  return pct >= 0.01 ? pct.toPrecision(3) + " %" : "< 0.01 %";
}

// The end of an axis that grows in steps: 16, 24, 32, 48, 64, ... (visuals/axes.py says the same).
function axisEnd(largest, least = 16) {
  let end = least;
  while (end < largest) {
    if (end * 3 >= largest * 2) return Math.floor((end * 3) / 2);
    end *= 2;
  }
  return end;
}

function strideFor(count, limit) {
  let stride = 1;
  while (count > limit * stride) stride *= 2;
  return stride;
}

// Rows of every so many steps, and of the last one.
function picked(rows) {
  const steps = new Set(rows.map((row) => row.k));
  if (!steps.size) return rows;
  const perStep = Math.max(1, Math.floor(rows.length / steps.size));
  const stride = strideFor(steps.size, Math.max(1, Math.floor(MAX_ROWS / perStep)));
  if (stride === 1) return rows;
  const last = rows[rows.length - 1].k;
  return rows.filter((row) => row.k % stride === 0 || row.k === last);
}

// One row for each group of neighbouring steps of one kind, with their median step time.
function medians(rows) {
  const stride = strideFor(rows.length, MAX_ROWS);
  if (stride === 1) return rows;
  const groups = new Map();
  for (const row of rows) {
    const key = Math.floor(row.k / stride) + row.kind;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(row);
  }
  return [...groups.values()].map((members) => {
    const times = members.map((row) => row.ms).sort((a, b) => a - b);
    const middle = (times[(times.length - 1) >> 1] + times[times.length >> 1]) / 2;
    return { ...members[0], to: members[members.length - 1].to, ms: middle };
  });
}

// All named rows of one run, and which of them a chart has not drawn yet.
class Store {
  constructor() {
    this.rows = new Map();
    this.versions = new Map(); // they only grow, so that a chart sees that rows were taken away
  }

  reset() {
    for (const name of this.rows.keys()) this.versions.set(name, this.version(name) + 1);
    this.rows.clear();
  }

  take(tables) {
    for (const [name, { mode, columns, rows }] of Object.entries(tables || {})) {
      const made = rows.map((cells) =>
        Object.fromEntries(columns.map((column, place) => [column, cells[place]])),
      );
      const had = this.rows.get(name) || [];
      const added = mode === "merge" ? made.filter((row) => !had.length || row.k > had[had.length - 1].k) : made;
      if (mode === "merge" && !added.length) continue;
      if (mode === "replace") this.rows.set(name, made);
      else this.rows.set(name, had), had.push(...added);
      this.versions.set(name, (this.versions.get(name) || 0) + 1);
    }
  }

  version(name) {
    return this.versions.get(name) || 0;
  }

  drawn(name) {
    const rows = this.rows.get(name) || [];
    const thin = name === "decode_step_times" || name === "prefill_step_times" ? medians : picked;
    const shown = rows.length > 1 && "k" in rows[0] ? thin(rows) : rows;
    return shown.map((row) => ({ ...row }));
  }
}

// The page's theme, read from the variables that Streamlit sets around the component.
function readTheme(node) {
  const style = getComputedStyle(node);
  const value = (name, fallback) => style.getPropertyValue("--st-" + name).trim() || fallback;
  return {
    text: value("text-color", "#31333F"),
    background: value("background-color", "#ffffff"),
    border: value("border-color", "rgba(128,128,128,0.35)"),
    font: value("font", "system-ui, sans-serif"),
  };
}

// A colour with an opacity, for canvases; takes #rgb, #rrggbb and rgb().
function withAlpha(colour, alpha) {
  return `color-mix(in srgb, ${colour} ${Math.round(alpha * 100)}%, transparent)`;
}

// Which token is pointed at; strips and masks light it together.
class Hover {
  constructor() {
    this.listeners = [];
    this.place = null;
  }

  listen(call) {
    this.listeners.push(call);
  }

  point(row, position) {
    const next = position === null ? null : { row, position };
    if (next?.row === this.place?.row && next?.position === this.place?.position) return;
    this.place = next;
    for (const call of this.listeners) call(next);
  }
}

// One small window beside what is pointed at or focused.
class Tip {
  constructor(root) {
    this.root = root;
    this.box = make("div", "tip");
    this.box.setAttribute("role", "tooltip");
    this.box.hidden = true;
    root.append(this.box);
  }

  show(anchor, nodes) {
    this.box.replaceChildren(...nodes);
    this.box.hidden = false;
    const frame = this.root.getBoundingClientRect();
    const spot = anchor.getBoundingClientRect();
    const box = this.box.getBoundingClientRect();
    const left = Math.min(Math.max(0, spot.left - frame.left), Math.max(0, frame.width - box.width));
    const below = spot.bottom - frame.top + 8;
    const isRoomBelow = spot.bottom + 8 + box.height <= window.innerHeight;
    const top = isRoomBelow ? below : spot.top - frame.top - box.height - 8;
    this.box.style.left = left + "px";
    this.box.style.top = Math.max(0, top) + "px";
  }

  hide() {
    this.box.hidden = true;
  }
}

// A panel with a title, its caption of the moment, and a "?" that says what it is.
function makePanel(name, title, explanation) {
  const panel = make("section", "panel panel-" + name);
  const head = make("header", "panel-head");
  const heading = make("h3", null, title);
  const tools = make("div", "tools");
  const help = make("button", "help", "?");
  help.type = "button";
  help.setAttribute("aria-label", "What is this? " + title);
  help.setAttribute("aria-expanded", "false");
  tools.append(help);
  head.append(heading, tools);
  const caption = make("p", "caption", "");
  const body = make("div", "body");
  const more = make("div", "more");
  more.hidden = true;
  for (const [label, text] of [
    ["What you see", explanation?.what],
    ["How it was come by", explanation?.how],
    ["Formula", explanation?.formula],
    ["Source", explanation?.source],
  ]) {
    if (text) more.append(make("h4", null, label), make("p", label === "Formula" ? "formula" : null, text));
  }
  const open = (isOpen) => {
    more.hidden = !isOpen;
    help.setAttribute("aria-expanded", String(isOpen));
  };
  help.addEventListener("click", () => open(more.hidden));
  panel.addEventListener("keydown", (event) => event.key === "Escape" && open(false));
  const wait = make("p", "wait"); // what is waited for, while there is nothing to show
  panel.append(head, caption, body, wait, more);
  return { panel, caption, body, tools, help };
}
