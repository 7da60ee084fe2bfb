import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { until } from "./dom.js";
import { RecordedOrigin } from "../../visuals/panel/scripts/player/recorded_origin.js";

const STOPS = 5;

let origin;
let frames; // that the panel was sent
let draw; // what tells that the newest is drawn
let begun; // how often the panel began anew

function frame(stop) {
  const isEnd = stop === STOPS - 1;
  return {
    run: { state: isEnd ? "done" : "paused", final: isEnd, message: "" },
    ...{ from: stop ? stop + 2 : 0, to: stop + 3, total: stop + 3 },
    ...{ rows: {}, text: [], prompt: [], outputs: [stop] },
  };
}

function open(weights = []) {
  origin = new RecordedOrigin({
    frames: Array.from({ length: STOPS }, (_, stop) => [frame(stop)]),
    weights,
    noWeights: "not here",
  });
  frames = [];
  begun = 0;
  const link = origin.frames({
    receive: (sent, acknowledge) => {
      frames.push(sent);
      draw = acknowledge;
    },
  });
  origin.stops.again = () => {
    begun += 1;
    link.on({ type: "follow", isFed: false });
  };
  link.on({ type: "follow", isFed: false });
  return link;
}

const outputs = () => frames.map((sent) => sent.outputs ?? []);
const states = () => frames.map(({ run }) => run.state);

beforeEach(() => {
  open();
  draw();
});

test("a panel that begins is shown the stop chosen last", () => {
  assert.deepEqual(outputs(), [[0]]);
  assert.deepEqual(states(), ["paused"]);
});

test("one frame is on its way at a time, and the next has all that was missed", () => {
  origin.stops.show(1, true);
  origin.stops.show(2, true);
  origin.stops.show(3, true);
  assert.deepEqual(outputs(), [[0], [1]]);

  draw();

  assert.deepEqual(outputs(), [[0], [1], [2, 3]]);
  assert.deepEqual([frames[2].from, frames[2].to], [4, 6]);
  assert.deepEqual(states(), ["paused", "running", "running"]);
});

test("holding a run says so once, without anything new", () => {
  origin.stops.show(1, true);
  draw();

  origin.stops.show(1, false);
  draw();
  origin.stops.show(1, false);

  assert.deepEqual(states(), ["paused", "running", "paused"]);
  assert.deepEqual([frames[2].from, frames[2].to, frames[2].total], [4, 4, 4]);
  assert.equal(frames[2].outputs, undefined);
});

test("for an earlier stop the panel begins anew and draws all up to there", () => {
  origin.stops.show(4, false);
  draw();
  const late = draw;

  origin.stops.show(2, false);

  assert.equal(begun, 1);
  assert.deepEqual(outputs().at(-1), [0, 1, 2]);
  assert.equal(frames.at(-1).from, 0);
  late(); // of what was sent before: nothing more is sent for it
  assert.equal(frames.length, 3);
});

test("the last stop stands as the run ended, whether it is played or not", () => {
  origin.stops.show(4, true);

  assert.deepEqual(states(), ["paused", "done"]);
  assert.equal(frames[1].run.final, true);
});

test("a panel that is closed is sent nothing", () => {
  origin.stops.on({ type: "leave" });

  origin.stops.show(3, false);

  assert.equal(frames.length, 1);
});

// Attention weights: two prompt queries of two heads at the first step, one more at the second.

const ALL = { layer: 1, head: null, all: true, row: 0 };
const MEAN = { layer: 1, head: null, all: false, row: 0 };
const BODIES = {
  // Base64 of gzip of high bytes, then low ones: 1.0 is 3c00, 0.5 is 3800.
  all: [0x3c00, 0x0000, 0x3800, 0x3800, 0x3c00, 0x0000, 0x0000, 0x3c00, 0x3800, 0x3800, 0x3c00, 0x0000],
  mean: [0x3c00, 0x0000, 0x3800, 0x3800, 0x3c00, 0x3800],
};

async function packed(halves) {
  const bytes = new Uint8Array([...halves.map((half) => half >> 8), ...halves.map((half) => half & 255)]);
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("gzip"));
  return Buffer.from(await new Response(stream).arrayBuffer()).toString("base64");
}

function map(stop, heads, [q0, rows]) {
  const planes = Math.max(1, heads.length);
  const block = { heads, q0, qn: rows, qb: 1, k0: 0, kn: 2, kb: 1, shape: [planes, rows, 2], rest: false };
  return { stop, reason: "", blocks: [block] };
}

async function withWeights() {
  const items = [
    { choice: ALL, note: "a note", maps: [map(1, [0, 1], [0, 2]), map(2, [0, 1], [2, 1])], body: await packed(BODIES.all) },
    { choice: MEAN, note: "", maps: [map(1, [], [0, 2]), map(2, [], [2, 1])], body: await packed(BODIES.mean) },
  ];
  const taken = [];
  const link = open(items);
  const weights = origin.weights((header, body) => taken.push({ ...header, halves: [...new Uint16Array(body)] }));
  weights.open("r", "");
  return { link, weights, taken };
}

const blocks = (taken) => taken.filter(({ kind }) => kind === "blocks");

test("weights come once their queries are stored, and none twice", async () => {
  const { weights, taken } = await withWeights();
  draw();
  await until(() => taken.length);
  assert.deepEqual(taken[0], { kind: "state", choice: ALL, notice: "", note: "a note", reason: "", over: true, reset: true, halves: [] });
  assert.equal(blocks(taken).length, 0);

  origin.stops.show(1, false);
  draw();
  weights.shown();
  origin.stops.show(2, false);
  draw();

  const [first, second] = blocks(taken);
  assert.equal(blocks(taken).length, 2);
  assert.deepEqual(first.halves, BODIES.all.slice(0, 8));
  assert.deepEqual([second.blocks[0].q0, second.halves], [2, BODIES.all.slice(8)]);
});

test("one head is taken out of all heads, and the mean has weights of its own", async () => {
  const { weights, taken } = await withWeights();
  origin.stops.show(2, false);
  draw();
  draw();
  await until(() => blocks(taken).length);

  weights.ask({ capture: { ...MEAN, head: 1 } });
  await until(() => blocks(taken).length === 2);
  weights.ask({ capture: MEAN });
  await until(() => blocks(taken).length === 3);

  const [, head, mean] = blocks(taken);
  assert.deepEqual(head.blocks.map(({ heads, shape }) => [heads, shape]), [[[1], [1, 2, 2]], [[1], [1, 1, 2]]]);
  assert.deepEqual(head.halves, [...BODIES.all.slice(4, 8), ...BODIES.all.slice(10)]);
  assert.deepEqual(mean.halves, BODIES.mean);
});

test("what is not in the page is said, and what is drawn stays", async () => {
  const { weights, taken } = await withWeights();
  draw();
  await until(() => taken.length);

  weights.ask({ capture: { ...MEAN, layer: 7 } });
  weights.ask({ query: 3, head: null });

  assert.equal(taken.length, 2);
  assert.deepEqual([taken[1].notice, taken[1].choice, taken[1].reset], ["not here", ALL, false]);
});

test("a panel that begins anew is told again, from its beginning", async () => {
  const { weights, taken } = await withWeights();
  origin.stops.show(2, false);
  draw();
  draw();
  await until(() => blocks(taken).length);

  weights.open("r", ""); // as the panel does when it is reset
  origin.stops.show(1, false);
  assert.equal(origin.stops.stop, -1);
  draw();
  await until(() => blocks(taken).length === 2);

  assert.deepEqual(blocks(taken)[1].halves, BODIES.all.slice(0, 8));
});
