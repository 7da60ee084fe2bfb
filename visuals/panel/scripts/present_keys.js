// The keys of presenter mode, without a page: what a press asks for, and which panels are then shown.
// A remote control presses Page Down and Page Up.

/**
 * @typedef {Pick<KeyboardEvent, "key" | "code" | "shiftKey" | "ctrlKey" | "altKey" | "metaKey" | "repeat">} Press
 * @typedef {{ do: "toggle" | "leave" | "step" | "back" | "light" | "link" | "next" | "previous" }
 *   | { do: "panel", number: number, isBeside: boolean }} Asked
 */

/** @type {Map<string, "step" | "back" | "leave" | "light" | "link">} */
const KEYS = new Map([
  [" ", "step"],
  ["PageDown", "step"],
  ["ArrowRight", "step"],
  ["PageUp", "back"],
  ["ArrowLeft", "back"],
  ["Escape", "leave"],
  ["d", "light"],
  ["v", "link"],
]);

/**
 * What a press asks for; null for nothing. A key that is held down asks once.
 * @param {Press} press
 * @param {boolean} isOn Presenter mode is on; else only the key that switches it on counts.
 * @returns {Asked | null}
 */
export function askedBy(press, isOn) {
  if (press.ctrlKey || press.altKey || press.metaKey || press.repeat) return null;
  const key = press.key.length === 1 ? press.key.toLowerCase() : press.key;
  if (key === "f") return { do: "toggle" };
  if (!isOn) return null;
  // By its place: some keyboards have digits with Shift only.
  const digit = /^Digit([1-9])$/.exec(press.code) ?? /^([1-9])$/.exec(press.key);
  if (digit) return { do: "panel", number: Number(digit[1]), isBeside: press.shiftKey };
  // Of a playlist; N and B alone are the page's own keys for its items.
  if (press.shiftKey && key === "PageDown") return { do: "next" };
  if (press.shiftKey && key === "PageUp") return { do: "previous" };
  const asked = KEYS.get(key);
  return asked ? { do: asked } : null;
}

/**
 * The panels after one was asked for: alone, or beside the newest of those shown. One that is shown
 * beside another and asked for beside it goes.
 * @param {string[]} panels Shown, one or two.
 * @param {string} name
 * @param {boolean} isBeside
 */
export function chosenPanels(panels, name, isBeside) {
  if (!isBeside) return [name];
  const others = panels.filter((panel) => panel !== name);
  if (others.length < panels.length) return others.length ? others : panels;
  return [...others.slice(-1), name];
}

/**
 * The idea of a panel with the numbers of the step shown; empty before the first step.
 * @param {{ prefill: string, decode: string } | undefined} idea
 * @param {{ phase: "prefill" | "decode", T: string, L: string } | null} step
 */
export function ideaWords(idea, step) {
  if (!idea || !step) return "";
  return idea[step.phase].replaceAll("{T}", step.T).replaceAll("{L}", step.L);
}

/** How far a page is enlarged, so that a room can read it: its smallest type is then 24 of 1920. */
const WIDTH = 1000;
const LEAST_HEIGHT = 480;

/**
 * @param {number} width Of the window.
 * @param {number} height
 */
export function enlargement(width, height) {
  return Math.max(1, Math.min(width / WIDTH, height / LEAST_HEIGHT));
}

/** Sends the newest of many values, ten times a second at most. */
export class Paced {
  /**
   * @param {(value: unknown) => void} send
   * @param {number} everyMs
   */
  constructor(send, everyMs) {
    this.send = send;
    this.everyMs = everyMs;
    /** @type {{ value: unknown } | null} */
    this.next = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
  }

  /** @param {unknown} value */
  say(value) {
    this.next = { value };
    if (this.timer === undefined) this.flush();
  }

  flush() {
    this.timer = undefined;
    if (!this.next) return;
    const { value } = this.next;
    this.next = null;
    this.send(value);
    this.timer = setTimeout(() => this.flush(), this.everyMs);
  }

  close() {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.next = null;
  }
}
