// The attention mask on a canvas: a triangle by prefill, then one row for each decode step.
// Drawn from each step's phase, T and L; a query at position q may read keys 0..q, or the newest
// of them where every layer has a window.

const LABEL_CELL = 12; // from this cell size on, rows and columns carry their tokens
const GAP_CELL = 5; // from this cell size on, cells are drawn one by one

class MaskPanel {
  mount(el, ctx) {
    this.ctx = ctx;
    const parts = makePanel("mask", "Attention mask", ctx.data.explanations?.mask);
    this.caption = parts.caption;
    this.legend = make("div", "legend");
    for (const phase of ["prefill", "decode"]) {
      const entry = make("span", "entry");
      entry.append(make("span", "swatch swatch-" + phase), make("span", null, phase));
      this.legend.append(entry);
    }
    parts.tools.insertBefore(this.legend, parts.help);
    this.canvas = make("canvas", "mask");
    this.canvas.setAttribute("role", "img");
    parts.body.append(this.canvas);
    el.append(parts.panel);
    this.body = parts.body;
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(parts.body);
    this.canvas.addEventListener("mousemove", (event) => this.pointed(event));
    this.canvas.addEventListener("mouseleave", () => this.left());
    ctx.hover.listen((place) => {
      this.lit = place?.row === 0 ? place.position : null;
      this.draw();
    });
    this.reset();
  }

  reset() {
    this.blocks = []; // runs of rows: { phase, from, to }, the newest step's last
    this.context = 0;
    this.window = null;
    this.lit = null;
    this.caption.textContent = "";
    this.canvas.setAttribute("aria-label", "Attention mask: empty, no step yet.");
    this.draw();
  }

  update(frame) {
    if (frame.model) this.window = frame.model.window;
    if (frame.captions) this.caption.textContent = frame.captions.mask;
    if (frame.descriptions) this.canvas.setAttribute("aria-label", frame.descriptions.mask);
    if (!frame.mask?.length) return;
    for (const [phase, fed, context] of frame.mask) this.add(phase, context - fed, context);
    this.draw();
  }

  add(phase, from, to) {
    const before = this.blocks[this.blocks.length - 2];
    const newest = this.blocks[this.blocks.length - 1];
    if (before && before.phase === newest.phase && before.to === newest.from) {
      before.to = newest.to;
      this.blocks.pop();
    }
    this.blocks.push({ phase, from, to });
    this.context = Math.max(this.context, to);
  }

  retheme() {
    this.draw();
  }

  layout() {
    const width = this.body.clientWidth;
    const height = Math.max(180, this.body.clientHeight);
    const cells = axisEnd(Math.max(this.context, 1), 8);
    const roomy = Math.min((width - 74) / cells, (height - 62) / cells);
    const isLabelled = roomy >= LABEL_CELL;
    const left = isLabelled ? 74 : 56;
    const top = isLabelled ? 62 : 24;
    const side = Math.max(40, Math.min(width - left - 4, height - top - 4));
    return { width, height, cells, left, top, side, cell: side / cells, isLabelled };
  }

  draw() {
    const { width, height, ...place } = this.layout();
    if (!width) return;
    const scale = window.devicePixelRatio || 1;
    const isResized = this.canvas.width !== Math.round(width * scale) || this.canvas.height !== Math.round(height * scale);
    if (isResized) {
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(height * scale);
      this.canvas.style.height = height + "px";
    }
    const pen = this.canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    this.place = place;
    this.frameAndAxes(pen, place);
    this.blocks.forEach((block, number) => this.block(pen, place, block, number === this.blocks.length - 1));
    this.highlight(pen, place);
    if (place.isLabelled) this.labels(pen, place);
  }

  frameAndAxes(pen, { left, top, side, cells, cell, isLabelled }) {
    const theme = this.ctx.theme;
    pen.fillStyle = withAlpha(theme.text, 0.05);
    pen.fillRect(left, top, side, side);
    pen.fillStyle = withAlpha(theme.text, 0.8);
    pen.font = `14px ${theme.font}`;
    pen.textBaseline = "middle";
    pen.textAlign = "left";
    pen.fillText("key read \u2192", isLabelled ? 0 : left, isLabelled ? 9 : 10);
    pen.fillText("query \u2193", 0, isLabelled ? 27 : 10);
    if (isLabelled) return;
    pen.textAlign = "right";
    for (let tick = 0; tick <= 4; tick += 1) {
      const at = (cells * tick) / 4;
      const y = Math.min(top + side - 7, Math.max(top + 7, top + at * cell));
      pen.fillText(group(at), left - 8, y);
      if (tick > 1 && side > 150) pen.fillText(group(at), left + at * cell, 10);
    }
  }

  block(pen, place, { phase, from, to }, isNewest) {
    pen.fillStyle = withAlpha(COLOURS[phase], isNewest ? 1 : 0.45);
    if (place.cell >= GAP_CELL) this.cells(pen, place, from, to);
    else this.area(pen, place, from, to, isNewest);
  }

  start(query) {
    return this.window === null ? 0 : Math.max(0, query + 1 - this.window);
  }

  cells(pen, { left, top, cell }, from, to) {
    const gap = cell >= 10 ? 2 : 1;
    for (let query = from; query < to; query += 1) {
      for (let key = this.start(query); key <= query; key += 1) {
        pen.fillRect(left + key * cell + gap / 2, top + query * cell + gap / 2, cell - gap, cell - gap);
      }
    }
  }

  area(pen, { left, top, side, cell }, from, to, isNewest) {
    if (to - from === 1) {
      const thick = Math.max(isNewest ? 2.5 : 1, cell);
      const y = Math.min(top + from * cell, top + side - thick);
      const start = this.start(from);
      pen.fillRect(left + start * cell, y, (to - start) * cell, thick);
      if (!isNewest) return;
      pen.beginPath();
      pen.moveTo(left - 7, y - 5);
      pen.lineTo(left - 1, y + thick / 2);
      pen.lineTo(left - 7, y + thick + 5);
      pen.fill();
      return;
    }
    // Down the right edge in steps of whole rows, and up the left one.
    const rows = Math.max(1, Math.round(1 / cell));
    const point = (key, query) => pen.lineTo(left + key * cell, top + query * cell);
    pen.beginPath();
    for (let query = from; query < to; query += rows) {
      point(query + 1, query);
      point(query + 1, Math.min(query + rows, to));
    }
    point(to, to);
    for (let query = to - 1; query >= from; query -= rows) {
      point(this.start(query), query + 1);
      point(this.start(query), query);
    }
    point(this.start(from), from);
    pen.fill();
  }

  highlight(pen, { left, top, side, cell }) {
    if (this.lit === null || this.lit === undefined || this.lit >= this.context) return;
    const at = this.lit * cell;
    const thick = Math.max(cell, 3);
    pen.strokeStyle = this.ctx.theme.text;
    pen.lineWidth = 1.5;
    pen.strokeRect(left + 0.75, Math.min(top + at, top + side - thick), (this.lit + 1) * cell - 1.5, thick);
    pen.strokeRect(Math.min(left + at, left + side - thick), top + at, thick, (this.context - this.lit) * cell);
  }

  labels(pen, { left, top, cell }) {
    const theme = this.ctx.theme;
    const tokens = this.ctx.tokens[0]?.strip.tokens || [];
    pen.font = `${Math.min(14, Math.max(11, cell - 2))}px ${theme.font}`;
    for (let position = 0; position < Math.min(tokens.length, this.context); position += 1) {
      const isLit = position === this.lit;
      pen.fillStyle = withAlpha(theme.text, isLit ? 1 : 0.85);
      const text = this.clipped(pen, tokens[position].text, 62);
      const middle = (position + 0.5) * cell;
      pen.textAlign = "right";
      pen.fillText(text, left - 6, top + middle);
      pen.save();
      pen.translate(left + middle, top - 5);
      pen.rotate(-Math.PI / 3);
      pen.textAlign = "left";
      pen.fillText(this.clipped(pen, tokens[position].text, 56), 0, 0);
      pen.restore();
    }
  }

  clipped(pen, text, most) {
    const characters = [...text];
    while (characters.length > 1 && pen.measureText(characters.join("")).width > most) characters.pop();
    return characters.length < [...text].length ? characters.join("") + "\u2026" : text;
  }

  pointed(event) {
    const { left, top, cell } = this.place;
    const query = Math.floor((event.offsetY - top) / cell);
    const key = Math.floor((event.offsetX - left) / cell);
    if (query < 0 || key < 0 || query >= this.context || key >= this.context) return this.left();
    this.ctx.hover.point(0, query);
    const name = (position) => {
      const token = this.ctx.tokens[0]?.strip.tokens[position];
      return `${group(position)} ${token ? "\u201c" + token.text + "\u201d" : ""}`;
    };
    const isRead = key <= query && key >= this.start(query);
    const verb = isRead ? "reads key" : "may not read key";
    const spot = { getBoundingClientRect: () => new DOMRect(event.clientX, event.clientY, 1, 1) };
    this.ctx.tip.show(spot, [make("p", null, `query ${name(query)} ${verb} ${name(key)}`)]);
  }

  left() {
    this.ctx.hover.point(0, null);
    this.ctx.tip.hide();
  }
}
