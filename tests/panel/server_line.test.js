import assert from "node:assert/strict";
import { test } from "node:test";

import "./dom.js";
import { open, TRIED_EVERY_MS, TRIES_BEFORE_SAYING } from "../../visuals/panel/scripts/server_line.js";

const BASE = new URL("https://host/prefix/");

const news = (server, engine = "") => ({ server, engine });

class Socket {
  /** @type {Socket[]} */
  static made = [];

  constructor(address) {
    this.address = String(address);
    Socket.made.push(this);
  }

  close() {
    this.isClosed = true;
  }

  says(server, engine = "") {
    this.onmessage({ data: JSON.stringify(news(server, engine)) });
  }

  drops() {
    this.onclose();
  }
}

/** The line on a page that the server "first" drew, and what is needed to talk to it. */
function opened(context) {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  Socket.made = [];
  globalThis.WebSocket = Socket;
  const parent = document.createElement("div");
  const data = { entry: "server_line.js", scripts: "", server_address: "live/server", drawn: news("first") };
  const line = open({ data, parentElement: parent }, { base: BASE });
  const host = parent.querySelector("[role=alert]");
  return { line, host, data, parent, socket: () => Socket.made.at(-1) };
}

test("nothing is said while the server is there", (context) => {
  const { host, socket } = opened(context);
  assert.equal(socket().address, "wss://host/prefix/live/server");

  socket().says("first");

  assert.equal(host.hidden, true);
});

test("a server that is gone is said within five seconds", (context) => {
  const { host, socket } = opened(context);
  socket().says("first");

  let waitedMs = 0;
  for (let tries = 0; tries < TRIES_BEFORE_SAYING; tries += 1) {
    socket().drops();
    if (!host.hidden) break;
    context.mock.timers.tick(TRIED_EVERY_MS);
    waitedMs += TRIED_EVERY_MS;
  }

  assert.equal(host.hidden, false);
  assert.match(host.textContent, /does not answer/);
  assert.equal(host.querySelector("button").hidden, true);
  assert.ok(waitedMs < 5000);
});

test("a server that was started anew is said, with a way on", (context) => {
  const { host, socket } = opened(context);
  socket().says("first");
  socket().drops();
  context.mock.timers.tick(TRIED_EVERY_MS);

  socket().says("second");

  assert.match(host.textContent, /was restarted/);
  assert.equal(host.querySelector("button").hidden, false);
});

test("a socket that closed once is no news where the same server answers", (context) => {
  const { host, socket } = opened(context);
  socket().says("first");
  socket().drops();
  assert.equal(host.hidden, true);
  context.mock.timers.tick(TRIED_EVERY_MS);
  socket().says("first");

  assert.equal(host.hidden, true);
});

test("nothing is said any more once the server that is there has drawn the page", (context) => {
  const { line, host, data, parent, socket } = opened(context);
  socket().says("second");
  assert.equal(host.hidden, false);

  line.call({ data: { ...data, drawn: news("second") }, parentElement: parent });

  assert.equal(host.hidden, true);
});

test("an engine that died is said while the server goes on", (context) => {
  const { host, socket } = opened(context);
  socket().says("first", "The engine process ended unexpectedly while it was idle.");

  assert.match(host.textContent, /engine process ended/);
  assert.equal(host.querySelector("button").hidden, true);
  socket().says("first");
  assert.equal(host.hidden, true);
});

test("a line that is closed connects no more", (context) => {
  const { line, socket } = opened(context);
  const last = socket();

  line.close();
  last.drops();
  context.mock.timers.tick(TRIED_EVERY_MS);

  assert.equal(last.isClosed, true);
  assert.equal(Socket.made.length, 1);
});
