// Several frames as one that leaves the panels as they would, so that a jump is drawn once.

/** @import { Frame, Table, TextPart } from "../types.js" */

/** @type {(keyof Frame)[]} What every frame adds to; of all else the newest counts. */
const LISTS = ["prompt", "outputs", "mask", "masks"];

/**
 * @param {Frame[]} frames At least one, each beginning where the one before it ends.
 * @returns {Frame}
 */
export function merged(frames) {
  if (frames.length === 1) return frames[0];
  /** @type {[string, unknown[]][]} */
  const lists = LISTS.map((name) => [name, frames.flatMap((frame) => /** @type {unknown[]} */ (frame[name] ?? []))]);
  const roofline = frames.findLast((frame) => frame.roofline)?.roofline;
  const alarms = Object.assign({}, ...frames.map((frame) => frame.roofline?.alarms));
  return {
    ...Object.assign({}, ...frames.map(said)),
    ...Object.fromEntries(lists.filter(([, items]) => items.length)),
    from: frames[0].from,
    rows: mergedTables(frames),
    text: mergedText(frames),
    ...(roofline ? { roofline: { ...roofline, alarms } } : {}),
  };
}

/**
 * What a frame says; a value that is null leaves what was said before.
 * @param {Frame} frame
 */
function said(frame) {
  return Object.fromEntries(Object.entries(frame).filter(([, value]) => value !== null && value !== undefined));
}

/**
 * @param {Frame[]} frames
 * @returns {Record<string, Table>}
 */
function mergedTables(frames) {
  /** @type {Map<string, Table>} */
  const tables = new Map();
  for (const frame of frames) {
    for (const [name, table] of Object.entries(frame.rows ?? {})) {
      const before = tables.get(name);
      if (!before || table.mode === "replace") tables.set(name, { ...table, rows: [...table.rows] });
      else extend(before, table);
    }
  }
  return Object.fromEntries(tables);
}

/**
 * @param {Table} before
 * @param {Table} table That adds rows to it.
 */
function extend(before, table) {
  if (!before.rows.length) before.columns = table.columns;
  const k = table.columns.indexOf("k");
  const last = before.rows.length ? Number(before.rows[before.rows.length - 1][k]) : -1;
  for (const row of table.rows) {
    if (table.mode === "append" || Number(row[k]) > last) before.rows.push(row);
  }
}

/**
 * @param {Frame[]} frames
 * @returns {TextPart[]}
 */
function mergedText(frames) {
  /** @type {Map<number, TextPart>} */
  const parts = new Map();
  for (const { row, add, end } of frames.flatMap((frame) => frame.text ?? [])) {
    parts.set(row, { row, add: (parts.get(row)?.add ?? "") + add, end });
  }
  return [...parts.values()];
}
