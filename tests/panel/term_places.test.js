import assert from "node:assert/strict";
import { test } from "node:test";

import "./dom.js";
import { isPressedWith, placesIn } from "../../visuals/panel/scripts/term_places.js";

/** The texts of a page that may be marked; what a press sets off has a star. */
function texts(html) {
  const page = document.createElement("div");
  page.innerHTML = html; // eslint-disable-line no-restricted-properties -- this file's own markup
  return placesIn(page).places.map(({ node, isPressed }) => node.data + (isPressed ? "*" : ""));
}

test("what people and models wrote is never looked at, nor code, fields and charts' data", () => {
  assert.deepEqual(
    texts(`<p>ours</p><p translate="no">a prompt <b>of theirs</b></p><pre>theirs</pre><code>theirs</code>
      <textarea>theirs</textarea><div data-testid="stText">theirs</div><div data-baseweb="select">theirs</div>
      <div data-testid="stAlert">it quotes theirs</div><div hidden>not shown</div><div role="tooltip">passes</div>
      <svg class="marks"><g class="role-axis-label"><text>theirs</text></g><g class="role-axis-title"><text>axis</text></g></svg>`),
    ["ours", "axis*"],
  );
});

test("texts come in reading order, and what a press sets off is known", () => {
  assert.deepEqual(texts("<h2>one</h2><button>two</button><div role='tab'><p>three</p></div><p>four</p>"), [
    "one",
    "two*",
    "three*",
    "four",
  ]);
});

test("a press on a text in a button is the button's", () => {
  const page = document.createElement("div");
  page.innerHTML = "<p>one</p><button><b>two</b></button><div role='tab'><p>three</p></div>"; // eslint-disable-line no-restricted-properties -- as above
  const pressed = placesIn(page).places.map(({ node }) => isPressedWith(node));
  assert.deepEqual(pressed, [false, true, true]);
});

/** A page with one panel in a shadow root, in this state. */
function panel(state) {
  const page = document.createElement("div");
  const host = document.createElement("div");
  const inner = document.createElement("div");
  inner.innerHTML = `<span class="state" data-state="${state}">words</span><h3>title</h3><p class="caption">of a step</p>`; // eslint-disable-line no-restricted-properties -- as above
  host.attachShadow({ mode: "open" }).append(inner);
  page.append("before", host, "after");
  return placesIn(page);
}

test("texts of a panel stand where it stands, and its root is found", () => {
  const { places, roots } = panel("done");
  assert.deepEqual(places.map(({ node }) => node.data), ["before", "words", "title", "of a step", "after"]);
  assert.equal(roots.length, 1);
});

test("while a run's frames change a panel only what stays is looked at", () => {
  assert.deepEqual(panel("running").places.map(({ node }) => node.data), ["before", "title", "after"]);
});
