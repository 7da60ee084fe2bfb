import assert from "node:assert/strict";
import { test } from "node:test";

import { freeAfter, LONGEST_MS, QUIET_MS, TICK_MS, untilQuiet } from "../../visuals/panel/scripts/quiet.js";

/** A page whose timers come late by what `late` says of the moment; frames take 16 ms. */
function page(late = () => 0) {
  let time = 0;
  return {
    time: () => time,
    isHidden: () => false,
    now: () => time,
    after: (call, ms) => {
      const due = time + ms;
      queueMicrotask(() => {
        if (ms > 500) return; // the limit of a frame that comes
        time = due + late(due);
        call();
      });
    },
    drawn: (call) =>
      queueMicrotask(() => {
        time += 16;
        call();
      }),
  };
}

test("a page that draws nothing more is quiet after a moment", async () => {
  const calm = page();
  await untilQuiet(calm);
  assert.equal(calm.time(), 32 + QUIET_MS);
});

test("a busy moment starts the wait anew", async () => {
  const busy = page((due) => (due < 200 ? 100 : 0));
  await untilQuiet(busy);
  assert.ok(busy.time() >= 200 + QUIET_MS);
});

test("a page that is never quiet is waited for a second", async () => {
  const busy = page(() => 100);
  await untilQuiet(busy);
  assert.ok(busy.time() >= LONGEST_MS);
  assert.ok(busy.time() < LONGEST_MS + TICK_MS + 100 + 32);
});

test("a hidden page draws nothing, so nobody waits for it", async () => {
  const hidden = { ...page(), isHidden: () => true };
  await untilQuiet(hidden);
  assert.equal(hidden.time(), 0);
});

test("a page that is hidden meanwhile is not waited for either", async () => {
  const calm = page();
  let asked = 0;
  await untilQuiet({ ...calm, isHidden: () => (asked += 1) > 2 });
  assert.ok(calm.time() < 32 + QUIET_MS);
});

test("no frame ever comes in a tab that is covered: the limit holds", async () => {
  const covered = page();
  const never = { ...covered, drawn: () => {}, after: (call, ms) => queueMicrotask(() => covered.after(call, Math.min(ms, 500))) };
  await untilQuiet(never);
});

test("time is free until a timer comes late", () => {
  assert.equal(freeAfter(0, TICK_MS), TICK_MS);
  assert.equal(freeAfter(60, TICK_MS + 5), 95);
  assert.equal(freeAfter(60, TICK_MS + 40), 0);
});
