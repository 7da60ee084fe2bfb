import assert from "node:assert/strict";
import { test } from "node:test";

import "./dom.js";
import { open } from "../../visuals/panel/scripts/loading_line.js";

const BASE = new URL("https://host/prefix/");

/** The loading line on this status, in a parent of its own. */
function lineWith(status) {
  const parent = document.createElement("div");
  const component = {
    data: { entry: "loading_line.js", scripts: "", status_address: "live/engine", status },
    parentElement: parent,
  };
  return { parent, component, line: open(component, { base: BASE }) };
}

test("the line says what is loaded and how far, and follows the server until it has ended", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const asked = [];
  const answers = [
    { stage: "reading weights", ratio: 0.5, error: "" },
    { stage: "", ratio: null, error: "" },
  ];
  context.mock.method(globalThis, "fetch", async (address) => {
    asked.push(String(address));
    return { ok: true, json: async () => answers.shift() };
  });
  const { parent, line } = lineWith({ stage: "fetching", ratio: 0.1, error: "" });
  const words = parent.querySelector("[role=status]");
  const track = parent.querySelector("[role=progressbar]");
  assert.match(words.textContent, /fetching/);
  assert.equal(track.getAttribute("aria-valuenow"), "10");

  await next(context);
  assert.match(words.textContent, /reading weights/);
  assert.equal(track.getAttribute("aria-valuenow"), "50");
  await next(context);

  assert.equal(parent.querySelector(".line").hidden, true);
  assert.equal(line.poll.isFollowing, false);
  assert.deepEqual(asked, ["https://host/prefix/live/engine", "https://host/prefix/live/engine"]);
});

test("a server that does not answer leaves the line as it was, and is asked again", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  let count = 0;
  context.mock.method(globalThis, "fetch", async () => {
    count += 1;
    throw new TypeError("no server");
  });
  const { parent, line } = lineWith({ stage: "fetching", ratio: null, error: "" });

  await next(context);
  await next(context);

  assert.equal(count, 2);
  assert.match(parent.textContent, /fetching/);
  line.close();
  assert.equal(parent.childElementCount, 0);
});

test("an error is said as text, without a bar", () => {
  const { parent } = lineWith({ stage: "", ratio: null, error: "no <b>room</b>" });

  assert.match(parent.textContent, /could not be loaded: no <b>room<\/b>/);
  assert.equal(parent.querySelector("b"), null);
  assert.equal(parent.querySelector(".track").hidden, true);
});

/** Let the pause between two questions pass, and what follows it happen. */
async function next(context) {
  context.mock.timers.tick(500);
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}
