// The token strip and the text: every token of each row with its state, and the text they make.

const HEAD_TOKENS = 80;
const TAIL_TOKENS = 400;
const STATE_NAMES = {
  waiting: "not fed yet",
  feeding: "being fed",
  fed: "fed in this step, stored",
  stored: "stored",
  selected: "selected, not stored",
};

class Strip {
  constructor(row, ctx) {
    this.row = row;
    this.ctx = ctx;
    this.tokens = [];
    this.drawn = new Map();
    this.isOpen = false;
    this.fedFrom = 0;
    this.fedTo = 0;
    this.text = "";
    this.node = make("div", "strip");
    this.node.setAttribute("role", "group");
    this.node.setAttribute("aria-label", "Tokens; arrow keys move from one to the next");
    this.gap = make("button", "gap");
    this.gap.type = "button";
    this.gap.hidden = true;
    this.gap.addEventListener("click", () => this.unfold());
    this.node.append(this.gap);
    this.isAtEnd = true; // it follows the newest token unless the reader has scrolled away
    this.node.addEventListener("scroll", () => {
      this.isAtEnd = this.node.scrollHeight - this.node.scrollTop - this.node.clientHeight < 30;
    });
    document.fonts.ready.then(() => this.follow());
    this.node.addEventListener("mouseover", (event) => this.pointed(event.target));
    this.node.addEventListener("mouseleave", () => this.leave());
    this.node.addEventListener("focusin", (event) => this.pointed(event.target));
    this.node.addEventListener("focusout", () => this.leave());
    this.node.addEventListener("keydown", (event) => this.moved(event));
  }

  add(tokens) {
    if (!tokens.length) return;
    const before = this.tokens.length;
    for (const token of tokens) this.tokens.push(token);
    const tail = this.isOpen ? 0 : Math.max(HEAD_TOKENS, this.tokens.length - TAIL_TOKENS);
    for (let place = before; place < this.tokens.length; place += 1) {
      if (place < HEAD_TOKENS || place >= tail) this.draw(place);
    }
    if (!this.isOpen) this.fold(tail);
    this.follow();
  }

  follow() {
    if (this.isAtEnd) this.node.scrollTop = this.node.scrollHeight;
  }

  draw(place) {
    const token = this.tokens[place];
    const node = make("span", "tok " + token.kind + (token.isOutput ? " out" : ""), token.text);
    node.dir = "auto";
    node.dataset.position = place;
    node.tabIndex = place === 0 ? 0 : -1;
    if (token.p !== null && token.p !== undefined) {
      node.style.setProperty("--p", Math.max(0.02, token.p));
    }
    this.drawn.set(place, node);
    this.node.append(node);
    this.mark(place);
  }

  fold(tail) {
    if (tail <= HEAD_TOKENS) return;
    for (const [place, node] of this.drawn) {
      if (place >= tail) break;
      if (place >= HEAD_TOKENS) node.remove(), this.drawn.delete(place);
    }
    if (this.gap.hidden) this.drawn.get(HEAD_TOKENS - 1)?.after(this.gap);
    this.gap.hidden = false;
    this.gap.textContent = `\u22ef ${group(tail - HEAD_TOKENS)} more tokens \u22ef`;
  }

  unfold() {
    this.isOpen = true;
    this.gap.hidden = true;
    for (const node of this.drawn.values()) node.remove();
    this.drawn.clear();
    for (let place = 0; place < this.tokens.length; place += 1) this.draw(place);
  }

  // The newest step fed T tokens; with them the cache holds L.
  step(fed, context) {
    const from = Math.min(this.fedFrom, context - fed);
    this.fedFrom = context - fed;
    this.fedTo = context;
    this.mode = null;
    this.markFrom(from);
  }

  // Before the first step: the prompt waits, or is being fed.
  before(isRunning) {
    const mode = isRunning ? "feeding" : "waiting";
    if (this.fedTo || this.mode === mode) return;
    this.mode = mode;
    this.markFrom(0);
  }

  markFrom(from) {
    for (const place of this.drawn.keys()) if (place >= from) this.mark(place);
  }

  state(place) {
    if (!this.fedTo) return this.mode || "waiting";
    if (place < this.fedFrom) return "stored";
    if (place < this.fedTo) return "fed";
    return this.tokens[place].isOutput ? "selected" : "waiting";
  }

  mark(place) {
    this.drawn.get(place).dataset.state = this.state(place);
  }

  pointed(target) {
    const place = Number(target?.dataset?.position ?? NaN);
    if (Number.isNaN(place)) return;
    this.ctx.hover.point(this.row, place);
    this.ctx.tip.show(target, this.explain(place));
    target.setAttribute("aria-label", this.spoken(place));
  }

  leave() {
    this.ctx.hover.point(this.row, null);
    this.ctx.tip.hide();
  }

  moved(event) {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const place = Number(event.target?.dataset?.position ?? NaN);
    if (!move || Number.isNaN(place)) return;
    const places = [...this.drawn.keys()].sort((a, b) => a - b);
    const next = this.drawn.get(places[places.indexOf(place) + move]);
    if (!next) return;
    event.preventDefault();
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  light(position) {
    if (this.lit) this.lit.classList.remove("lit");
    this.lit = position === null ? null : this.drawn.get(position);
    if (this.lit) this.lit.classList.add("lit");
  }

  spoken(place) {
    const token = this.tokens[place];
    const chance = token.p === null || token.p === undefined ? "" : `, probability ${percentText(token.p)}`;
    return `token ${place}: ${token.text}, id ${token.id}, ${STATE_NAMES[this.state(place)]}${chance}`;
  }

  explain(place) {
    const token = this.tokens[place];
    const title = make("p", "tip-title");
    title.append(make("span", "tip-token", token.text));
    const origin = token.isOutput ? `output, step ${token.step}` : "prompt";
    const nodes = [
      title,
      make("p", null, `position ${group(place)}, ${origin}: ${STATE_NAMES[this.state(place)]}`),
      make("p", "mono", `id ${token.id}   bytes ${token.hex || "none"}`),
    ];
    if (token.kind === "fragment") nodes.push(make("p", null, "Only a part of a character: its bytes are shown."));
    if (token.isOutput) nodes.push(...this.chances(token));
    return nodes;
  }

  chances(token) {
    const own = make("p", null, `probability ${percentText(token.p)}, measured, before temperature`);
    const table = make("div", "chances");
    for (const [id, text, p] of token.candidates) {
      const line = make("div", "chance" + (id === token.id ? " chosen" : ""));
      const bar = make("span", "chance-bar");
      bar.style.width = `${Math.max(1, (p || 0) * 100)}%`;
      const track = make("span", "chance-track");
      track.append(bar);
      line.append(make("span", "tip-token", text), track, make("span", "chance-p", percentText(p)));
      table.append(line);
    }
    return [own, table];
  }
}

class TokensPanel {
  mount(el, ctx) {
    this.ctx = ctx;
    const { panel, caption, body, tools, help } = makePanel("tokens", "Tokens", ctx.data.explanations?.tokens);
    this.panel = panel;
    caption.remove();
    this.legend = make("div", "legend");
    for (const state of ["stored", "fed", "selected"]) {
      const entry = make("span", "entry");
      const sample = make("span", "tok sample", "a");
      sample.dataset.state = state;
      sample.setAttribute("aria-hidden", "true");
      const words = { stored: "stored", fed: "fed in this step", selected: "selected, not stored" };
      entry.append(sample, make("span", null, words[state]));
      this.legend.append(entry);
    }
    const entry = make("span", "entry entry-p");
    const bar = make("span", "tok out sample", "a");
    bar.style.setProperty("--p", 0.7);
    bar.setAttribute("aria-hidden", "true");
    entry.append(bar, make("span", null, "bar: probability"));
    this.legend.append(entry);
    tools.insertBefore(this.legend, help);
    this.strips = make("div", "strips");
    this.texts = make("div", "texts");
    this.texts.setAttribute("aria-label", "Text so far");
    body.append(this.strips, this.texts);
    el.append(panel);
    ctx.hover.listen((place) => this.rows.forEach((row) => row.strip.light(place?.row === row.strip.row ? place.position : null)));
    this.reset();
  }

  reset() {
    this.rows = [];
    this.strips.replaceChildren();
    this.texts.replaceChildren();
    this.ctx.tokens = this.rows;
  }

  row(number) {
    while (this.rows.length <= number) {
      const strip = new Strip(this.rows.length, this.ctx);
      const text = make("div", "text");
      text.dir = "auto";
      text.tabIndex = 0;
      const done = document.createTextNode("");
      const end = document.createTextNode("");
      text.append(done, end, make("span", "caret"));
      strip.node.dataset.row = text.dataset.row = this.rows.length + 1;
      this.strips.append(strip.node);
      this.texts.append(text);
      this.rows.push({ strip, text, done, end });
    }
    return this.rows[number];
  }

  update(frame) {
    const added = new Map();
    this.collect(frame, added);
    if (frame.model) this.panel.classList.toggle("several", frame.model.requests.length > 1);
    for (const [number, tokens] of added) this.row(number).strip.add(tokens);
    for (const [number, fed, stored] of frame.batch?.step.strips || []) {
      this.row(number).strip.step(fed, stored);
    }
    const steps = frame.batch ? [] : frame.mask || [];
    if (steps.length) this.row(0).strip.step(steps[steps.length - 1][1], steps[steps.length - 1][2]);
    for (const row of this.rows) row.strip.before(frame.run.state === "running");
    for (const part of frame.text || []) this.write(part);
    this.texts.classList.toggle("going", frame.run.state === "running");
  }

  collect(frame, added) {
    const list = (number) => {
      if (!added.has(number)) added.set(number, []);
      return added.get(number);
    };
    for (const [number, id, hex, text, kind] of frame.prompt || []) {
      list(number).push({ id, hex, text, kind, isOutput: false });
    }
    for (const [number, step, id, hex, text, kind, p, finish, candidates] of frame.outputs || []) {
      list(number).push({ id, hex, text, kind, p, step, finish, candidates, isOutput: true });
    }
  }

  write(part) {
    const row = this.row(part.row);
    if (part.add) row.done.appendData(part.add);
    row.end.data = part.end;
    if (part.add) row.text.scrollTop = row.text.scrollHeight;
  }

  retheme() {}
}
