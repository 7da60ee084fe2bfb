import assert from "node:assert/strict";
import { test } from "node:test";

import "./dom.js";
import { PAUSE_MS, TermMarks } from "../../visuals/panel/scripts/term_marks.js";
import { TermWords } from "../../visuals/panel/scripts/term_words.js";
import { expected } from "./expected.js";

const { pattern, forms } = expected.terms;
const terms = Object.entries(forms).map(([key, of]) => ({ key, forms: of, title: key, sentence: "", chapter: "" }));

// What jsdom lacks: the painting, sizes, and what is seen.
Object.assign(globalThis, {
  MutationObserver: window.MutationObserver,
  ShadowRoot: window.ShadowRoot,
  SVGElement: window.SVGElement,
  StaticRange: window.StaticRange,
  CSSStyleSheet: window.CSSStyleSheet,
  CSS: { highlights: new Map() },
  Highlight: class extends Set {
    constructor(...ranges) {
      super(ranges);
    }
  },
});
window.HTMLElement.prototype.checkVisibility = function () {
  return !this.closest("[data-hidden]");
};
window.HTMLElement.prototype.getBoundingClientRect = () => new DOMRect(0, 0, 100, 20);

/** A page with these elements, looked through; and how often that was done. */
async function marked(context, ...children) {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  document.body.replaceChildren(...children);
  const marks = new TermMarks(new TermWords({ pattern, terms, chapters: {} }), () => {});
  const look = context.mock.method(marks, "look");
  const changed = async () => {
    await Promise.resolve(); // observers are called after the script
    await Promise.resolve();
    context.mock.timers.tick(PAUSE_MS);
  };
  await changed();
  context.after(() => marks.close());
  const shown = () => marks.marks.map(({ key, node }) => `${key}: ${node.data}`);
  return { changed, shown, looks: () => look.mock.callCount() };
}

/** @param {string} tag @param {string} text */
function element(tag, text) {
  const node = document.createElement(tag);
  node.textContent = text;
  return node;
}

function painted() {
  return [...CSS.highlights.get("term")].map((range) =>
    range.startContainer.data.slice(range.startOffset, range.endOffset),
  );
}

test("each term is marked once, where it first stands, and no element is changed", async (context) => {
  const first = element("p", "Prefill and decode");
  const { shown } = await marked(context, first, element("p", "Decode again, and TTFT"));

  assert.deepEqual(shown(), ["prefill: Prefill and decode", "decode: Prefill and decode", "ttft: Decode again, and TTFT"]);
  assert.deepEqual(painted(), ["Prefill", "decode", "TTFT"]);
  assert.equal(first.childNodes.length, 1);
});

test("a term in a button is marked only where it stands nowhere else", async (context) => {
  const { shown } = await marked(context, element("button", "linear decode"), element("p", "decode"));

  assert.deepEqual(shown(), ["linear: linear decode", "decode: decode"]);
});

test("what cannot be seen is passed over for the next place", async (context) => {
  const hidden = element("p", "decode");
  hidden.dataset.hidden = "";
  const { shown } = await marked(context, hidden, element("p", "decode, seen"));

  assert.deepEqual(shown(), ["decode: decode, seen"]);
});

test("a page that is drawn anew is marked anew", async (context) => {
  const { changed, shown } = await marked(context, element("p", "decode"));

  document.body.replaceChildren(element("p", "prefill"));
  await changed();

  assert.deepEqual(shown(), ["prefill: prefill"]);
});

test("frames of a run have nothing looked through but its first step and its end", async (context) => {
  const host = document.createElement("div");
  const root = host.attachShadow({ mode: "open" });
  const panel = document.createElement("div");
  const state = element("span", "running");
  state.className = "state";
  state.dataset.state = "running";
  const caption = element("p", "decode");
  caption.className = "caption";
  panel.append(state, element("h3", "K/V cache"), caption);
  root.append(panel);
  const { changed, shown, looks } = await marked(context, host);
  assert.deepEqual(shown(), ["kv_cache: K/V cache"]);

  panel.dataset.steps = "1";
  await changed();
  const before = looks();
  for (let step = 2; step < 30; step += 1) {
    panel.dataset.steps = String(step);
    state.dataset.state = "running";
    caption.firstChild.data = `decode, step ${step}`;
    caption.append(element("span", " prefill"));
    await changed();
  }
  assert.equal(looks(), before);

  state.dataset.state = "done";
  await changed();
  assert.deepEqual(shown(), ["kv_cache: K/V cache", "decode: decode, step 29", "prefill:  prefill"]);

  caption.firstChild.data = "TTFT"; // as when somebody looks at another part of it
  await changed();
  assert.deepEqual(shown(), ["kv_cache: K/V cache", "ttft: TTFT", "prefill:  prefill"]);
});
