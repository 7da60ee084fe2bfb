import assert from "node:assert/strict";
import { test } from "node:test";

import { serverBase, untilLoaded } from "../../visuals/panel/scripts/loader.js";
import { socketAddress } from "../../visuals/panel/scripts/run_link.js";

test("the server is where the page is, a proxy's path included", () => {
  for (const [address, base] of [
    ["http://host:8501/", "http://host:8501/"],
    ["http://host:8501/?run=abc#top", "http://host:8501/"],
    ["https://host/prefix/", "https://host/prefix/"],
    ["https://host/prefix/roofline?x=1", "https://host/prefix/"],
  ]) {
    assert.equal(serverBase(address, undefined).href, base);
  }
});

test("where the page was told where its server is, it is there", () => {
  assert.equal(serverBase("https://host/a/roofline/", "https://host/a/").href, "https://host/a/");
  assert.equal(serverBase("https://host/a/roofline", "https://host/a").href, "https://host/a/");
});

test("sockets keep the prefix and take the page's security", () => {
  const address = socketAddress(new URL("https://host/prefix/"), "run", "a b", { k: "x&y", from: "3" });
  assert.equal(address.href, "wss://host/prefix/live/run/a%20b?k=x%26y&from=3");
  assert.equal(socketAddress(new URL("http://host/"), "attention", "r", {}).href, "ws://host/live/attention/r");
});

test("what does not come is tried again, each time at another address, after a pause", async () => {
  const tried = [];
  const paused = [];
  const failures = [];
  const loaded = await untilLoaded(
    async (number) => {
      tried.push(number);
      if (number < 2) throw new Error(`attempt ${number}`);
      return "modules";
    },
    { failed: (error) => failures.push(error.message), pause: async (ms) => void paused.push(ms) },
  );
  assert.equal(loaded, "modules");
  assert.deepEqual(tried, [0, 1, 2]);
  assert.deepEqual(failures, ["attempt 0", "attempt 1"]);
  assert.deepEqual(paused, [500, 1000]);
});

test("nothing is tried for a panel that is gone", async () => {
  let isOver = false;
  const loaded = await untilLoaded(() => Promise.reject(new Error("no")), {
    failed: () => (isOver = true),
    pause: async () => {},
    isOver: () => isOver,
  });
  assert.equal(loaded, null);
});
