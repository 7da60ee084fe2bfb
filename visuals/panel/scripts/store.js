// All named rows of one run, thinned as they come, and which of them a chart has not drawn yet.

/** @import { Row, Table } from "./types.js" */

import { MAX_BARS, MAX_ROWS, MedianRows, PickedRows } from "./axes.js";

const STEP_TIMES = new Set(["decode_step_times", "prefill_step_times"]);

// Tables with several rows a step: each table's limit counts rows.
/** @type {Record<string, number>} */
const LIMITS = { slot_timeline: MAX_ROWS, cache_layers: MAX_ROWS };

/** Rows that are drawn as they are. */
class PlainRows {
  constructor() {
    /** @type {Row[]} */
    this.rows = [];
  }

  get last() {
    const row = this.rows[this.rows.length - 1];
    return row ? Number(row.k) : -1;
  }

  /** @param {Row[]} rows */
  add(rows) {
    for (const row of rows) this.rows.push(row);
  }

  shown() {
    return this.rows;
  }

  get stride() {
    return 1;
  }

  settled() {
    return this.rows;
  }
}

export class Store {
  constructor() {
    /** @type {Map<string, PlainRows | PickedRows | MedianRows>} */
    this.tables = new Map();
    /** @type {Map<string, number>} */
    this.versions = new Map(); // they only grow, so that a chart sees that rows were taken away
    this.runs = 0; // how often all rows were taken away
  }

  reset() {
    for (const name of this.tables.keys()) this.versions.set(name, this.version(name) + 1);
    this.tables.clear();
    this.runs += 1;
  }

  /** @param {Record<string, Table> | undefined} tables */
  take(tables) {
    for (const [name, { mode, columns, rows: lines }] of Object.entries(tables || {})) {
      const rows = lines.map((cells) =>
        Object.fromEntries(columns.map((column, index) => [column, cells[index]])),
      );
      const isReplaced = mode === "replace";
      let table = isReplaced ? undefined : this.tables.get(name);
      if (!table?.shown().length) {
        table = tableFor(name, rows);
        this.tables.set(name, table);
      }
      const last = table.last;
      const added = mode === "merge" ? rows.filter((row) => Number(row.k) > last) : rows;
      if (!isReplaced && !added.length) continue;
      table.add(added);
      this.versions.set(name, this.version(name) + 1);
    }
  }

  /** @param {string} name */
  version(name) {
    return this.versions.get(name) || 0;
  }

  /**
   * What a chart shows of a table.
   * @param {string} name
   * @returns {Row[]}
   */
  rows(name) {
    return this.tables.get(name)?.shown() || [];
  }

  /**
   * Those of them that stay as they are until the stride changes.
   * @param {string} name
   * @returns {Row[]}
   */
  settled(name) {
    return this.tables.get(name)?.settled() || [];
  }

  /**
   * How many steps share one row of a table.
   * @param {string} name
   */
  stride(name) {
    return this.tables.get(name)?.stride || 1;
  }
}

/**
 * The same as rows of their own, since Vega writes into what it is given.
 * @param {Row[]} rows
 */
export function copied(rows) {
  return rows.map((row) => ({ ...row }));
}

/**
 * @param {string} name
 * @param {Row[]} rows
 */
function tableFor(name, rows) {
  if (!rows.length || !("k" in rows[0])) return new PlainRows();
  const limit = LIMITS[name] ?? (name.endsWith("_bounds") ? 2 * MAX_BARS : MAX_BARS);
  return STEP_TIMES.has(name) ? new MedianRows(limit) : new PickedRows(limit);
}
