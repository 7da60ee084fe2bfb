import assert from "node:assert/strict";
import { test } from "node:test";

import {
  after,
  FIRST_PROBE_MS,
  IDLE,
  LONGEST_PROBE_MS,
  TRIES_BEFORE_POLLING,
} from "../../visuals/panel/scripts/follow.js";

const FOLLOW = { type: "follow", isFed: false };
const FED = { type: "follow", isFed: true };

/** Everything to do for some events in turn, and the state after them. */
function run(...events) {
  let state = IDLE;
  const actions = [];
  for (const event of events) {
    const [next, added] = after(state, typeof event === "string" ? { type: event } : event);
    state = next;
    actions.push(...added);
  }
  return { state, actions, last: actions.at(-1), says: actions.flatMap((action) => action.transport ?? []) };
}

const LOST = Array.from({ length: TRIES_BEFORE_POLLING }, () => ["closed", "timer"]).flat();

test("a run is followed over a socket", () => {
  assert.deepEqual(run(FOLLOW).actions, [{ do: "hang up" }, { do: "connect" }]);
});

test("a lost socket is tried again after a pause that grows", () => {
  const { actions } = run(FOLLOW, "closed", "timer", "closed");
  assert.deepEqual(actions.slice(2), [{ do: "wait", ms: 500 }, { do: "connect" }, { do: "wait", ms: 1000 }]);
});

test("a frame makes the pauses short again", () => {
  const { last } = run(FOLLOW, "closed", "timer", "closed", "timer", "message", "closed");
  assert.deepEqual(last, { do: "wait", ms: 500 });
});

test("after four lost sockets the page is asked to feed the panel, and the socket is tried on", () => {
  const { state, says } = run(FOLLOW, ...LOST.slice(0, -1));
  assert.equal(state.mode, "poll");
  assert.deepEqual(says, ["poll"]);
  const { actions } = run(FOLLOW, ...LOST, "closed");
  assert.deepEqual(actions.slice(-3), [
    { do: "wait", ms: FIRST_PROBE_MS },
    { do: "connect" },
    { do: "wait", ms: 2 * FIRST_PROBE_MS },
  ]);
});

test("pauses between tries while the page feeds the panel have an end", () => {
  const { last } = run(FED, ...Array.from({ length: 20 }, () => ["timer", "closed"]).flat());
  assert.deepEqual(last, { do: "wait", ms: LONGEST_PROBE_MS });
});

test("a frame over the socket ends polling, and the page hears of it once", () => {
  const { state, says } = run(FOLLOW, ...LOST, "message", "message", "fed", "fed");
  assert.equal(state.mode, "socket");
  assert.deepEqual(says, ["poll", "restored"]);
});

test("a socket that fails again is polled for again", () => {
  assert.deepEqual(run(FOLLOW, ...LOST, "message", ...LOST).says, ["poll", "restored", "poll"]);
});

test("a page that feeds a panel whose socket works is told so", () => {
  const { state, says } = run(FOLLOW, "message", "fed");
  assert.equal(state.mode, "socket");
  assert.deepEqual(says, ["restored"]);
});

test("a page that feeds a panel without a frame yet is listened to", () => {
  const { state, actions } = run(FOLLOW, "fed");
  assert.equal(state.mode, "poll");
  assert.deepEqual(actions.slice(2), [{ do: "hang up" }, { do: "wait", ms: FIRST_PROBE_MS }]);
});

test("once all of a run is drawn nothing is connected any more", () => {
  assert.deepEqual(run(FOLLOW, "message", "over", "closed", "timer").actions.length, 2);
  assert.deepEqual(run(FED, "over").last, { do: "hang up" });
});

test("another run begins afresh", () => {
  const { state } = run(FOLLOW, "message", "over", FOLLOW);
  assert.deepEqual([state.mode, state.isOver, state.isProven, state.tries], ["socket", false, false, 0]);
});

test("a panel that is gone hangs up and does nothing more", () => {
  const { state, actions } = run(FOLLOW, "leave", "closed", "timer", "message", "fed");
  assert.equal(state.mode, "idle");
  assert.deepEqual(actions.slice(2), [{ do: "hang up" }]);
});
