// How a number is written for a reader; visuals/charts/units.py says the same.

export const NONE = "\u2013";
const LEAST_SHARE = 0.0001; // a smaller one is not worth its digits

/** @type {Map<number, Intl.NumberFormat>} */
const formats = new Map();

/** @param {number} digits */
function formatOf(digits) {
  let format = formats.get(digits);
  if (!format) {
    format = new Intl.NumberFormat("en-GB", {
      minimumSignificantDigits: digits,
      maximumSignificantDigits: digits,
    });
    formats.set(digits, format);
  }
  return format;
}

/**
 * Rounded as Python rounds: by the exact value, ties to the even digit.
 * @param {number} value
 * @param {number} digits
 */
function rounded(value, digits) {
  const [mantissa, exponent] = Math.abs(value).toExponential(99).split("e");
  const figures = mantissa.replace(".", "");
  const kept = Number(figures.slice(0, digits));
  const rest = figures.slice(digits);
  const half = "5".padEnd(rest.length, "0");
  const isUp = rest > half || (rest === half && kept % 2 === 1);
  return Math.sign(value) * Number(`${kept + Number(isUp)}e${Number(exponent) - digits + 1}`);
}

/**
 * A number with three significant digits and its thousands parted, or a dash for none.
 * @param {number | null | undefined} value
 */
export function significant(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  return value === 0 ? "0" : formatOf(digits).format(rounded(value, digits));
}

/**
 * A whole number with its thousands parted.
 * @param {number} number
 */
export function group(number) {
  return Number(number).toLocaleString("en-GB");
}

/**
 * A ratio of 0 to 1 in percent, or a dash for none.
 * @param {number | null | undefined} ratio
 */
export function percentText(ratio) {
  if (ratio === null || ratio === undefined) return NONE;
  return ratio < LEAST_SHARE ? "< 0.01\u00a0%" : `${significant(ratio * 100)}\u00a0%`;
}

/**
 * A number of MiB, with all of its whole digits.
 * @param {number} mib
 */
export function mibText(mib) {
  return mib >= 100 ? group(Math.round(mib)) : significant(mib);
}

/**
 * An attention weight; one that is not a number says so.
 * @param {number | undefined} weight
 */
export function weightText(weight, digits = 6) {
  if (weight === undefined || Number.isNaN(weight)) return "is not a number (NaN)";
  return weight === 0 ? "0" : String(Number(weight.toPrecision(digits)));
}
