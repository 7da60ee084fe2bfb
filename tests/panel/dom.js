// A page for the tests of modules that draw: elements by jsdom, and doubles of what it lacks.

import { JSDOM } from "jsdom";

const { window } = new JSDOM("<!doctype html>", { url: "https://host/prefix/", pretendToBeVisual: true });

/** A pen that draws nothing. */
const pen = new Proxy(
  {},
  {
    get(target, name) {
      if (name in target) return target[name];
      if (name === "measureText") return (text) => ({ width: 7 * text.length });
      if (name === "getImageData") return () => ({ data: [0, 0, 0, 255] });
      return () => undefined;
    },
  },
);

class FakeObserver {
  observe() {}
  disconnect() {}
}

class FakeImage {
  constructor(width, height) {
    this.data = new Uint8ClampedArray(4 * width * height);
  }
}

/** The sockets that were opened, each with what was sent over it. */
export class FakeSocket {
  static OPEN = 1;
  static all = [];

  /** The newest socket of a run. */
  static of(runId) {
    return FakeSocket.all.findLast(({ url }) => url.includes(`/live/run/${runId}?`));
  }

  constructor(url) {
    this.url = String(url);
    this.readyState = FakeSocket.OPEN;
    this.sent = [];
    FakeSocket.all.push(this);
  }

  send(text) {
    this.sent.push(text);
  }

  close() {
    this.readyState = 3;
    this.onclose?.();
  }

  receive(frame) {
    this.onmessage({ data: JSON.stringify(frame) });
  }
}

Object.assign(globalThis, {
  window,
  document: window.document,
  Element: window.Element,
  HTMLElement: window.HTMLElement,
  DOMRect: window.DOMRect,
  CustomEvent: window.CustomEvent,
  UIEvent: window.UIEvent,
  getComputedStyle: window.getComputedStyle,
  requestAnimationFrame: (call) => setTimeout(call),
  ResizeObserver: FakeObserver,
  ImageData: FakeImage,
  WebSocket: FakeSocket,
});
window.matchMedia = () => ({ matches: true });
window.HTMLCanvasElement.prototype.getContext = () => pen;
Object.defineProperty(window.document, "fonts", { value: { ready: Promise.resolve() } });
Object.defineProperty(window.HTMLElement.prototype, "clientWidth", { get: () => 400 });
Object.defineProperty(window.HTMLElement.prototype, "clientHeight", { get: () => 300 });

const LONGEST_WAIT_MS = 60_000; // for a machine that has other things to do

/** Wait until something holds; what does not come true in time fails the test. */
export async function until(holds) {
  const end = performance.now() + LONGEST_WAIT_MS;
  while (!holds()) {
    if (performance.now() > end) throw new Error(`it did not come true in time: ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
