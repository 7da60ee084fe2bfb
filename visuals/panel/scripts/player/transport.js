// The controls of a page that plays a run: play and hold, one step back and on, any step, the speed.

/** @import { Pace } from "./pace.js" */

import { make, makeButton, makeOption, write } from "../elements.js";
import { group } from "../numbers.js";

const LEAST_MS = 100; // between two stops that are drawn; the others are jumped over
const ADDRESSED = /^#step=(\d{1,9})$/;
/** Where a press of these keys means something else. */
const OWN_KEYS = "input, select, textarea, canvas, .strip";
const PRESSED = "button, a, summary";

export class Transport {
  /**
   * @param {{ pace: Pace, stops: number[], speeds: Record<string, number> }} run
   * @param {(stop: number, isPlaying: boolean) => void} show
   */
  constructor({ pace, stops, speeds }, show) {
    this.pace = pace;
    this.stops = stops;
    this.show = show;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.box = make("div", "player-bar");
    this.box.setAttribute("role", "group");
    this.box.setAttribute("aria-label", "Play the run");
    this.play = makeButton("", () => this.toggle());
    this.play.className = "player-play";
    this.back = iconButton("\u2190", "One step back (left arrow key)", () => this.step(-1));
    this.on = iconButton("\u2192", "One step on (right arrow key)", () => this.step(1));
    this.slider = make("input", "player-steps");
    this.slider.type = "range";
    this.slider.min = "0";
    this.slider.max = String(pace.last);
    this.slider.setAttribute("aria-label", "Steps shown");
    this.slider.addEventListener("input", () => this.seek(Number(this.slider.value)));
    this.where = make("span", "player-where");
    this.speeds = make("select", "matrix");
    this.speeds.setAttribute("aria-label", "Speed");
    this.speeds.append(...Object.entries(speeds).map(([words, speed]) => makeOption(String(speed), words)));
    this.speeds.addEventListener("change", () => this.change());
    this.box.append(this.play, this.back, this.on, this.slider, this.where, this.speeds);
  }

  /** Show the whole run, or the step that the address names. */
  begin() {
    this.pace.seek(this.addressed() ?? this.pace.last);
    document.addEventListener("keydown", (event) => this.pressed(event));
    window.addEventListener("hashchange", () => {
      const stop = this.addressed();
      if (stop !== null) this.seek(stop);
    });
    this.tell();
  }

  /** The stop that the address names, the next one where the run cannot be held there. */
  addressed() {
    const [, step] = ADDRESSED.exec(location.hash) ?? [];
    if (step === undefined) return null;
    const stop = this.stops.findIndex((steps) => steps >= Number(step));
    return stop < 0 ? this.pace.last : stop;
  }

  toggle() {
    if (this.pace.isPlaying) this.pace.hold();
    else this.pace.play();
    this.tell();
  }

  /** @param {number} by */
  step(by) {
    this.pace.hold();
    this.seek(this.pace.stop + by);
  }

  /** @param {number} stop */
  seek(stop) {
    this.pace.hold();
    this.pace.seek(stop);
    this.tell();
  }

  change() {
    this.pace.change(Number(this.speeds.value));
    this.tell();
  }

  /** Have the panels, and the controls, show where the run is; while it plays, again at the next stop. */
  tell() {
    clearTimeout(this.timer);
    const { stop, isPlaying } = this.pace;
    const { last, leftMs } = this.pace;
    this.show(stop, isPlaying);
    const words = `Step ${group(this.stops[stop])} of ${group(this.stops[last])}`;
    this.slider.value = String(stop);
    this.slider.setAttribute("aria-valuetext", words);
    write(this.where, words);
    write(this.play, isPlaying ? "\u275a\u275a Hold" : "\u25b6\ufe0e Play");
    this.back.disabled = stop === 0;
    this.on.disabled = stop === last;
    this.play.disabled = this.slider.disabled = last === 0;
    if (leftMs !== null) this.timer = setTimeout(() => this.tell(), Math.max(LEAST_MS, leftMs));
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    const [target] = event.composedPath();
    const has = (/** @type {string} */ kinds) => target instanceof Element && target.closest(kinds) !== null;
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || has(OWN_KEYS)) return;
    if (event.key === "ArrowLeft") this.step(-1);
    else if (event.key === "ArrowRight") this.step(1);
    else if (event.key === " " && !has(PRESSED)) this.toggle();
    else return;
    event.preventDefault();
  }
}

/**
 * @param {string} sign
 * @param {string} words
 * @param {() => void} press
 */
function iconButton(sign, words, press) {
  const button = makeButton(sign, press);
  button.setAttribute("aria-label", words);
  button.title = words;
  return button;
}
