import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import "./dom.js";
import { Stage } from "../../visuals/panel/scripts/stage.js";

let root;
let stage;

before(() => {
  globalThis.UIEvent = window.UIEvent;
  root = document.createElement("div");
  document.body.append(root);
  const data = { role: "presenter", ideas: [], link: null };
  const actions = { choose() {}, press() {}, point() {}, fitted() {} };
  stage = new Stage(root, new Map(), { data, actions });
  stage.open();
});

after(() => {
  stage.close();
  root.remove();
});

const isFocused = () => document.activeElement === root;

test("after a click on a button and a choice in a list the keys are the presentation's again", () => {
  const button = document.createElement("button");
  const list = document.createElement("select");
  root.append(button, list);

  button.focus();
  button.dispatchEvent(new window.MouseEvent("click", { bubbles: true, detail: 1 }));
  assert.equal(isFocused(), true);
  list.focus();
  list.dispatchEvent(new window.MouseEvent("click", { bubbles: true, detail: 1 }));
  assert.equal(isFocused(), false, "its list would close");
  list.dispatchEvent(new window.Event("change", { bubbles: true }));
  assert.equal(isFocused(), true);
});

test("a button that was pressed by a key keeps the focus", () => {
  const button = document.createElement("button");
  root.append(button);

  button.focus();
  button.dispatchEvent(new window.MouseEvent("click", { bubbles: true, detail: 0 }));

  assert.equal(isFocused(), false);
});

test("what lies under the presentation gets no focus", () => {
  const below = document.createElement("input");
  document.body.append(below);

  below.focus();

  assert.equal(isFocused(), true);
  below.remove();
});
