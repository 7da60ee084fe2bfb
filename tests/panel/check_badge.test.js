import assert from "node:assert/strict";
import { test } from "node:test";

import "./dom.js";
import { open } from "../../visuals/panel/scripts/check_badge.js";

const BASE = new URL("https://host/prefix/");

/** The badge on this status, in a parent of its own. */
function badgeWith(status) {
  const parent = document.createElement("div");
  const data = { entry: "check_badge.js", scripts: "", status_address: "live/check", page_address: "check", status };
  return { parent, badge: open({ data, parentElement: parent }, { base: BASE }) };
}

test("the badge follows the server until nothing changes any more, and links to the page", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const asked = [];
  const answers = [
    { model: "tiny", state: "going", words: "being checked here, 2 of 6", is_changing: true },
    { model: "tiny", state: "passed", words: "checked here: <b>ids</b>", is_changing: false },
  ];
  context.mock.method(globalThis, "fetch", async (address) => {
    asked.push(String(address));
    return { ok: true, json: async () => answers.shift() };
  });
  const { parent, badge } = badgeWith({ model: "", state: "none", words: "", is_changing: true });
  const link = parent.querySelector("a");
  assert.equal(parent.querySelector(".line").hidden, true);

  await next(context);
  assert.equal(parent.querySelector(".line").hidden, false);
  assert.equal(link.textContent, "being checked here, 2 of 6");
  await next(context);
  await next(context);

  assert.equal(link.textContent, "checked here: <b>ids</b>");
  assert.equal(parent.querySelector("b"), null);
  assert.equal(link.dataset.state, "passed");
  assert.equal(link.href, "https://host/prefix/check");
  assert.deepEqual(asked, ["https://host/prefix/live/check", "https://host/prefix/live/check"]);
  badge.close();
  assert.equal(parent.childElementCount, 0);
});

test("a server that does not answer leaves the badge as it was", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  context.mock.method(globalThis, "fetch", async () => {
    throw new TypeError("no server");
  });
  const { parent, badge } = badgeWith({ model: "tiny", state: "going", words: "being checked", is_changing: true });

  await next(context);

  assert.equal(parent.querySelector("a").textContent, "being checked");
  badge.close();
});

/** Let the pause between two questions pass, and what follows it happen. */
async function next(context) {
  context.mock.timers.tick(3000);
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}
