import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";

import { FakeSocket, until } from "./dom.js";
import { LivePanel } from "../../visuals/panel/scripts/live_panel.js";

const TIMEOUT = { timeout: 90_000 };
const CHARTS = [
  ...["prefill_step_times", "decode_step_times", "cache_growth", "cache_layers", "tokens_per_layer"],
  ...["utilization", "power", "roofline_step", "roofline_linear", "roofline_attention"],
  ...["entropy_by_step", "slot_timeline"],
];
const SPECS = Object.fromEntries(CHARTS.map((name) => [name, { data: { name } }]));

/** A chart library whose first tries at one chart fail. */
class FakeVega {
  constructor(failures = 0, failing = "entropy_by_step") {
    this.failures = failures;
    this.failing = failing;
    this.drawn = [];
  }

  embed(_node, spec) {
    if (this.failures > 0 && spec.data.name === this.failing) {
      this.failures -= 1;
      throw new Error("no chart");
    }
    const view = {
      data: (name, rows) => this.drawn.push([name, rows.length]),
      runAsync: async () => view,
      width: () => view,
      height: () => view,
    };
    return { view, finalize: () => undefined };
  }
}

let panel;
let said;
let log;

beforeEach(() => {
  said = [];
  log = mock.method(console, "error", () => undefined);
});

afterEach(() => {
  panel.close();
  mock.restoreAll();
});

function component(runId, { state = "queued", frame, panels, stage } = {}) {
  return {
    data: { panels, stage, run_id: runId, token: "t", label: "", state, frame, vega: "live/vega/1.js", specs: SPECS, explanations: {} },
    parentElement: document.body,
    setStateValue: (name, value) => said.push([name, value]),
  };
}

function open(runId, { vega = new FakeVega(), ...rest } = {}) {
  panel = new LivePanel(component(runId, rest), {
    base: new URL("https://host/prefix/"),
    untilLoaded: async () => async (node, spec) => vega.embed(node, spec),
  });
  return FakeSocket.of(runId);
}

function frame(state, { final = false, from = 0, to = 1, rows = {} } = {}) {
  const run = { state, final, message: "", ended: "", stage: null, stage_ratio: null, queue_position: null };
  return { run, from, to, total: to, rows };
}

const states = () => said.filter(([name]) => name === "state").map(([, value]) => value);

test("a frame is drawn, acknowledged, and its state said to the page once", TIMEOUT, async () => {
  const socket = open("a");

  socket.receive(frame("paused"));
  await until(() => states().length);
  socket.receive(frame("paused", { from: 1, to: 2 }));
  await until(() => socket.sent.length === 2);

  assert.equal(socket.url, "wss://host/prefix/live/run/a?k=t&from=0");
  for (const said of socket.sent) assert.match(said, /^a \d+$/);
  assert.deepEqual(states(), ["paused"]);
});

test("a held run is acknowledged once the page is quiet, with its prefill shown", TIMEOUT, async () => {
  const socket = open("a");
  const held = model(frame("running", { to: 3 }), [[0, 3]]);
  held.run.held = true;
  const header = panel.guards[0].panel;

  socket.receive(held);
  await until(() => header.state.textContent === "starting when the page is quiet");
  assert.equal(header.prefill.classList.contains("active"), false);
  assert.deepEqual(socket.sent, []);
  await until(() => socket.sent.length);

  assert.equal(header.state.textContent, "running");
  assert.equal(header.prefill.textContent.includes("feeding 3 tokens"), true);
  assert.match(socket.sent[0], /^a \d+$/);
  assert.deepEqual(states(), []);
});

test("a panel that is closed while its run is held says no more", TIMEOUT, async () => {
  const socket = open("a");
  const held = frame("running", { to: 3 });
  held.run.held = true;

  socket.receive(held);
  await until(() => panel.guards[0].panel.state.textContent.startsWith("starting"));
  panel.close();
  await new Promise((resolve) => setTimeout(resolve, 400));

  assert.deepEqual(socket.sent, []);
});

test("a run that was over before it was shown says nothing to the page", TIMEOUT, async () => {
  const socket = open("a", { state: "done" });

  socket.receive(frame("done", { final: true }));
  await until(() => socket.sent.length);
  await new Promise((resolve) => setTimeout(resolve, 100));

  assert.deepEqual(said, []);
});

test("the state of a run that is not shown any more is not said", TIMEOUT, async () => {
  const first = open("a");
  let go = () => {};
  panel.guards[0].panel.update = () => new Promise((resolve) => (go = resolve));
  const isDrawing = mock.method(panel.guards[0].panel, "update");
  first.receive(frame("running"));
  await until(() => isDrawing.mock.callCount());

  panel.call(component("b"));
  delete panel.guards[0].panel.update;
  go();
  FakeSocket.of("b").receive(frame("loading"));
  await until(() => states().length);

  assert.deepEqual(states(), ["loading"]);
  assert.deepEqual(first.sent, []);
});

test("a panel that throws says so, is logged once, and stops no other", TIMEOUT, async () => {
  const socket = open("a");
  const [header, broken, ...others] = panel.guards;
  broken.panel.update = () => {
    throw new Error("no");
  };
  const last = mock.method(others.at(-1).panel, "update");

  socket.receive(frame("running"));
  await until(() => socket.sent.length === 1);
  socket.receive(frame("paused", { from: 1, to: 2 }));
  await until(() => socket.sent.length === 2);

  assert.equal(broken.note.hidden, false);
  assert.ok(broken.panel.box.contains(broken.note));
  assert.equal(header.panel.state.textContent, "paused");
  assert.equal(last.mock.callCount(), 2);
  assert.equal(log.mock.callCount(), 1);
});

test("another run may mend a panel that threw", TIMEOUT, () => {
  open("a");
  panel.guards[1].failed(new Error("no"));

  panel.call(component("b"));

  assert.equal(panel.guards[1].note.hidden, true);
});

test("a chart that could not be made says so and is made the next time", TIMEOUT, async () => {
  const vega = new FakeVega(1);
  const socket = open("a", { vega });
  const rows = { entropy_by_step: { mode: "append", columns: ["k"], rows: [[1], [2]] } };

  socket.receive(frame("running", { rows }));
  const box = document.querySelector(".panel-next");
  await until(() => /chart could not be drawn; trying again/.test(box.textContent));
  await until(() => vega.drawn.length);

  assert.deepEqual(vega.drawn, [["entropy_by_step", 2]]);
  assert.doesNotMatch(box.textContent, /trying again/);
  assert.equal(log.mock.callCount(), 1);
});

test("without a socket the page's frames are drawn, and it hears how far they go", TIMEOUT, async () => {
  open("a", { frame: frame("running", { to: 3 }) });

  await until(() => said.some(([name]) => name === "cursor"));

  assert.deepEqual(said.filter(([name]) => name === "cursor"), [["cursor", 3]]);
});

test("attention weights are asked for once a socket works", TIMEOUT, async () => {
  open("a", { frame: frame("running", { to: 3 }) });
  const box = document.querySelector(".panel-mask");
  const click = (name) => [...box.querySelectorAll("button")].find(({ textContent }) => textContent === name).click();
  const asked = () => FakeSocket.all.some(({ url }) => url.includes("/live/attention/a?"));
  click("weights");
  assert.match(box.textContent, /which this connection does not have/);
  assert.equal(asked(), false);

  panel.link.connect();
  FakeSocket.of("a").receive(frame("running", { from: 3, to: 4 }));
  await until(asked);

  assert.doesNotMatch(box.textContent, /which this connection does not have/);
  await until(() => said.some(([name, value]) => name === "transport" && value === "restored"));
  click("mask");
});

const model = (shown, first_fed) => ({
  ...shown,
  model: {
    ...{ id: "m", dtype: "float32", device: "cpu", attention: { layers: [], heads: 1 }, matrices: [], batch: null },
    ...{ first_fed, requests: [{ id: "r0", prompt_tokens: 2414, max_new_tokens: 1 }] },
  },
});
const chip = () => [...panel.guards[0].panel.prefill.children].map((node) => node.textContent).join(" ");
const readings = (at_s) => ({ utilization: { mode: "merge", columns: ["k", "at_s"], rows: [[0, at_s]] } });

test("a prefill says how long it has gone on, also to who comes later", TIMEOUT, async () => {
  const socket = open("a");

  socket.receive(model({ ...frame("running", { to: 2414, rows: readings(12.5) }) }, [[0, 2414]]));
  await until(() => socket.sent.length);

  assert.match(chip(), /PREFILL feeding 2,414 tokens, \d\d s so far/);
  socket.receive(frame("failed", { final: true, to: 2414 }));
  await until(() => !chip().includes("feeding"));
  assert.equal(panel.guards[0].panel.ticking, undefined);
});

test("a prefill that this viewer saw begin counts from there, and not from a pause before it", TIMEOUT, async () => {
  const socket = open("a");

  socket.receive(model(frame("paused", { to: 9, rows: readings(500) }), [[0, 9]]));
  await until(() => socket.sent.length);
  socket.receive(frame("running", { from: 9, to: 9 }));
  await until(() => chip().includes("feeding"));

  assert.doesNotMatch(chip(), /50\d s/);
});

test("a run whose roofs have come is drawn anew from its beginning", TIMEOUT, async () => {
  const socket = open("a", { state: "done" });
  socket.receive(frame("done", { final: true, to: 3 }));
  await until(() => socket.sent.length);
  assert.equal(panel.run.cursor, 3);

  panel.again();

  const next = FakeSocket.of("a");
  assert.notEqual(next, socket);
  assert.equal(next.url, "wss://host/prefix/live/run/a?k=t&from=0");
  next.receive(frame("done", { final: true, to: 3 }));
  await until(() => next.sent.length);
  assert.equal(panel.run.cursor, 3);
});

test("a page that names panels is shown those below the header, and no others", TIMEOUT, async () => {
  const socket = open("a", { panels: ["mask"] });

  socket.receive(frame("paused"));
  await until(() => states().length);

  assert.equal(panel.guards.length, 2);
  assert.equal(panel.root.classList.contains("some"), true);
  assert.equal(panel.root.querySelectorAll(".panel").length, 1);
  assert.notEqual(panel.root.querySelector(".panel-mask"), null);
  assert.deepEqual(states(), ["paused"]);
});

test("a page that presents has all panels, and may name others later", TIMEOUT, () => {
  const stage = { role: "presenter", address: "live/present", ideas: [], on: false, panels: [], says: "", link: null };
  open("a", { panels: ["mask"], stage });
  const shown = () => [...panel.boxes.keys()].filter((name) => !panel.boxes.get(name).classList.contains("unnamed"));
  assert.deepEqual(shown(), ["mask"]);

  panel.call(component("a", { panels: ["kv"], stage }));
  assert.deepEqual(shown(), ["kv"]);
  panel.call(component("a", { stage }));
  assert.equal(shown().length, panel.boxes.size);
  assert.equal(panel.root.classList.contains("some"), false);
});

test("a page that names none is shown all", TIMEOUT, () => {
  open("a");

  assert.equal(panel.root.classList.contains("some"), false);
  assert.notEqual(panel.root.querySelector(".panel-kv"), null);
});
