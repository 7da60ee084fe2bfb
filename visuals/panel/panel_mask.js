// Attention on a canvas, in two views of one picture: the mask, which keys each token may read, and
// the weights, what the chosen layer and head made of them. Rows are queries, columns keys.

const EXACT_AFTER_MS = 120; // the pointer rests before an exact row is asked for
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const ALL_KEYS = { window: null, chunked: false, attends: true };

// What was last chosen in any panel; the next one begins with it.
const chosen = (window.__tbtLook ??= { view: "mask", scale: "linear", picked: null });

// One request's part of the mask.
class MaskRow {
  constructor(prompt = Infinity) {
    this.blocks = []; // runs of rows: { phase, from, to, edges }, the newest step's last
    this.context = 0;
    this.prompt = prompt;
  }

  get newest() {
    return this.blocks[this.blocks.length - 1];
  }

  get isPromptFed() {
    return this.context >= this.prompt;
  }

  add(phase, fed, to) {
    const from = to - fed;
    const before = this.blocks[this.blocks.length - 2];
    const { newest } = this;
    if (before && before.phase === newest.phase && before.to === newest.from) {
      before.to = newest.to;
      before.edges.push(newest.from);
      this.blocks.pop();
    }
    this.blocks.push({ phase, from, to, edges: [from] });
    this.context = Math.max(this.context, to);
  }
}

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
    this.painter = new MaskPainter(this);
    this.speech = new MaskWords(this);
    this.link = new AttentionLink((header, body) => this.taken(header, body));
    this.toggles(parts);
    this.pickers(parts);
    this.canvas = make("canvas", "mask");
    this.canvas.setAttribute("role", "img");
    this.canvas.tabIndex = 0;
    parts.body.append(this.canvas);
    this.foot = make("p", "look-foot");
    parts.panel.insertBefore(this.foot, parts.body.nextSibling);
    el.append(parts.panel);
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(parts.body);
    this.canvas.addEventListener("mousemove", (event) => this.pointed(event));
    this.canvas.addEventListener("mouseleave", () => this.left());
    this.canvas.addEventListener("keydown", (event) => this.moved(event));
    this.canvas.addEventListener("blur", () => this.left());
    ctx.hover.listen((place) => {
      this.lit = place?.row === this.rowNumber ? place.position : null;
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
    this.requests = this.picker(line, "Request", () => this.pick());
    this.layers = this.picker(line, "Layer", () => this.pick());
    this.heads = this.picker(line, "Head", () => this.pick());
    this.scales = this.picker(line, "Colour scale", () => {
      this.scale = chosen.scale = this.scales.value;
      this.say();
      this.draw();
    });
    for (const [name, { label, tip }] of Object.entries(SCALES)) {
      const entry = option(name, label);
      entry.title = tip;
      this.scales.append(entry);
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
    this.rows = [new MaskRow()];
    this.words = [];
    this.cost = "";
    this.model = null;
    this.lit = null;
    this.at = null;
    this.requests.replaceChildren();
    this.layers.replaceChildren();
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
    this.requests.hidden = this.rows.length < 2;
    this.layers.hidden = !this.layers.length;
    this.heads.hidden = this.scales.hidden = !isWeights;
    this.legend.hidden = isWeights;
    this.say();
    this.draw();
  }

  offer(model) {
    this.model = model;
    this.requests.replaceChildren(...this.rows.map((_, number) => option(String(number), `request ${number + 1}`)));
    this.layers.replaceChildren(
      ...model.of_layer.map((kind, layer) => {
        const entry = option(String(layer), `layer ${layer}: ${model.kinds[kind].short}`);
        entry.title = model.kinds[kind].label;
        return entry;
      }),
    );
    this.heads.replaceChildren(...this.headOptions(model));
    this.mark(this.picked || { layer: model.default, head: null, all: false, row: 0 });
  }

  // Query heads that share a K/V head stand together.
  headOptions({ heads, kv_heads: shared }) {
    const options = [option("mean", `mean of ${heads} heads`), option("all", `all ${heads} heads`)];
    const size = heads / shared;
    if (!(Number.isInteger(size) && size > 1)) {
      for (let head = 0; head < heads; head += 1) options.push(option(String(head), `head ${head}`));
      return options;
    }
    for (let one = 0; one < shared; one += 1) {
      const holder = make("optgroup");
      holder.label = `K/V head ${one}`;
      for (let head = one * size; head < (one + 1) * size; head += 1) {
        holder.append(option(String(head), `head ${head}`));
      }
      options.push(holder);
    }
    return options;
  }

  mark({ layer, head, all, row }) {
    this.layers.value = String(Math.min(layer, Math.max(0, this.layers.length - 1)));
    this.heads.value = all ? "all" : head === null ? "mean" : String(head);
    if (!this.heads.value) this.heads.value = "mean";
    this.requests.value = String(row < this.rows.length ? row : 0);
  }

  // What the pickers say goes to the engine, and to the page for the next run.
  pick() {
    const head = this.heads.value;
    this.picked = chosen.picked = {
      layer: Number(this.layers.value),
      head: head === "mean" || head === "all" ? null : Number(head),
      all: head === "all",
      row: Number(this.requests.value || 0),
    };
    this.link.ask({ capture: this.picked });
    this.ctx.tell("capture", this.picked);
    this.say();
    this.draw();
  }

  // The picture shows what was looked at, which may be another layer than the one just picked.
  get seen() {
    return this.view === "weights" ? this.state?.choice : null;
  }

  get layer() {
    return this.seen?.layer ?? Number(this.layers.value || 0);
  }

  get isOtherLayer() {
    return this.layer !== Number(this.layers.value || 0);
  }

  get rowNumber() {
    const number = this.seen?.row ?? Number(this.requests.value || 0);
    return number < this.rows.length ? number : 0;
  }

  get row() {
    return this.rows[this.rowNumber];
  }

  get kind() {
    return this.model?.kinds[this.model.of_layer[this.layer]] || ALL_KEYS;
  }

  // The first key that a query of the layer may read.
  start(query) {
    const { window: size, chunked } = this.kind;
    if (size === null) return 0;
    return chunked ? query - (query % size) : Math.max(0, query + 1 - size);
  }

  // Tokens along each axis. Weights may come before the frame of their step.
  get axisCells() {
    const seen = this.view === "weights" ? this.weights.end : 0;
    return axisEnd(Math.max(this.row.context, seen, 1), 8);
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
    const isSame = (a, b) => ["layer", "head", "all", "row"].every((part) => a[part] === b[part]);
    if (state.reset && choice && this.picked && !this.wasAsked && !isSame(choice, this.picked)) {
      this.wasAsked = true; // picked before there was a connection
      this.link.ask({ capture: this.picked });
    } else if (choice && !state.notice) {
      this.mark(choice);
    }
  }

  update(frame) {
    if (frame.model) {
      this.rows = frame.model.requests.map((request) => new MaskRow(request.prompt_tokens));
      if (!this.rows.length) this.rows = [new MaskRow()];
      this.wasAsked = false;
      this.offer(frame.model.attention);
    }
    for (const [phase, fed, context] of frame.masks?.length ? [] : frame.mask || []) {
      this.rows[0].add(phase, fed, context);
    }
    for (const [phase, rows] of frame.masks || []) {
      for (const [number, fed, context] of rows) this.rows[number].add(phase, fed, context);
    }
    if (frame.mask_words) {
      this.words = frame.mask_words;
      this.cost = frame.capture;
    }
    if (frame.model) this.arrange();
    else if (frame.mask_words) this.say();
    if (frame.mask?.length || frame.masks?.length) this.draw();
  }

  draw() {
    this.painter.draw();
  }

  say() {
    const caption = this.speech.caption();
    this.caption.textContent = caption;
    this.caption.title = caption;
    // A reason for an empty picture is read whole; a step's line must not move the picture.
    this.caption.classList.toggle("told", this.view === "weights" && !this.weights.blocks.length);
    if (!this.isByKey) this.canvas.setAttribute("aria-label", this.speech.label());
    const { notes, title, isWarning } = this.speech.foot();
    const nodes = this.view === "weights" && this.weights.blocks.length ? [this.speech.key()] : [];
    this.foot.title = title;
    this.foot.replaceChildren(...nodes, make("span", null, notes));
    this.foot.classList.toggle("warns", isWarning);
  }

  retheme() {
    this.painter.forget();
    this.weights.repaint();
    this.draw();
  }

  close() {
    this.link.close();
    this.observer.disconnect();
    clearTimeout(this.asking);
  }

  // The pointer, and the arrow keys in its place.

  pointed(event) {
    this.isByKey = false;
    const spot = this.painter.where && spotAt(event.offsetX, event.offsetY, this.painter.where);
    if (!spot || spot.query >= this.row.context || spot.key >= this.row.context) return this.left();
    return this.look(spot, { x: event.clientX, y: event.clientY });
  }

  moved(event) {
    if (event.key === "Escape") return this.left();
    const move = MOVES[event.key];
    if (!move || !this.row.context) return undefined;
    event.preventDefault();
    const last = this.row.context - 1;
    const within = (place) => Math.min(last, Math.max(0, place));
    const step = event.shiftKey ? 10 : 1;
    const { plane, query, key } = this.at || { plane: 0, query: last, key: last };
    const isFirst = !this.at;
    this.isByKey = true;
    const spot = {
      plane,
      query: isFirst ? query : within(query + step * move[0]),
      key: isFirst ? key : within(key + step * move[1]),
    };
    const box = this.canvas.getBoundingClientRect();
    const { x, y } = cellAt(spot, this.painter.where);
    return this.look(spot, { x: box.left + x, y: box.top + y });
  }

  look(spot, { x, y }) {
    const isMoved = spot.query !== this.at?.query || spot.plane !== this.at?.plane;
    this.at = { ...spot, x, y };
    this.ctx.hover.point(this.rowNumber, spot.query);
    if (this.isByKey) this.draw();
    this.tell();
    if (isMoved && this.view === "weights") this.askExact();
  }

  askExact() {
    clearTimeout(this.asking);
    const { query, plane } = this.at;
    const head = this.weights.heads[plane] ?? null;
    this.asking = setTimeout(() => this.link.ask({ query, head }), EXACT_AFTER_MS);
  }

  tell() {
    if (!this.at) return;
    const { x, y } = this.at;
    const anchor = { getBoundingClientRect: () => new DOMRect(x, y, 1, 1) };
    const lines = this.speech.told(this.at);
    this.ctx.tip.show(anchor, lines.map(([className, text]) => make("p", className, text)));
    if (this.isByKey) this.canvas.setAttribute("aria-label", lines.map(([, text]) => text).join(". "));
  }

  left() {
    this.at = null;
    clearTimeout(this.asking);
    this.ctx.hover.point(this.rowNumber, null);
    this.ctx.tip.hide();
    if (this.isByKey) {
      this.isByKey = false;
      this.say();
      this.draw();
    }
  }
}

function option(value, text) {
  const made = make("option", null, text);
  made.value = value;
  return made;
}
