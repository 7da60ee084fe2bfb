// The Vega charts: one view for each spec, made once; new rows go in by the name of their data.

const CHART_INTERVAL_MS = 180; // charts follow at about 5 a second, text and mask at 10

// Room for axis labels and titles, kept whatever the numbers are, so that nothing twitches.
const ROOM = { left: 74, right: 16, top: 10, bottom: 42 };
const NOTE_ROOM = 20; // over a chart with notes above its plot
const BARE_ROOM = 22; // under an axis without a title
const LEGEND_ROOM = 96;
const ERRORS_ONLY = 1; // Vega warns of every chart that is still empty

let vegaModule = null;

function loadVega() {
  vegaModule ??= import(new URL("/live/vega.js", location.origin).href).then(() => window.vegaEmbed);
  return vegaModule;
}

function vegaConfig(theme) {
  const soft = theme.text;
  return {
    background: null,
    font: theme.font,
    view: { stroke: null },
    axis: {
      labelColor: soft,
      titleColor: soft,
      tickColor: theme.border,
      domainColor: theme.border,
      gridColor: theme.border,
      labelFontSize: 14,
      titleFontSize: 14,
      titleFontWeight: 500,
      titlePadding: 4,
      labelOverlap: true,
    },
    axisY: { minExtent: 44, maxExtent: 44 },
    style: { bound: { stroke: theme.text } },
    legend: { labelColor: soft, titleColor: soft, labelFontSize: 14, titleFontSize: 14 },
  };
}

class ChartView {
  constructor(node, name, ctx, { hasLegend = false, isBare = false, top = ROOM.top } = {}) {
    this.node = node;
    this.name = name;
    this.ctx = ctx;
    this.hasLegend = hasLegend;
    this.room = { ...ROOM, top };
    if (hasLegend) this.room.right = LEGEND_ROOM;
    if (isBare) this.room.bottom = BARE_ROOM;
    this.seen = new Map();
    this.observer = new ResizeObserver(() => this.fit());
    this.observer.observe(node);
  }

  get isShown() {
    return this.node.clientWidth > 0;
  }

  size() {
    const { left, right, top, bottom } = this.room;
    return {
      width: Math.max(40, this.node.clientWidth - left - right),
      height: Math.max(30, this.node.clientHeight - top - bottom),
    };
  }

  names() {
    const found = new Set();
    const walk = (part) => {
      if (part?.data?.name) found.add(part.data.name);
      for (const layer of part?.layer || []) walk(layer);
    };
    walk(this.ctx.data.specs[this.name]);
    return found;
  }

  async embed() {
    const embed = await loadVega();
    const spec = structuredClone(this.ctx.data.specs[this.name]);
    const { width, height } = this.size();
    Object.assign(spec, { width, height, padding: this.room, autosize: { type: "none" } });
    const config = vegaConfig(this.ctx.theme);
    if (!this.hasLegend) config.legend.disable = true;
    const holder = make("div", "vega");
    const result = await embed(holder, spec, {
      actions: false,
      renderer: "canvas",
      config,
      logLevel: ERRORS_ONLY,
    });
    if (this.isClosed) return result.finalize();
    this.result?.finalize();
    this.result = result;
    this.seen.clear();
    this.node.replaceChildren(holder);
  }

  get isEmpty() {
    return [...this.names()].every((name) => !this.ctx.store.rows.get(name)?.length);
  }

  // Draw what has changed; resolves when the picture stands.
  async draw() {
    if (!this.isShown) return;
    this.node.style.visibility = this.isEmpty ? "hidden" : "";
    if (this.isEmpty) return;
    if (!this.result) await (this.embedding ??= this.embed());
    const view = this.result?.view;
    if (!view) return;
    let isChanged = false;
    for (const name of this.names()) {
      const version = this.ctx.store.version(name);
      if (this.seen.get(name) === version) continue;
      this.seen.set(name, version);
      view.data(name, this.ctx.store.drawn(name));
      isChanged = true;
    }
    if (isChanged) await view.runAsync();
  }

  async fit() {
    const view = this.result?.view;
    if (!view || !this.isShown) return;
    const { width, height } = this.size();
    if (view.width() === width && view.height() === height) return;
    await view.width(width).height(height).runAsync();
  }

  async retheme() {
    if (!this.result) return;
    await this.embed();
    await this.draw();
  }

  close() {
    this.isClosed = true;
    this.observer.disconnect();
    this.result?.finalize();
  }
}

class ChartPanel {
  constructor() {
    this.charts = [];
    this.last = 0;
  }

  chart(parent, name, className, options) {
    const node = make("div", "chart " + (className || ""));
    parent.append(node);
    const view = new ChartView(node, name, this.ctx, options);
    this.charts.push(view);
    return node;
  }

  reset() {
    this.caption.textContent = "";
    this.paint();
  }

  update(frame) {
    const now = performance.now();
    const isEnd = frame.run.final && frame.to === frame.total;
    if (!isEnd && now - this.last < CHART_INTERVAL_MS) {
      clearTimeout(this.later);
      this.later = setTimeout(() => this.paint(), CHART_INTERVAL_MS);
      return undefined;
    }
    return this.paint();
  }

  paint() {
    clearTimeout(this.later);
    this.last = performance.now();
    return Promise.all(this.charts.map((chart) => chart.draw()));
  }

  retheme() {
    return Promise.all(this.charts.map((chart) => chart.retheme()));
  }

  close() {
    clearTimeout(this.later);
    for (const chart of this.charts) chart.close();
  }
}

class LatencyPanel extends ChartPanel {
  mount(el, ctx) {
    this.ctx = ctx;
    const parts = makePanel("latency", "Step latency", ctx.data.explanations?.latency);
    this.caption = parts.caption;
    parts.body.classList.add("pair");
    this.chart(parts.body, "prefill_step_times", "narrow", { top: NOTE_ROOM });
    this.chart(parts.body, "decode_step_times", "wide", { top: NOTE_ROOM });
    el.append(parts.panel);
  }

  update(frame) {
    if (frame.captions) this.caption.textContent = frame.captions.latency;
    return super.update(frame);
  }
}

const CACHE_VIEWS = [
  ["cache_growth", "total"],
  ["cache_layers", "layers"],
  ["tokens_per_layer", "tokens"],
  ["account", "formula"],
];

class CachePanel extends ChartPanel {
  mount(el, ctx) {
    this.ctx = ctx;
    const parts = makePanel("kv", "K/V cache", ctx.data.explanations?.kv);
    this.caption = parts.caption;
    const choice = make("div", "choice");
    choice.setAttribute("role", "group");
    choice.setAttribute("aria-label", "Show the cache as");
    parts.tools.insertBefore(choice, parts.help);
    this.views = CACHE_VIEWS.map(([name, label]) => {
      const button = make("button", null, label);
      button.type = "button";
      button.addEventListener("click", () => this.choose(name));
      choice.append(button);
      const isChart = name !== "account";
      const node = isChart
        ? this.chart(parts.body, name, "", { hasLegend: name === "cache_layers" })
        : this.accountNode(parts.body);
      return { name, button, node };
    });
    this.verdict = make("span", "verdict");
    const line = make("div", "caption-line");
    parts.caption.replaceWith(line);
    line.append(parts.caption, this.verdict);
    this.choose("cache_growth");
    el.append(parts.panel);
  }

  choose(chosen) {
    for (const { name, button, node } of this.views) {
      button.setAttribute("aria-pressed", String(name === chosen));
      node.hidden = name !== chosen;
    }
    this.paint();
  }

  accountNode(parent) {
    const node = make("div", "account");
    node.tabIndex = 0;
    node.setAttribute("role", "group");
    node.setAttribute("aria-label", "Bytes counted and bytes of the tensors");
    parent.append(node);
    this.account = node;
    return node;
  }

  reset() {
    this.verdict.hidden = true;
    this.account.replaceChildren();
    super.reset();
  }

  update(frame) {
    if (frame.captions) this.caption.textContent = frame.captions.kv;
    if (frame.account) this.showAccount(frame.account);
    return super.update(frame);
  }

  // Each line: whose bytes, how they were counted, what the tensors hold.
  showAccount({ verdict, reason, lines }) {
    this.verdict.hidden = false;
    this.verdict.dataset.verdict = verdict;
    this.verdict.textContent = verdict;
    this.verdict.title = reason || "The tensors hold exactly what the formula gives.";
    const nodes = lines.map(([name, formula, bytes]) => {
      const line = make("p", "account-line");
      line.append(make("b", null, name + ": "));
      if (formula) line.append(make("span", null, formula + "; "));
      line.append(make("span", "account-sum", "tensors " + bytes));
      return line;
    });
    if (reason) nodes.unshift(make("p", "account-line", reason));
    this.account.replaceChildren(...nodes);
  }
}

class UtilizationPanel extends ChartPanel {
  mount(el, ctx) {
    this.ctx = ctx;
    const parts = makePanel("utilization", "Utilisation", ctx.data.explanations?.utilization);
    this.caption = make("span");
    this.readings = make("div", "readings");
    this.missing = make("p", "missing");
    parts.caption.replaceWith(this.readings);
    parts.body.classList.add("pair");
    this.chart(parts.body, "utilization", "wide", { isBare: true });
    this.power = this.chart(parts.body, "power", "third", { isBare: true });
    this.power.hidden = true;
    parts.panel.insertBefore(this.missing, parts.body.nextSibling);
    el.append(parts.panel);
  }

  update(frame) {
    if (frame.unavailable) {
      this.missing.textContent = frame.unavailable.join(" ");
      this.missing.title = this.missing.textContent;
      this.missing.hidden = !frame.unavailable.length;
    }
    if (this.ctx.store.rows.get("power")?.length) this.power.hidden = false;
    if (frame.readings?.length) this.readings.replaceChildren(...frame.readings.map(readingEntry));
    return super.update(frame);
  }
}

function readingEntry({ name, colour, width, text }) {
  const entry = make("span", "entry");
  const line = make("span", "line");
  line.style.background = colour;
  line.style.height = width + "px";
  entry.append(line, make("span", null, name + " "), make("b", null, text));
  return entry;
}
