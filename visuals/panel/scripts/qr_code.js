// A QR code drawn here, from rows that say which of its squares are dark.

import { make } from "./elements.js";

const QUIET = 4; // squares around it that stay light; ISO/IEC 18004, section 5.3.8

/**
 * A canvas with one pixel a square; styles say how large it is.
 * @param {string[]} rows
 * @param {string} label
 */
export function qrCode(rows, label) {
  const canvas = make("canvas", "code");
  const side = rows.length + 2 * QUIET;
  canvas.width = canvas.height = side;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", label);
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.fillStyle = "#fff"; // in the dark too, or telephones do not read it
  pen.fillRect(0, 0, side, side);
  pen.fillStyle = "#000";
  for (const [x, y] of darkSquares(rows)) pen.fillRect(x + QUIET, y + QUIET, 1, 1);
  return canvas;
}

/**
 * Column and row of each dark square.
 * @param {string[]} rows
 * @returns {[number, number][]}
 */
export function darkSquares(rows) {
  return rows.flatMap((row, y) => [...row.matchAll(/1/g)].map(({ index }) => /** @type {[number, number]} */ ([index, y])));
}
