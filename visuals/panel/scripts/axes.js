// Axes that grow in steps instead of twitching, and histories thinned to what a chart can show;
// visuals/charts/axes.py says the same.

/** @import { Row } from "./types.js" */

export const MAX_ROWS = 800;
export const MAX_BARS = 200; // about as many as a chart has room for

/**
 * The first of least, 1.5 x least, 2 x least, 3 x least, ... at or above a value.
 * @param {number} largest
 */
export function axisEnd(largest, least = 16) {
  let end = least;
  while (end < largest) {
    if (end * 3 >= largest * 2) return Math.floor((end * 3) / 2);
    end *= 2;
  }
  return end;
}

/**
 * How many neighbours share one mark on a chart: a power of two, 1 when all fit.
 * @param {number} count
 * @param {number} limit
 */
export function strideFor(count, limit) {
  let stride = 1;
  while (count > limit * stride) stride *= 2;
  return stride;
}

/**
 * The rows of every stride-th step, and of the last one; `k` numbers the steps.
 * @param {Row[]} rows
 * @returns {Row[]}
 */
export function picked(rows, limit = MAX_ROWS) {
  const steps = new Set(rows.map((row) => Number(row.k)));
  if (!steps.size) return [];
  const perStep = Math.max(1, Math.floor(rows.length / steps.size));
  const stride = strideFor(steps.size, Math.max(1, Math.floor(limit / perStep)));
  const last = Math.max(...steps);
  return rows.filter((row) => Number(row.k) % stride === 0 || row.k === last);
}

/**
 * One row for each group of neighbouring steps of one kind, with their median step time.
 * @param {Row[]} rows
 * @returns {Row[]}
 */
export function medians(rows, limit = MAX_ROWS) {
  const thinned = new MedianRows(limit);
  thinned.add(rows);
  return thinned.shown();
}

/** @param {number[]} values */
function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}

/**
 * The rows of every stride-th step, kept as they come: rows that no later stride picks are dropped.
 */
export class PickedRows {
  constructor(limit = MAX_ROWS) {
    this.limit = limit;
    this.steps = 0;
    this.count = 0;
    this.stride = 1;
    this.last = -1;
    /** @type {Row[]} */
    this.rows = [];
  }

  /** @param {Row[]} rows */
  add(rows) {
    for (const row of rows) {
      const k = Number(row.k);
      if (k > this.last) this.steps += 1;
      this.last = Math.max(this.last, k);
      this.count += 1;
      this.rows.push(row);
    }
    const perStep = Math.max(1, Math.floor(this.count / Math.max(1, this.steps)));
    const stride = strideFor(this.steps, Math.max(1, Math.floor(this.limit / perStep)));
    this.stride = Math.max(this.stride, stride);
    if (this.stride === 1) return;
    this.rows = this.rows.filter((row) => Number(row.k) % this.stride === 0 || row.k === this.last);
  }

  shown() {
    return this.rows;
  }

  /** The rows that stay until the stride changes: all but a last one that only stands for itself. */
  settled() {
    return this.rows.filter((row) => Number(row.k) % this.stride === 0);
  }
}

/** @typedef {{ first: Row, to: any, times: number[], row: Row | null }} Group */

/** One row for each group of neighbouring steps of one kind; of all others only the time is kept. */
export class MedianRows {
  constructor(limit = MAX_ROWS) {
    this.limit = limit;
    this.count = 0;
    this.stride = 1;
    this.last = -1;
    /** @type {Map<string, Group>} */
    this.groups = new Map();
  }

  /** @param {Row[]} rows */
  add(rows) {
    this.count += rows.length;
    const stride = strideFor(this.count, this.limit);
    if (stride !== this.stride) this.widen(stride);
    for (const row of rows) {
      this.last = Number(row.k);
      this.join({ first: row, to: row.to, times: [Number(row.ms)], row });
    }
  }

  /** @param {number} stride */
  widen(stride) {
    const before = [...this.groups.values()];
    this.groups.clear();
    this.stride = stride;
    for (const group of before) this.join(group);
  }

  /** @param {Group} group */
  join(group) {
    const key = `${Math.floor(Number(group.first.k) / this.stride)} ${group.first.kind}`;
    const held = this.groups.get(key);
    if (!held) {
      this.groups.set(key, group);
      return;
    }
    for (const time of group.times) held.times.push(time);
    held.to = group.to;
    held.row = null;
  }

  /** @returns {Row[]} */
  shown() {
    return [...this.groups.values()].map(rowOf);
  }

  /**
   * The rows that stay until the stride changes: all but those that the next step may join.
   * @returns {Row[]}
   */
  settled() {
    if (this.stride === 1) return this.shown();
    const open = Math.floor(this.last / this.stride);
    const groups = [...this.groups.values()].filter(({ first }) => Math.floor(Number(first.k) / this.stride) < open);
    return groups.map(rowOf);
  }
}

/**
 * @param {Group} group
 * @returns {Row}
 */
function rowOf(group) {
  group.row ??= { ...group.first, to: group.to, ms: median(group.times) };
  return group.row;
}
