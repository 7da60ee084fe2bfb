import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";

import { FakeSocket } from "./dom.js";
import { presentingOf } from "../../visuals/panel/scripts/presenting.js";
import { darkSquares, qrCode } from "../../visuals/panel/scripts/qr_code.js";

const NAMES = ["tokens", "mask", "kv"];
const IDEAS = NAMES.map((name) => ({ name, title: name.toUpperCase(), prefill: `${name} fed`, decode: `${name} decoded` }));
const RUN = { run_id: "a", token: "t" };

let presenting;
let place;

beforeEach(() => {
  FakeSocket.all.length = 0;
});

afterEach(() => {
  presenting.close();
  place.root.remove();
  mock.timers.reset();
});

function open(role, { on = false, panels = [], says = "", link = null } = {}) {
  const root = document.createElement("div");
  root.className = "tbt";
  const head = document.createElement("div");
  head.className = "head-line";
  root.append(head);
  const boxes = new Map(NAMES.map((name) => [name, document.createElement("section")]));
  root.append(...boxes.values());
  document.body.append(root);
  const calls = { changed: mock.fn(), redraw: mock.fn(), tell: mock.fn() };
  place = { root, boxes, base: new URL("https://host/prefix/"), ...calls };
  const stage = { role, address: "live/present", ideas: IDEAS, on, panels, says, link };
  presenting = presentingOf({ ...RUN, stage }, place);
}

const socket = () => FakeSocket.all.at(-1);
const sent = () => socket().sent.map((text) => JSON.parse(text));
const isOver = () => place.root.classList.contains("presented");
const shown = () => NAMES.filter((name) => place.boxes.get(name).classList.contains("shown"));
const words = () => place.root.querySelector(".said").textContent;
const idea = () => place.root.querySelector(".idea").textContent;
const record = (more = {}) => ({ presents: true, holds: false, run: RUN, panels: ["mask"], dark: false, pointer: null, ...more });

function press(key, more = {}, target = document.body) {
  target.dispatchEvent(new window.KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, composed: true, ...more }));
}

test("a page that neither presents nor follows has none of it", () => {
  assert.equal(presentingOf(RUN, {}), null);
  open("presenter");
});

test("F takes the presentation, and again leaves it; the page is told both", () => {
  open("presenter");
  assert.equal(FakeSocket.all.length, 0);

  press("f");
  assert.equal(isOver(), true);
  assert.equal(socket().url, "wss://host/prefix/live/present?as=presenter");
  socket().onopen();
  assert.deepEqual(sent(), [{ do: "take", ...RUN, panels: [], dark: true }]); // the test's pen is black
  socket().receive(record({ holds: true, panels: ["kv", "mask"] }));
  assert.deepEqual(shown(), ["mask", "kv"]);
  assert.equal(place.root.dataset.light, "light");
  const own = socket();
  press("F");

  assert.equal(isOver(), false);
  assert.deepEqual(JSON.parse(own.sent.at(-1)), { do: "leave" });
  assert.deepEqual(place.tell.mock.calls.map(({ arguments: [isOn] }) => isOn), [true, false]);
  assert.equal(place.root.querySelector(".controls"), null);
  assert.equal(place.root.hasAttribute("style"), false);
});

test("the button on the page does what F does", () => {
  open("presenter");

  place.root.querySelector(".opener").click();

  assert.equal(isOver(), true);
});

test("an address that asks for it opens it, with its panels and what is wrong with it", () => {
  open("presenter", { on: true, panels: ["kv"], says: "no such panel" });

  assert.deepEqual(shown(), ["kv"]);
  assert.equal(words(), "no such panel");
  assert.equal(place.tell.mock.callCount(), 0);
});

test("keys ask the server, which alone changes what is shown", () => {
  open("presenter", { on: true });
  socket().receive(record({ holds: true, panels: ["tokens"] }));

  press(" ");
  press("PageUp");
  press("2", { code: "Digit2" });
  press("3", { code: "Digit3", shiftKey: true });
  press("9", { code: "Digit9" });
  press("d");

  assert.deepEqual(sent(), [
    { do: "step" },
    { do: "back" },
    { do: "show", panels: ["mask"] },
    { do: "show", panels: ["tokens", "kv"] },
    { do: "show", dark: true },
  ]);
  assert.deepEqual(shown(), ["tokens"]);
});

test("keys that are typed into a field, or that a picture has used, are its own", () => {
  open("presenter", { on: true });
  socket().receive(record({ holds: true }));
  const field = document.createElement("textarea");
  place.root.append(field);

  press("f", {}, field);
  press(" ", {}, field);
  place.boxes.get("mask").addEventListener("keydown", (event) => event.preventDefault());
  press("ArrowLeft", {}, place.boxes.get("mask"));

  assert.equal(isOver(), true);
  assert.deepEqual(sent(), []);
});

test("the strip names the panels and chooses them", () => {
  open("presenter", { on: true });
  socket().receive(record({ holds: true, panels: ["mask"] }));
  const strip = [...place.root.querySelectorAll(".panel-strip button")];

  assert.deepEqual(strip.map(({ textContent }) => textContent), ["1 TOKENS", "2 MASK", "3 KV"]);
  assert.deepEqual(strip.map((button) => button.getAttribute("aria-pressed")), ["false", "true", "false"]);
  strip[2].dispatchEvent(new window.MouseEvent("click", { bubbles: true, shiftKey: true }));
  assert.deepEqual(sent(), [{ do: "show", panels: ["mask", "kv"] }]);
});

test("the run that is presented takes the place of the page's own until the mode is left", () => {
  open("presenter", { on: true });
  assert.equal(presenting.run, undefined);

  socket().receive(record({ holds: true, run: { run_id: "b", token: "u" } }));
  assert.deepEqual(presenting.run, { run_id: "b", token: "u" });
  press("Escape");

  assert.equal(presenting.run, undefined);
});

test("another run of the presenter's page is shown to all", () => {
  open("presenter", { on: true });
  socket().receive(record({ holds: true }));

  presenting.call({ ...presenting.data, run_id: "b", token: "u" });

  assert.deepEqual(sent(), [{ do: "show", run_id: "b", token: "u" }]);
});

test("another item of a playlist is shown with the panel that it begins with", () => {
  open("presenter", { on: true, panels: ["kv"] });
  socket().receive(record({ holds: true, panels: ["kv"] }));

  const stage = { ...presenting.data.stage, panels: ["mask"] };
  for (const run_id of ["b", "c"]) presenting.call({ ...RUN, run_id, stage });

  assert.deepEqual(sent(), [{ do: "show", ...RUN, run_id: "b", panels: ["mask"] }, { do: "show", ...RUN, run_id: "c" }]);
});

test("a page whose address was changed follows it", () => {
  open("presenter");
  const page = (on) => ({ ...presenting.data, stage: { ...presenting.given, on } });

  presenting.call(page(true));
  assert.equal(isOver(), true);
  presenting.call(page(false));

  assert.equal(isOver(), false);
});

test("a viewer follows a presenter as soon as there is one: panels, light, ring and idea", () => {
  open("viewer");
  assert.equal(socket().url, "wss://host/prefix/live/present?as=viewer");
  socket().receive({ presents: false });
  assert.equal(isOver(), false);

  socket().receive(record({ panels: ["kv"], dark: true, pointer: ["kv", 0.25, 0.5] }));
  presenting.update({ step: { phase: "decode", T: 1, L: 9 } });

  assert.equal(isOver(), true);
  assert.deepEqual(shown(), ["kv"]);
  const ring = place.boxes.get("kv").querySelector(".ring");
  assert.deepEqual([ring.style.left, ring.style.top], ["25%", "50%"]);
  assert.equal(idea(), "kv decoded");
  assert.deepEqual(place.tell.mock.calls.map(({ arguments: [isOn] }) => isOn), [true]);
  assert.equal(place.root.querySelector(".panel-strip"), null);
  socket().receive(record({ panels: ["kv"], pointer: null }));
  assert.equal(place.root.querySelector(".ring"), null);
});

test("a viewer who tries to steer is refused by the server, and the sentence is shown", () => {
  open("viewer", { on: true });
  socket().receive(record());

  press(" ");
  press("f");
  press("Escape");
  assert.deepEqual(sent(), [{ do: "step" }]);
  socket().receive({ says: "only the presenter steps" });

  assert.equal(words(), "only the presenter steps");
  assert.equal(isOver(), true);
});

test("a viewer whose presenter leaves is told once and goes on with the run", () => {
  open("viewer", { on: true });
  socket().receive(record());

  socket().receive({ presents: false });

  assert.equal(isOver(), false);
  assert.match(words(), /^The presenter has left\./);
  assert.deepEqual(place.tell.mock.calls.map(({ arguments: [isOn] }) => isOn), [false]);
  socket().receive(record());
  assert.equal(words(), "");
});

test("a presenter who was taken over from follows, and does not take it back by itself", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  open("presenter", { on: true });
  socket().receive(record({ holds: true }));
  socket().receive({ says: "somebody else presents" });
  socket().receive(record({ panels: ["kv"] }));
  assert.deepEqual(shown(), ["kv"]);

  socket().close();
  mock.timers.tick(1000);
  socket().onopen();

  assert.equal(FakeSocket.all.length, 2);
  assert.deepEqual(sent(), []);
});

test("a server that does not answer is said, and a presenter takes up again what was shown", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  open("presenter", { on: true });
  socket().receive(record({ holds: true, panels: ["kv"], dark: true }));
  socket().close();
  mock.timers.tick(1000);
  socket().close();
  assert.match(words(), /does not answer/);

  mock.timers.tick(1000);
  socket().onopen();
  socket().receive(record({ holds: true, panels: ["kv"] }));

  assert.deepEqual(sent(), [{ do: "take", ...RUN, panels: ["kv"], dark: true }]);
  assert.equal(words(), "");
});

test("the pointer is ringed at once here and sent to the others", () => {
  open("presenter", { on: true });
  socket().receive(record({ holds: true }));
  const box = place.boxes.get("mask");
  box.getBoundingClientRect = () => ({ left: 100, top: 50, width: 200, height: 100 });

  box.dispatchEvent(new window.MouseEvent("pointermove", { bubbles: true, clientX: 150, clientY: 150 }));

  assert.deepEqual(sent(), [{ do: "point", pointer: ["mask", 0.25, 1] }]);
  assert.notEqual(box.querySelector(".ring"), null);
  assert.equal(place.root.classList.contains("moved"), true);
});

test("the viewers' link is shown with its code, or with why nobody else can open it", () => {
  const url = "http://10.0.0.7/?watch=1";
  open("presenter", { on: true });
  const card = place.root.querySelector(".card");
  press("v");
  assert.match(card.textContent, /comes in a moment/);
  const knows = (link) => presenting.call({ ...presenting.data, stage: { ...presenting.given, link } });
  knows({ url, note: "", code: ["10", "01"] }); // shown without another press
  assert.equal(card.querySelector(".address").textContent, url);
  assert.notEqual(card.querySelector("canvas.code"), null);
  press("Escape");
  assert.equal(card.hidden, true);
  assert.equal(isOver(), true, "Escape closes the card first");
  knows({ url, note: "why", code: [] });
  press("v");
  assert.equal(card.querySelector("canvas"), null);
  assert.equal(card.querySelector(".note").textContent, "why");
});

test("a code's canvas has a pixel for each square and a margin that stays light", () => {
  open("presenter");
  const canvas = qrCode(["10", "01"], "code");
  assert.deepEqual(darkSquares(["10", "01"]), [[0, 0], [1, 1]]);
  assert.deepEqual([canvas.width, canvas.height], [10, 10]);
});
