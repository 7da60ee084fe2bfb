// Attention on a canvas, in two views of one picture: the mask, which keys each token may read, and
// the weights, what the chosen layer and head made of them. Rows are queries, columns keys.

const LABEL_CELL = 12; // from this cell size on, rows and columns carry their tokens
const GAP_CELL = 5; // from this cell size on, cells are drawn one by one
const CHUNK_PIXELS = 3; // lower chunks of prefill are drawn as one triangle
const EXACT_AFTER_MS = 120; // the pointer rests before an exact row is asked for
const NO_SOCKET = "Weights come over a WebSocket, which this connection does not have.";
const WAITING = "No weights yet.";

// What was last chosen in any panel; the next one begins with it.
const chosen = (window.__tbtLook ??= { view: "mask", scale: "linear", picked: null });

class MaskPanel {
  mount(el, ctx) {
    this.ctx = ctx;
    const parts = makePanel("mask", "Attention", ctx.data.explanations?.mask);
    this.caption = parts.caption;
    this.body = parts.body;
    this.view = chosen.view;
    this.scale = chosen.scale;
    this.picked = chosen.picked;
    this.weights = new WeightsView();
    this.link = new AttentionLink((header, body) => this.taken(header, body));
    this.toggles(parts);
    this.pickers(parts);
    this.canvas = make("canvas", "mask");
    this.canvas.setAttribute("role", "img");
    parts.body.append(this.canvas);
    this.foot = make("p", "look-foot");
    parts.panel.insertBefore(this.foot, parts.body.nextSibling);
    el.append(parts.panel);
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(parts.body);
    this.canvas.addEventListener("mousemove", (event) => this.pointed(event));
    this.canvas.addEventListener("mouseleave", () => this.left());
    ctx.hover.listen((place) => {
      this.lit = place?.row === 0 ? place.position : null;
      this.say();
      this.draw();
    });
    this.reset();
  }

  toggles(parts) {
    const choice = make("div", "choice");
    choice.setAttribute("role", "group");
    choice.setAttribute("aria-label", "Show");
    this.buttons = ["mask", "weights"].map((view) => {
      const button = make("button", null, view);
      button.type = "button";
      button.addEventListener("click", () => this.show(view));
      choice.append(button);
      return { view, button };
    });
    parts.tools.insertBefore(choice, parts.help);
  }

  pickers(parts) {
    const line = make("div", "look");
    this.layers = this.picker(line, "Layer", () => this.pick());
    this.heads = this.picker(line, "Head", () => this.pick());
    this.scales = this.picker(line, "Colour scale", () => {
      this.scale = chosen.scale = this.scales.value;
      this.say();
      this.draw();
    });
    for (const [name, { label, tip }] of Object.entries(SCALES)) {
      const option = make("option", null, label);
      option.value = name;
      option.title = tip;
      this.scales.append(option);
    }
    this.scales.value = this.scale;
    this.legend = make("div", "legend");
    for (const phase of ["prefill", "decode"]) {
      const entry = make("span", "entry");
      entry.append(make("span", "swatch swatch-" + phase), make("span", null, phase));
      this.legend.append(entry);
    }
    line.append(this.legend);
    parts.panel.insertBefore(line, parts.caption);
  }

  picker(line, name, change) {
    const select = make("select", "matrix");
    select.setAttribute("aria-label", name);
    select.addEventListener("change", change);
    line.append(select);
    return select;
  }

  reset() {
    this.blocks = []; // runs of rows: { phase, from, to, edges }, the newest step's last
    this.context = 0;
    this.prompt = Infinity;
    this.words = [];
    this.cost = "";
    this.model = null;
    this.lit = null;
    this.forget();
    this.show(this.view);
  }

  forget() {
    this.weights.reset();
    this.state = null;
    this.exact = null;
  }

  show(view) {
    this.view = chosen.view = view;
    for (const one of this.buttons) one.button.setAttribute("aria-pressed", String(one.view === view));
    if (view === "weights") this.watch();
    else this.link.close();
    this.arrange();
  }

  watch() {
    const { run_id: runId, token, frame } = this.ctx.data;
    if (frame) this.state = { choice: null, notice: NO_SOCKET, reason: "" };
    else this.link.open(runId, token);
  }

  // Which pickers there are, and what they offer.
  arrange() {
    const isWeights = this.view === "weights";
    this.layers.hidden = !isWeights && (this.model?.kinds.length || 0) < 2;
    this.heads.hidden = this.scales.hidden = !isWeights;
    this.legend.hidden = isWeights;
    this.say();
    this.draw();
  }

  offer(model) {
    this.model = model;
    const isMixed = model.kinds.length > 1;
    this.layers.replaceChildren(
      ...model.of_layer.map((kind, layer) => {
        const option = make("option", null, `layer ${layer}` + (isMixed ? `: ${model.kinds[kind].label}` : ""));
        option.value = String(layer);
        return option;
      }),
    );
    if (!isMixed && model.kinds.length) this.layers.title = `every layer: ${model.kinds[0].label}`;
    this.heads.replaceChildren(...this.headOptions(model));
    this.mark(this.picked || { layer: model.default, head: null, all: false });
  }

  // Query heads that share a K/V head stand together.
  headOptions({ heads, kv_heads: shared }) {
    const option = (value, text) => {
      const made = make("option", null, text);
      made.value = value;
      return made;
    };
    const options = [option("mean", `mean of ${heads} heads`), option("all", "all heads")];
    const group = heads / shared;
    if (!(Number.isInteger(group) && group > 1)) {
      for (let head = 0; head < heads; head += 1) options.push(option(String(head), `head ${head}`));
      return options;
    }
    for (let one = 0; one < shared; one += 1) {
      const holder = make("optgroup");
      holder.label = `K/V head ${one}`;
      for (let head = one * group; head < (one + 1) * group; head += 1) {
        holder.append(option(String(head), `head ${head}`));
      }
      options.push(holder);
    }
    return options;
  }

  mark({ layer, head, all }) {
    this.layers.value = String(Math.min(layer, Math.max(0, this.layers.length - 1)));
    this.heads.value = all ? "all" : head === null ? "mean" : String(head);
    if (!this.heads.value) this.heads.value = "mean";
  }

  // What the pickers say goes to the engine, and to the page for the next run.
  pick() {
    const head = this.heads.value;
    this.picked = chosen.picked = {
      layer: Number(this.layers.value),
      head: head === "mean" || head === "all" ? null : Number(head),
      all: head === "all",
    };
    this.link.ask({ look: this.picked });
    this.ctx.tell("look", this.picked);
    this.say();
    this.draw();
  }

  get layer() {
    return Number(this.layers.value || 0);
  }

  get kind() {
    return this.model?.kinds[this.model.of_layer[this.layer]] || { window: null, chunked: false, attends: true };
  }

  taken(header, body) {
    if (header.kind === "state") this.judged(header);
    else if (header.kind === "row") this.exact = { ...header, weights: new Float32Array(body) };
    else this.weights.add(blocksOf(header, body));
    this.say();
    if (header.kind === "row") this.tell();
    else this.draw();
  }

  judged(state) {
    if (state.reset) this.forget();
    this.state = state;
    const { choice } = state;
    const isSame = (a, b) => a.layer === b.layer && a.head === b.head && a.all === b.all;
    if (state.reset && choice && this.picked && !this.wasAsked && !isSame(choice, this.picked)) {
      this.wasAsked = true; // picked before there was a connection
      this.link.ask({ look: this.picked });
    } else if (choice && !state.notice) {
      this.mark(choice);
    }
  }

  update(frame) {
    if (frame.model) {
      this.prompt = frame.model.requests[0]?.prompt_tokens ?? Infinity;
      this.wasAsked = false;
      this.offer(frame.model.attention);
      this.arrange();
    }
    if (frame.mask_words) {
      this.words = frame.mask_words;
      this.cost = frame.look;
      this.say();
    }
    if (!frame.mask?.length) return;
    for (const [phase, fed, context] of frame.mask) this.add(phase, context - fed, context);
    this.draw();
  }

  add(phase, from, to) {
    const before = this.blocks[this.blocks.length - 2];
    const newest = this.blocks[this.blocks.length - 1];
    if (before && before.phase === newest.phase && before.to === newest.from) {
      before.to = newest.to;
      before.edges.push(newest.from);
      this.blocks.pop();
    }
    this.blocks.push({ phase, from, to, edges: [from] });
    this.context = Math.max(this.context, to);
  }

  retheme() {
    this.tables = null;
    this.weights.repaint();
    this.draw();
  }

  close() {
    this.link.close();
    this.observer.disconnect();
    clearTimeout(this.asking);
  }

  // Words

  say() {
    const own = this.words[this.model?.of_layer[this.layer] ?? 0];
    const isWeights = this.view === "weights";
    const caption = isWeights ? this.weightWords() : own?.caption || "";
    this.caption.textContent = caption;
    this.caption.title = caption;
    const empty = "Attention mask: empty, no step yet.";
    const what = `Attention weights of layer ${this.layer}, ${this.headWords()}. `;
    this.canvas.setAttribute("aria-label", isWeights ? what + caption : own?.description || empty);
    this.sayFoot(isWeights);
  }

  headWords() {
    const { choice } = this.state || {};
    if (!choice) return "mean over the heads";
    if (choice.all) return "each head by itself";
    return choice.head === null ? "mean over the heads" : `head ${choice.head}`;
  }

  // The newest row in words, or that of the token pointed at.
  weightWords() {
    const isLitHeld = this.lit !== null && this.lit !== undefined && this.weights.holding(this.lit);
    const query = isLitHeld ? this.lit : this.newestQuery();
    const block = query === null ? null : this.weights.holding(query);
    if (!block) return this.state?.notice || this.state?.reason || WAITING;
    const best = bestKeys(block, 0, query, 3).map(({ weight, key }) => `${this.name(key)} ${percentText(weight)}`);
    const head = this.weights.heads.length > 1 ? `, head ${this.weights.heads[0]}` : "";
    const read = best.length ? ` reads ${best.join(", ")}` : " gives no weight that is a number";
    return `Query ${this.name(query)}${head}${read}.`;
  }

  newestQuery() {
    const { blocks } = this.weights;
    let newest = null;
    for (const { q0, qn } of blocks.slice(-64)) newest = Math.max(newest ?? 0, q0 + qn - 1);
    return newest;
  }

  sayFoot(isWeights) {
    const first = this.context >= this.prompt ? "x\u2080: last row of prefill, chose the first output token. " : "";
    const notes = isWeights
      ? [this.state?.notice, this.state?.reason, this.cost].filter(Boolean).join(" ")
      : "";
    const nodes = [];
    if (isWeights && this.weights.blocks.length) nodes.push(this.key());
    nodes.push(make("span", null, notes || first));
    this.foot.title = first + notes;
    this.foot.replaceChildren(...nodes);
    this.foot.classList.toggle("warns", Boolean(isWeights && (this.state?.notice || this.state?.reason)));
  }

  // The colours of both phases from the least to the most.
  key() {
    const node = make("span", "look-key");
    const bars = make("span", "look-bars");
    for (const phase of ["prefill", "decode"]) {
      const [low, middle, high] = rampOf(COLOURS[phase], this.ctx.theme).map((part) => `rgb(${part.join(" ")})`);
      const bar = make("span");
      bar.style.background = `linear-gradient(to right, ${low}, ${middle} 60%, ${high})`;
      bars.append(bar);
    }
    const top = this.weights.topOf(this.scale);
    node.append(make("span", null, SCALES[this.scale].from), bars, make("span", null, SCALES[this.scale].to(top)));
    return node;
  }

  name(position) {
    const token = this.ctx.tokens[0]?.strip.tokens[position];
    return `${group(position)}${token ? " \u201c" + token.text + "\u201d" : ""}`;
  }

  // Tokens along each axis. Weights may come before the frame of their step.
  get axisCells() {
    const seen = this.view === "weights" ? this.weights.end : 0;
    return axisEnd(Math.max(this.context, seen, 1), 8);
  }

  // The picture

  layout() {
    const width = this.body.clientWidth;
    const height = Math.max(160, this.body.clientHeight);
    const cells = this.axisCells;
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
    if (this.view === "weights" && this.weights.planes > 1) {
      this.places = headPlaces(this.weights.planes, this.model?.kv_heads || 1, { width, height });
      this.multiples(pen, place, scale);
      return;
    }
    this.places = null;
    this.place = place;
    this.frameAndAxes(pen, place);
    if (this.view === "weights") this.picture(pen, place, scale);
    else this.blocks.forEach((block, number) => this.block(pen, place, block, number === this.blocks.length - 1));
    this.firstOutput(pen, place);
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

  // The first key that a query of the layer may read.
  start(query) {
    const { window: size, chunked } = this.kind;
    if (size === null) return 0;
    return chunked ? query - (query % size) : Math.max(0, query + 1 - size);
  }

  block(pen, place, block, isNewest) {
    if (!this.kind.attends) return;
    const alpha = isNewest ? 1 : 0.45;
    pen.fillStyle = withAlpha(COLOURS[block.phase], alpha);
    if (place.cell >= GAP_CELL) this.cells(pen, place, block, alpha);
    else if (!this.chunks(pen, place, block, alpha)) this.area(pen, place, block.from, block.to, isNewest);
  }

  // A chunk of prefill: a rectangle over what was stored before it, lighter, and a triangle.
  chunks(pen, place, { phase, from, to, edges }, alpha) {
    const isFirst = from === 0 && edges.length === 1;
    const low = (to - from) / edges.length;
    if (phase !== "prefill" || isFirst || this.kind.window !== null || low * place.cell < CHUNK_PIXELS) return false;
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
      for (let key = this.start(query); key <= query; key += 1) {
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

  style() {
    this.tables ??= [rampTable(COLOURS.prefill, this.ctx.theme), rampTable(COLOURS.decode, this.ctx.theme)];
    const [r, g, b] = rgbOf("#e6009e"); // of no other meaning: a weight that is not a number
    return {
      key: `${this.scale} ${this.layer}`,
      scale: this.scale,
      prompt: this.prompt,
      startOf: (query) => this.start(query),
      tables: this.tables,
      odd: (255 << 24) | (b << 16) | (g << 8) | r,
    };
  }

  picture(pen, { left, top, side, cells, cell }, scale) {
    const [picture] = this.weights.update(Math.max(1, Math.round(side * scale)), cells, this.style());
    pen.imageSmoothingEnabled = false;
    pen.drawImage(picture.canvas, left, top, side, side);
    if (cell < GAP_CELL) return;
    pen.fillStyle = this.ctx.theme.background;
    for (let line = 1; line < cells; line += 1) {
      pen.fillRect(left + line * cell - 0.5, top, 1, side);
      pen.fillRect(left, top + line * cell - 0.5, side, 1);
    }
  }

  // Every head by itself, those of one K/V head together.
  multiples(pen, { cells }, scale) {
    const theme = this.ctx.theme;
    const { heads, groups } = this.places;
    const size = Math.max(1, Math.round(heads[0].side * scale));
    const pictures = this.weights.update(size, cells, this.style());
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
      if (side >= 24) pen.fillText(this.weights.heads[plane], x + side - 2, y + 2);
    });
  }

  // The last row of prefill, whose output chose the first output token.
  firstOutput(pen, { left, top, side, cell }) {
    const query = this.prompt - 1;
    if (this.context < this.prompt) return;
    const y = top + query * cell;
    pen.strokeStyle = COLOURS.decode;
    pen.lineWidth = 1.5;
    const start = left + this.start(query) * cell;
    if (cell >= 3) pen.strokeRect(start, y, left + this.prompt * cell - start, cell);
    pen.fillStyle = COLOURS.decode;
    pen.font = `600 14px ${this.ctx.theme.font}`;
    pen.textBaseline = "middle";
    const isRoom = left + this.prompt * cell + 40 < left + side;
    pen.textAlign = isRoom ? "left" : "right";
    const x = isRoom ? left + this.prompt * cell + 5 : left + side - 2;
    pen.fillText(isRoom ? "\u2190 x\u2080" : "x\u2080 \u2193", x, isRoom ? y + cell / 2 : Math.max(top + 8, y - 9));
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
    pen.textBaseline = "middle";
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

  // The pointer

  pointed(event) {
    const spot = this.spot(event.offsetX, event.offsetY);
    if (!spot) return this.left();
    const isMoved = spot.query !== this.at?.query || spot.plane !== this.at?.plane;
    this.at = { ...spot, x: event.clientX, y: event.clientY };
    this.ctx.hover.point(0, spot.query);
    this.tell();
    if (isMoved && this.view === "weights") this.askExact();
    return undefined;
  }

  // Plane, query and key under a point; null beside the picture.
  spot(x, y) {
    const within = this.places
      ? this.places.heads.findIndex((one) => x >= one.x && y >= one.y && x < one.x + one.side && y < one.y + one.side)
      : 0;
    if (within < 0 || (!this.places && !this.place)) return null;
    const cells = this.axisCells;
    const one = this.places?.heads[within];
    const { left, top, cell } = one ? { left: one.x, top: one.y, cell: one.side / cells } : this.place;
    const query = Math.floor((y - top) / cell);
    const key = Math.floor((x - left) / cell);
    if (query < 0 || key < 0 || query >= this.context || key >= this.context) return null;
    return { plane: within, query, key };
  }

  askExact() {
    clearTimeout(this.asking);
    const { query, plane } = this.at;
    const head = this.weights.heads[plane] ?? null;
    this.asking = setTimeout(() => this.link.ask({ query, head }), EXACT_AFTER_MS);
  }

  tell() {
    if (!this.at) return;
    const { query, key, x, y } = this.at;
    const anchor = { getBoundingClientRect: () => new DOMRect(x, y, 1, 1) };
    const isRead = this.kind.attends && key <= query && key >= this.start(query);
    const nodes = [];
    if (this.view === "mask" || !isRead) {
      const verb = isRead ? "reads key" : "may not read key";
      nodes.push(make("p", null, `query ${this.name(query)} ${verb} ${this.name(key)}`));
    } else {
      nodes.push(...this.weightTold(this.at));
    }
    if (query === this.prompt - 1) {
      nodes.push(make("p", "tip-small", "The last row of prefill: its output chose the first output token, x\u2080."));
    }
    this.ctx.tip.show(anchor, nodes);
  }

  weightTold({ plane, query, key }) {
    const head = this.weights.heads[plane] ?? null;
    const shared = this.model && head !== null ? Math.floor((head * this.model.kv_heads) / this.model.heads) : 0;
    const whose = head === null ? "" : `, head ${head} on K/V head ${shared}`;
    const names = `query ${this.name(query)}, key ${this.name(key)}${whose}`;
    const own = this.exact;
    if (own && own.query === query && own.head === head && own.kb === 1) {
      const weight = own.weights[key - own.k0];
      return [make("p", "tip-title", `weight ${weightText(weight)}`), make("p", null, names)];
    }
    const block = this.weights.holding(query);
    const weight = block ? weightAt(block, plane, query, key) : null;
    if (weight === null) return [make("p", null, `${names}: this row was not looked at`)];
    const isOne = block.qb === 1 && block.kb === 1;
    const about = isOne ? "" : ` at most: the largest of ${block.qb} \u00d7 ${block.kb}`;
    return [make("p", "tip-title", `weight ${weight.toPrecision(3)}${about}`), make("p", null, names)];
  }

  left() {
    this.at = null;
    clearTimeout(this.asking);
    this.ctx.hover.point(0, null);
    this.ctx.tip.hide();
  }
}

function weightText(weight) {
  if (weight === undefined || Number.isNaN(weight)) return "is not a number";
  return weight === 0 ? "0" : String(Number(weight.toPrecision(6)));
}

// Where each head's square lies, and the frames around those that share a K/V head.
function headPlaces(heads, shared, { width, height }) {
  const group = heads % shared === 0 ? heads / shared : 1;
  const count = heads / group;
  const gap = group > 1 ? 4 : 2;
  let best = { side: 0, across: 1 };
  for (let across = 1; across <= count; across += 1) {
    const rows = Math.ceil(count / across);
    const side = Math.min((width - across * (gap * 2)) / (across * group) - 2, height / rows - gap * 2 - 2);
    if (side > best.side) best = { side: Math.floor(side), across };
  }
  const side = Math.max(6, best.side);
  const wide = group * (side + 2) + gap;
  const tall = side + 2 + gap;
  const places = { heads: [], groups: [] };
  for (let head = 0; head < heads; head += 1) {
    const one = Math.floor(head / group);
    const x = (one % best.across) * (wide + gap) + gap / 2 + 1;
    const y = Math.floor(one / best.across) * (tall + gap) + gap / 2 + 1;
    if (head % group === 0 && group > 1) places.groups.push({ x: x - gap / 2 - 1, y: y - gap / 2 - 1, width: wide, height: tall });
    places.heads.push({ x: x + (head % group) * (side + 2), y, side });
  }
  return places;
}
