// How the newest marks of each chart are painted, with the looks that its spec gives them.

/** @import { Row } from "./types.js" */
/** @import { Store } from "./store.js" */
/**
 * @typedef {object} Picture A chart that Vega drew, and what has come since.
 * @property {any} spec
 * @property {number} width Of the plot, in pixels.
 * @property {number} height
 * @property {string} text The colour of text.
 * @property {string} font
 * @property {(value: number) => number} x Vega's own scales.
 * @property {(value: number) => number} y
 * @property {(name: string) => Row[]} given The rows of a table that Vega drew.
 * @property {(name: string) => Row[]} added Those that came after them.
 * @property {(name: string) => Row[]} moved All rows of a table that Vega was not given.
 *
 * @typedef {object} TailPainter
 * @property {string[]} grows Tables to which rows are added.
 * @property {string[]} moves Tables of the newest step alone.
 * @property {(row: Row, store: Store) => boolean} isPlain Whether an added row needs no more than paint.
 * @property {(pen: CanvasRenderingContext2D, picture: Picture) => void} paint
 *
 * @typedef {[number, number]} Point In pixels.
 * @typedef {"linear" | "step" | "step-after"} Shape How two points of a line are joined.
 * @typedef {{ color: string, width: number, dash?: number[], opacity?: number, join?: CanvasLineJoin }} Stroke
 */

const PHASES = ["prefill", "decode"];

/**
 * What an encoding gives a row: its value under its condition, or its other value.
 * @param {any} encoding
 * @param {boolean} holds
 * @returns {number}
 */
function given({ condition, value }, holds) {
  return holds ? condition.value : value;
}

/**
 * The layer of a spec that draws a table with a kind of mark.
 * @param {any} spec
 * @param {string} name
 * @param {string} type
 */
function layerOf(spec, name, type) {
  return spec.layer.find((/** @type {any} */ layer) => layer.data?.name === name && layer.mark.type === type);
}

/**
 * The points of a line, with the corners that its shape puts between them.
 * @param {Point[]} points
 * @param {Shape} shape
 * @returns {Point[]}
 */
export function joined(points, shape) {
  return points.flatMap(([x, y], index) => {
    if (!index || shape === "linear") return [[x, y]];
    const [beforeX, beforeY] = points[index - 1];
    const turn = shape === "step" ? (beforeX + x) / 2 : x;
    return /** @type {Point[]} */ ([[turn, beforeY], [turn, y], [x, y]]);
  });
}

/** @param {Point[]} points */
function lengthOf(points) {
  let sum = 0;
  for (let index = 1; index < points.length; index += 1) {
    sum += Math.hypot(points[index][0] - points[index - 1][0], points[index][1] - points[index - 1][1]);
  }
  return sum;
}

/**
 * Go on with a line where Vega's ends; its dashes go on too.
 * @param {CanvasRenderingContext2D} pen
 * @param {{ before: Point[], after: Point[] }} points
 * @param {Stroke & { shape: Shape }} how
 */
function goOn(pen, { before, after }, { color, width, dash = [], opacity = 1, join = "miter", shape }) {
  if (!after.length) return;
  const path = joined([...before.slice(-1), ...after], shape);
  pen.strokeStyle = color;
  pen.lineWidth = width;
  pen.lineJoin = join;
  pen.globalAlpha = opacity;
  pen.setLineDash(dash);
  pen.lineDashOffset = dash.length ? lengthOf(joined(before, shape)) : 0;
  pen.beginPath();
  path.forEach(([x, y], index) => (index ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.stroke();
  pen.setLineDash([]);
  pen.globalAlpha = 1;
}

/**
 * A mark of a point: a square or a circle of this many square pixels.
 * @param {CanvasRenderingContext2D} pen
 * @param {Point} at
 * @param {{ size: number, isSquare?: boolean }} how
 */
function markAt(pen, [x, y], { size, isSquare = false }) {
  pen.beginPath();
  if (isSquare) pen.rect(x - Math.sqrt(size) / 2, y - Math.sqrt(size) / 2, Math.sqrt(size), Math.sqrt(size));
  else pen.arc(x, y, Math.sqrt(size) / 2, 0, 2 * Math.PI);
}

/**
 * Bars of step times, and the counted least time over them.
 * @param {string} name
 * @returns {TailPainter}
 */
function stepTimes(name) {
  const bounds = `${name}_bounds`;
  return {
    grows: [name, bounds],
    moves: [],
    // A note stands beside its neighbours', and what is cut off is marked: Vega does both.
    isPlain: ({ note, ms }, store) => !note && Number(ms) <= Number(store.rows(`${name}_extent`)[0]?.y ?? 0),
    paint(pen, { spec, width, height, x, y, text, given: drawn, added }) {
      const { mark, encoding } = layerOf(spec, name, "bar");
      pen.beginPath();
      pen.rect(0, 0, width, height);
      pen.clip();
      pen.fillStyle = mark.color;
      pen.strokeStyle = mark.stroke;
      for (const { from, to, ms, kind } of added(name)) {
        const left = x(Number(from));
        const top = y(Number(ms));
        const isWarm = kind === "warm";
        pen.globalAlpha = given(encoding.fillOpacity, isWarm);
        pen.fillRect(left, top, x(Number(to)) - left, y(0) - top);
        pen.lineWidth = given(encoding.strokeWidth, isWarm);
        pen.globalAlpha = pen.lineWidth && !isWarm ? given(encoding.strokeOpacity, kind === "disturbed") : 0;
        pen.strokeRect(left, top, x(Number(to)) - left, y(0) - top);
      }
      const line = layerOf(spec, bounds, "line").mark;
      /** @type {(rows: Row[]) => Point[]} */
      const points = (rows) => rows.map((row) => [x(Number(row.x)), y(Number(row.ms))]);
      const ends = { before: points(drawn(bounds)), after: points(added(bounds)) };
      goOn(pen, ends, { color: text, width: line.strokeWidth, dash: line.strokeDash, shape: "linear" });
    },
  };
}

/**
 * Points of steps with their trail, and a ring and a name at the newest one.
 * @param {string} name
 * @returns {TailPainter}
 */
function roofline(name) {
  const now = `${name}_now`;
  return {
    grows: [name],
    moves: [now],
    isPlain: () => true,
    paint(pen, { spec, x, y, font, given: drawn, added, moved }) {
      const { mark, encoding } = layerOf(spec, name, "point");
      const trail = layerOf(spec, name, "line").mark;
      const ring = layerOf(spec, now, "point").mark;
      const label = layerOf(spec, now, "text").mark;
      /** @type {(row: Row) => Point} */
      const place = (row) => [x(Number(row.x)), y(Number(row.y))];
      /** @type {(phase: unknown) => string} */
      const colour = (phase) => encoding.color.scale.range[PHASES.indexOf(String(phase))];
      for (const phase of PHASES) {
        /** @type {(rows: Row[]) => Point[]} */
        const points = (rows) => rows.filter((row) => row.phase === phase).map(place);
        const ends = { before: points(drawn(name)), after: points(added(name)) };
        goOn(pen, ends, { color: colour(phase), width: trail.strokeWidth, opacity: trail.opacity, shape: "linear" });
      }
      for (const row of added(name)) {
        markAt(pen, place(row), { size: mark.size, isSquare: row.phase === "prefill" });
        pen.fillStyle = pen.strokeStyle = colour(row.phase);
        pen.lineWidth = mark.strokeWidth;
        pen.globalAlpha = mark.opacity * given(encoding.fillOpacity, row.kind === "warm");
        pen.fill();
        pen.globalAlpha = mark.opacity;
        pen.stroke();
      }
      pen.globalAlpha = 1;
      for (const row of moved(now)) {
        const [left, top] = place(row);
        markAt(pen, [left, top], { size: ring.size, isSquare: row.phase === "prefill" });
        pen.fillStyle = pen.strokeStyle = colour(row.phase);
        pen.lineWidth = ring.strokeWidth;
        pen.stroke();
        const side = besides(label, String(row.phase));
        pen.font = `${label.fontWeight} ${label.fontSize}px ${font}`;
        pen.textAlign = side.align;
        pen.textBaseline = "alphabetic";
        // Vega's top of a line is 79 hundredths of the letters' size above its baseline.
        pen.fillText(String(row.label ?? ""), left + side.dx, top + side.dy + 0.79 * label.fontSize);
      }
    },
  };
}

/**
 * Where the name of a point stands beside it, by its phase: the spec says so as an expression.
 * @param {any} label
 * @param {string} phase
 * @returns {{ align: CanvasTextAlign, dx: number, dy: number }}
 */
export function besides(label, phase) {
  /** @type {(expression: string) => string} */
  const value = (expression) => {
    const [, decode, prefill] = /\? (.+) : (.+)$/.exec(expression) ?? [];
    return (phase === "decode" ? decode : prefill).replaceAll("'", "");
  };
  const align = /** @type {CanvasTextAlign} */ (value(label.align.expr));
  return { align, dx: Number(value(label.dx.expr)), dy: Number(value(label.dy.expr)) };
}

/** @type {TailPainter[]} */
const PAINTERS = [
  stepTimes("prefill_step_times"),
  stepTimes("decode_step_times"),
  roofline("roofline_step"),
  roofline("roofline_linear"),
  roofline("roofline_attention"),
];

/** @type {Map<string, TailPainter>} By the name of the chart. */
export const TAILS = new Map(PAINTERS.map((painter) => [painter.grows[0], painter]));
