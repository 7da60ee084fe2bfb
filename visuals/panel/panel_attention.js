// Attention weights: a WebSocket of their own, the blocks of weights it brings, and their picture.
// A cell stands for one weight or, where there are many, for the largest of a few.

const LINK_TRIES = 6;
const LOG_DECADES = 4; // the log scale ends at 0.0001
const NOTHING = -1; // no weight: a key that this query may not read, or a row not seen
const NOT_A_NUMBER = 2; // above every weight, so that it shows wherever it is

// The value of every half-precision number by its bits.
const HALF = new Float32Array(65536);
for (let bits = 0; bits < 65536; bits += 1) {
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  const size =
    exponent === 0
      ? fraction * 2 ** -24
      : exponent === 31
        ? fraction
          ? NaN
          : Infinity
        : (1 + fraction / 1024) * 2 ** (exponent - 15);
  HALF[bits] = bits & 32768 ? -size : size;
}

class AttentionLink {
  constructor(take) {
    this.take = take;
  }

  open(runId, token) {
    this.close();
    this.tries = 0;
    this.isWanted = true;
    this.address = { runId, token };
    this.timer = setTimeout(() => this.connect()); // one of several openings at once
  }

  connect() {
    const url = new URL(`/live/attention/${encodeURIComponent(this.address.runId)}`, location.origin);
    url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    url.searchParams.set("k", this.address.token);
    const socket = new WebSocket(url);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    socket.onmessage = (event) => {
      this.tries = 0;
      const { header, body } = parted(event.data);
      requestAnimationFrame(() => {
        if (socket !== this.socket) return;
        this.take(header, body);
        if (socket.readyState === WebSocket.OPEN) socket.send("a");
      });
    };
    socket.onclose = () => socket === this.socket && this.retry();
  }

  retry() {
    this.socket = null;
    this.tries += 1;
    if (!this.isWanted || this.tries > LINK_TRIES) return;
    this.timer = setTimeout(() => this.connect(), 250 * 2 ** this.tries);
  }

  ask(request) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(request));
  }

  close() {
    this.isWanted = false;
    clearTimeout(this.timer);
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }
}

// A header in JSON behind its length, then arrays.
function parted(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  return { header, body: buffer.slice(4 + length) };
}

// The blocks of a message with their weights: [plane, row of cells, cell] and, for the first cell,
// the largest weight in it without the sequence's first token.
function blocksOf(header, body) {
  let at = 0;
  const taken = (count) => {
    const array = new Uint16Array(body, at, count);
    at += 2 * count;
    return array;
  };
  return header.blocks.map((block) => {
    const [planes, rows, width] = block.shape;
    const data = taken(planes * rows * width);
    return { ...block, planes, rows, width, data, rest: block.rest ? taken(planes * rows) : null };
  });
}

// What one query gave, of one plane of its block.
function weightAt(block, plane, query, key) {
  const row = Math.floor((query - block.q0) / block.qb);
  const cell = Math.floor((key - block.k0) / block.kb);
  if (cell < 0 || cell >= block.width) return null;
  return HALF[block.data[(plane * block.rows + row) * block.width + cell]];
}

// The keys that one query gave most to, best first.
function bestKeys(block, plane, query, count) {
  const row = Math.floor((query - block.q0) / block.qb);
  const start = (plane * block.rows + row) * block.width;
  const cells = [...block.data.subarray(start, start + block.width)].map((bits, cell) => [HALF[bits], cell]);
  const numbers = cells.filter(([weight, cell]) => weight > 0 && block.k0 + cell * block.kb <= query);
  numbers.sort((a, b) => b[0] - a[0]);
  return numbers.slice(0, count).map(([weight, cell]) => ({ weight, key: block.k0 + cell * block.kb }));
}

// The largest weight on any token but the first.
function largestRest(block) {
  let largest = 0;
  for (let place = 0; place < block.data.length; place += 1) {
    const isFirst = block.k0 === 0 && place % block.width === 0;
    if (!isFirst && HALF[block.data[place]] > largest) largest = HALF[block.data[place]];
  }
  for (const bits of block.rest || []) if (HALF[bits] > largest) largest = HALF[bits];
  return largest;
}

const SCALES = {
  linear: { label: "linear", tip: "0 to 1", from: "0", to: () => "1", place: (weight) => weight },
  log: {
    label: "log",
    tip: "each tenth is one step down",
    from: "10\u207b\u2074",
    to: () => "1",
    place: (weight) => (weight > 0 ? 1 + Math.log10(weight) / LOG_DECADES : 0),
  },
  rest: {
    label: "no first",
    tip: "linear, the sequence's first token left out",
    from: "0",
    to: (top) => String(top),
    place: (weight, top) => weight / top,
  },
};

// The first of 0.01, 0.02, 0.05, 0.1, ... 1 that is not below a weight.
function scaleTop(largest) {
  return [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5].find((top) => largest <= top) || 1;
}

function rgbOf(colour) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
}

function mixed(from, to, share) {
  return from.map((part, place) => Math.round(part + (to[place] - part) * share));
}

// Three colours from no weight to all of it; the phase's own colour is the middle one.
function rampOf(colour, theme) {
  const ground = rgbOf(theme.background);
  const isDark = ground[0] + ground[1] + ground[2] < 380;
  const own = rgbOf(colour);
  return [mixed(ground, own, 0.1), own, mixed(own, isDark ? [255, 255, 255] : [0, 0, 0], isDark ? 0.65 : 0.45)];
}

function rampTable(colour, theme) {
  const [low, middle, high] = rampOf(colour, theme);
  const table = new Uint32Array(256);
  for (let place = 0; place < 256; place += 1) {
    const share = place / 255;
    const [r, g, b] = share < 0.6 ? mixed(low, middle, share / 0.6) : mixed(middle, high, (share - 0.6) / 0.4);
    table[place] = (255 << 24) | (b << 16) | (g << 8) | r;
  }
  return table;
}

// One plane of weights on a square of pixels.
class WeightsPicture {
  constructor(plane) {
    this.plane = plane;
    this.canvas = document.createElement("canvas");
    this.size = 0;
  }

  // True when everything must be painted again.
  fit(size, cells) {
    if (size === this.size && cells === this.cells) return false;
    this.size = size;
    this.cells = cells;
    this.canvas.width = this.canvas.height = size;
    this.image = new ImageData(size, size);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.clear();
    return true;
  }

  clear() {
    this.values = new Float32Array(this.size * this.size).fill(NOTHING);
    this.isDecode = new Uint8Array(this.size);
    this.dirty = [0, this.size];
  }

  span(from, to) {
    const start = Math.min(this.size - 1, Math.floor((from * this.size) / this.cells));
    return [start, Math.max(start + 1, Math.floor((to * this.size) / this.cells))];
  }

  paint(block, { startOf, withoutFirst, isDecode }) {
    for (let row = 0; row < block.rows; row += 1) {
      const from = block.q0 + row * block.qb;
      const to = Math.min(block.q0 + block.qn, from + block.qb);
      const [top, bottom] = this.span(from, to);
      this.isDecode.fill(isDecode ? 1 : 0, top, bottom);
      this.dirty = [Math.min(this.dirty[0], top), Math.max(this.dirty[1], bottom)];
      this.row(block, row, { top, bottom, first: startOf(from), last: to - 1, withoutFirst });
    }
  }

  row(block, row, { top, bottom, first, last, withoutFirst }) {
    const start = (this.plane * block.rows + row) * block.width;
    for (let cell = 0; cell < block.width; cell += 1) {
      const from = block.k0 + cell * block.kb;
      const to = Math.min(block.k0 + block.kn, from + block.kb);
      if (from > last) break;
      if (to <= first) continue;
      let weight = HALF[block.data[start + cell]];
      if (withoutFirst && from === 0 && block.rest) {
        if (block.kb === 1) continue;
        weight = HALF[block.rest[this.plane * block.rows + row]];
      }
      if (Number.isNaN(weight)) weight = NOT_A_NUMBER;
      const [left, right] = this.span(from, Math.min(to, last + 1));
      this.fill(weight, { top, bottom, left, right });
    }
  }

  fill(weight, { top, bottom, left, right }) {
    for (let y = top; y < bottom; y += 1) {
      for (let at = y * this.size + left; at < y * this.size + right; at += 1) {
        if (weight > this.values[at]) this.values[at] = weight;
      }
    }
  }

  colour({ scale, top, tables, odd }) {
    const [from, to] = this.dirty;
    for (let y = from; y < to; y += 1) {
      const table = tables[this.isDecode[y]];
      for (let at = y * this.size; at < (y + 1) * this.size; at += 1) {
        const value = this.values[at];
        if (value === NOTHING) this.pixels[at] = 0;
        else if (value === NOT_A_NUMBER) this.pixels[at] = odd;
        else this.pixels[at] = table[Math.max(0, Math.min(255, Math.round(SCALES[scale].place(value, top) * 255)))];
      }
    }
    if (to > from) this.canvas.getContext("2d").putImageData(this.image, 0, 0, 0, from, this.size, to - from);
    this.dirty = [this.size, 0];
  }
}

// All planes of what was seen, painted as blocks come in.
class WeightsView {
  constructor() {
    this.reset();
  }

  reset() {
    this.blocks = [];
    this.single = new Map(); // blocks of one query by its position
    this.pictures = [];
    this.painted = 0;
    this.largestRest = 0;
    this.end = 0; // the newest query and one
    this.isOdd = false; // some weight is not a number
    this.heads = [];
  }

  add(blocks) {
    for (const block of blocks) {
      this.blocks.push(block);
      if (block.qn === 1) this.single.set(block.q0, block);
      this.largestRest = Math.max(this.largestRest, largestRest(block));
      this.isOdd ||= block.data.some((bits) => Number.isNaN(HALF[bits]));
      this.end = Math.max(this.end, block.q0 + block.qn);
      this.heads = block.heads;
    }
  }

  // Everything is painted again, such as after another scale was chosen.
  repaint() {
    this.painted = 0;
    for (const picture of this.pictures) if (picture.size) picture.clear();
  }

  get planes() {
    return Math.max(1, this.heads.length);
  }

  get newestQuery() {
    let newest = null;
    for (const { q0, qn } of this.blocks.slice(-64)) newest = Math.max(newest ?? 0, q0 + qn - 1);
    return newest;
  }

  holding(query) {
    const own = this.single.get(query);
    return own || this.blocks.find((block) => query >= block.q0 && query < block.q0 + block.qn) || null;
  }

  // Bring the pictures up to date at this size in pixels.
  update(size, cells, style) {
    if (this.pictures.length !== this.planes) {
      this.pictures = Array.from({ length: this.planes }, (_, plane) => new WeightsPicture(plane));
      this.painted = 0;
    }
    let isFresh = false;
    for (const picture of this.pictures) isFresh = picture.fit(size, cells) || isFresh;
    const key = `${style.key} ${this.topOf(style.scale)}`;
    if (key !== this.key) {
      this.key = key;
      this.repaint();
    }
    if (isFresh) this.repaint();
    for (; this.painted < this.blocks.length; this.painted += 1) {
      const block = this.blocks[this.painted];
      const how = { startOf: style.startOf, withoutFirst: style.scale === "rest", isDecode: block.q0 >= style.prompt };
      for (const picture of this.pictures) picture.paint(block, how);
    }
    const top = this.topOf(style.scale);
    for (const picture of this.pictures) picture.colour({ scale: style.scale, top, tables: style.tables, odd: style.odd });
    return this.pictures;
  }

  topOf(scale) {
    return scale === "rest" ? scaleTop(this.largestRest) : 1;
  }
}
