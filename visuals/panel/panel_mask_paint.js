// The attention picture on its canvas: axes, the mask's cells or the weights, marks and labels.

const GAP_CELL = 5; // from this cell size on, cells are drawn one by one
const CHUNK_PIXELS = 3; // lower chunks of prefill are drawn as one triangle

class MaskPainter {
  constructor(panel) {
    this.panel = panel;
    this.where = null; // places of what was drawn last
  }

  // The theme has changed.
  forget() {
    this.tables = null;
  }

  draw() {
    const { body, canvas, axisCells: cells, view, weights } = this.panel;
    const width = body.clientWidth;
    const height = Math.max(160, body.clientHeight);
    if (!width) return;
    const scale = window.devicePixelRatio || 1;
    const pen = this.cleared(canvas, { width, height, scale });
    const isMany = view === "weights" && weights.planes > 1;
    const places = isMany ? headPlaces(weights.planes, this.panel.model?.kv_heads || 1, { width, height }) : null;
    const place = isMany ? null : squarePlace(width, height, cells);
    this.where = { cells, place, heads: places?.heads ?? null };
    if (isMany) {
      this.multiples(pen, { cells, ...places }, scale);
      this.pointer(pen);
      return;
    }
    this.frameAndAxes(pen, place);
    if (view === "weights") this.picture(pen, place, scale);
    else this.blocks(pen, place, this.panel.row.blocks);
    this.firstOutput(pen, place);
    this.highlight(pen, place);
    this.pointer(pen);
    if (place.isLabelled) this.labels(pen, place);
  }

  cleared(canvas, { width, height, scale }) {
    const across = Math.round(width * scale);
    const down = Math.round(height * scale);
    if (canvas.width !== across || canvas.height !== down) {
      canvas.width = across;
      canvas.height = down;
      canvas.style.height = height + "px";
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    return pen;
  }

  // Where the arrow keys are.
  pointer(pen) {
    if (!this.panel.isByKey || !this.panel.at) return;
    const { x, y } = cellAt(this.panel.at, this.where);
    pen.strokeStyle = this.panel.ctx.theme.text;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.arc(x, y, 6, 0, 2 * Math.PI);
    pen.stroke();
  }

  blocks(pen, place, blocks) {
    blocks.forEach((block, number) => this.block(pen, place, block, number === blocks.length - 1));
  }

  frameAndAxes(pen, { left, top, side, cells, cell, isLabelled }) {
    const theme = this.panel.ctx.theme;
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

  block(pen, place, block, isNewest) {
    if (!this.panel.kind.attends) return;
    const alpha = isNewest ? 1 : 0.45;
    pen.fillStyle = withAlpha(COLOURS[block.phase], alpha);
    if (place.cell >= GAP_CELL) this.cells(pen, place, block, alpha);
    else if (!this.chunks(pen, place, block, alpha)) this.area(pen, place, block.from, block.to, isNewest);
  }

  // A chunk of prefill: a rectangle over what was stored before it, lighter, and a triangle.
  chunks(pen, place, { phase, from, to, edges }, alpha) {
    const isFirst = from === 0 && edges.length === 1;
    const low = (to - from) / edges.length;
    if (phase !== "prefill" || isFirst || this.panel.kind.window !== null || low * place.cell < CHUNK_PIXELS) return false;
    const { left, top, cell } = place;
    edges.forEach((start, number) => {
      const end = edges[number + 1] ?? to;
      pen.fillStyle = withAlpha(COLOURS.prefill, alpha * 0.55);
      pen.fillRect(left, top + start * cell + 1, start * cell, (end - start) * cell - 1);
      pen.fillStyle = withAlpha(COLOURS.prefill, alpha);
      pen.beginPath();
      pen.moveTo(left + start * cell, top + start * cell + 1);
      pen.lineTo(left + end * cell, top + end * cell);
      pen.lineTo(left + start * cell, top + end * cell);
      pen.fill();
    });
    return true;
  }

  cells(pen, { left, top, cell }, { phase, from, to, edges }, alpha) {
    const gap = cell >= 10 ? 2 : 1;
    let chunk = 0;
    for (let query = from; query < to; query += 1) {
      if (edges[chunk + 1] <= query) chunk += 1;
      for (let key = this.panel.start(query); key <= query; key += 1) {
        const isBefore = phase === "prefill" && key < edges[chunk];
        pen.fillStyle = withAlpha(COLOURS[phase], isBefore ? alpha * 0.55 : alpha);
        pen.fillRect(left + key * cell + gap / 2, top + query * cell + gap / 2, cell - gap, cell - gap);
      }
    }
  }

  area(pen, { left, top, side, cell }, from, to, isNewest) {
    if (to - from === 1) {
      const thick = Math.max(isNewest ? 2.5 : 1, cell);
      const y = Math.min(top + from * cell, top + side - thick);
      const start = this.panel.start(from);
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
      point(this.panel.start(query), query + 1);
      point(this.panel.start(query), query);
    }
    point(this.panel.start(from), from);
    pen.fill();
  }

  style() {
    this.tables ??= [rampTable(COLOURS.prefill, this.panel.ctx.theme), rampTable(COLOURS.decode, this.panel.ctx.theme)];
    const [r, g, b] = rgbOf(COLOURS.odd);
    return {
      key: `${this.panel.scale} ${this.panel.layer}`,
      scale: this.panel.scale,
      prompt: this.panel.row.prompt,
      startOf: (query) => this.panel.start(query),
      tables: this.tables,
      odd: (255 << 24) | (b << 16) | (g << 8) | r,
    };
  }

  picture(pen, { left, top, side, cells, cell }, scale) {
    const [picture] = this.panel.weights.update(Math.max(1, Math.round(side * scale)), cells, this.style());
    pen.imageSmoothingEnabled = false;
    pen.drawImage(picture.canvas, left, top, side, side);
    if (cell < GAP_CELL) return;
    pen.fillStyle = this.panel.ctx.theme.background;
    for (let line = 1; line < cells; line += 1) {
      pen.fillRect(left + line * cell - 0.5, top, 1, side);
      pen.fillRect(left, top + line * cell - 0.5, side, 1);
    }
  }

  // Every head by itself, those of one K/V head together.
  multiples(pen, { cells, heads, groups }, scale) {
    const theme = this.panel.ctx.theme;
    const size = Math.max(1, Math.round(heads[0].side * scale));
    const pictures = this.panel.weights.update(size, cells, this.style());
    pen.imageSmoothingEnabled = false;
    pen.font = `11px ${theme.font}`;
    pen.textBaseline = "top";
    pen.textAlign = "right";
    for (const { x, y, width, height } of groups) {
      pen.strokeStyle = withAlpha(theme.text, 0.35);
      pen.lineWidth = 1;
      pen.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
    }
    heads.forEach(({ x, y, side }, plane) => {
      pen.fillStyle = withAlpha(theme.text, 0.05);
      pen.fillRect(x, y, side, side);
      pen.drawImage(pictures[plane].canvas, x, y, side, side);
      pen.fillStyle = theme.text;
      if (side >= 24) pen.fillText(this.panel.weights.heads[plane], x + side - 2, y + 2);
    });
  }

  // The last row of prefill, whose output chose the first output token.
  firstOutput(pen, { left, top, side, cell }) {
    const query = this.panel.row.prompt - 1;
    if (this.panel.row.context < this.panel.row.prompt) return;
    const y = top + query * cell;
    pen.strokeStyle = COLOURS.decode;
    pen.lineWidth = 1.5;
    const start = left + this.panel.start(query) * cell;
    if (cell >= 3) pen.strokeRect(start, y, left + this.panel.row.prompt * cell - start, cell);
    pen.fillStyle = COLOURS.decode;
    pen.font = `600 14px ${this.panel.ctx.theme.font}`;
    pen.textBaseline = "middle";
    const isRoom = left + this.panel.row.prompt * cell + 40 < left + side;
    pen.textAlign = isRoom ? "left" : "right";
    const x = isRoom ? left + this.panel.row.prompt * cell + 5 : left + side - 2;
    pen.fillText(isRoom ? "\u2190 x\u2080" : "x\u2080 \u2193", x, isRoom ? y + cell / 2 : Math.max(top + 8, y - 9));
  }

  highlight(pen, { left, top, side, cell }) {
    if (this.panel.lit === null || this.panel.lit === undefined || this.panel.lit >= this.panel.row.context) return;
    const at = this.panel.lit * cell;
    const thick = Math.max(cell, 3);
    pen.strokeStyle = this.panel.ctx.theme.text;
    pen.lineWidth = 1.5;
    pen.strokeRect(left + 0.75, Math.min(top + at, top + side - thick), (this.panel.lit + 1) * cell - 1.5, thick);
    pen.strokeRect(Math.min(left + at, left + side - thick), top + at, thick, (this.panel.row.context - this.panel.lit) * cell);
  }

  labels(pen, { left, top, cell }) {
    const theme = this.panel.ctx.theme;
    const tokens = this.panel.ctx.tokens[this.panel.rowNumber]?.strip.tokens || [];
    pen.font = `${Math.min(14, Math.max(11, cell - 2))}px ${theme.font}`;
    pen.textBaseline = "middle";
    for (let position = 0; position < Math.min(tokens.length, this.panel.row.context); position += 1) {
      const isLit = position === this.panel.lit;
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
}
