// The colours of attention weights: how a weight becomes a share of the scale, and the ramps.

/** @import { Theme } from "./types.js" */
/**
 * @typedef {object} Scale
 * @property {string} label
 * @property {string} tip
 * @property {string} from What the least colour stands for.
 * @property {(top: number) => string} to What the most colour stands for.
 * @property {(weight: number, top: number) => number} share Of the scale, 0 to 1.
 * @typedef {[number, number, number]} Rgb
 */

const LOG_DECADES = 4; // the log scale ends at 0.0001
const TOPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5];

/** @type {Record<string, Scale>} */
export const SCALES = {
  log: {
    label: "log",
    tip: "each tenth is one step down",
    from: "10\u207b\u2074",
    to: () => "1",
    share: (weight) => (weight > 0 ? 1 + Math.log10(weight) / LOG_DECADES : 0),
  },
  linear: { label: "linear", tip: "0 to 1", from: "0", to: () => "1", share: (weight) => weight },
  rest: {
    label: "first token left out",
    tip: "linear up to the largest weight on any other token",
    from: "0",
    to: (top) => String(top),
    share: (weight, top) => weight / top,
  },
};

/**
 * The first of 0.001, 0.002, 0.005, 0.01, ... 1 that is not below a weight.
 * @param {number} largest
 */
export function scaleTop(largest) {
  return TOPS.find((top) => largest <= top) || 1;
}

/**
 * @param {string} colour
 * @returns {Rgb}
 */
export function rgbOf(colour) {
  const pen = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  const [red, green, blue] = pen.getImageData(0, 0, 1, 1).data;
  return [red, green, blue];
}

/** @param {Rgb} rgb */
export function pixelOf([red, green, blue]) {
  return (255 << 24) | (blue << 16) | (green << 8) | red;
}

/**
 * @param {Rgb} from
 * @param {Rgb} to
 * @param {number} share
 * @returns {Rgb}
 */
function mixed(from, to, share) {
  /** @param {0 | 1 | 2} part */
  const mix = (part) => Math.round(from[part] + (to[part] - from[part]) * share);
  return [mix(0), mix(1), mix(2)];
}

/**
 * Three colours from no weight to all of it; the phase's own colour is the middle one.
 * @param {string} colour
 * @param {Theme} theme
 */
export function rampOf(colour, theme) {
  const ground = rgbOf(theme.background);
  const isDark = ground[0] + ground[1] + ground[2] < 380;
  const own = rgbOf(colour);
  return [mixed(ground, own, 0.1), own, mixed(own, isDark ? [255, 255, 255] : [0, 0, 0], isDark ? 0.65 : 0.45)];
}

/**
 * The ramp as 256 pixels.
 * @param {string} colour
 * @param {Theme} theme
 */
export function rampTable(colour, theme) {
  const [low, middle, high] = rampOf(colour, theme);
  const table = new Uint32Array(256);
  for (let index = 0; index < 256; index += 1) {
    const share = index / 255;
    table[index] = pixelOf(share < 0.6 ? mixed(low, middle, share / 0.6) : mixed(middle, high, (share - 0.6) / 0.4));
  }
  return table;
}
