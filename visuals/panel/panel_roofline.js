// The roofline: whole steps, linear operations alone, or attention alone; roofs by provenance.

const ROOFLINE_VIEWS = [
  ["roofline_step", "step", "Whole steps"],
  ["roofline_linear", "linear", "Linear operations alone"],
  ["roofline_attention", "attention", "Attention alone"],
];
const ROOF_LINES = [
  ["measured", "measured here"],
  ["datasheet", "vendor's data sheet"],
];

class RooflinePanel extends ChartPanel {
  mount(el, ctx) {
    this.ctx = ctx;
    const parts = makePanel("roofline", "Roofline", ctx.data.explanations?.roofline);
    this.caption = parts.caption;
    const choice = make("div", "choice");
    choice.setAttribute("role", "group");
    choice.setAttribute("aria-label", "Show the roofline of");
    parts.tools.insertBefore(choice, parts.help);
    this.legend = make("div", "legend");
    parts.panel.insertBefore(this.legend, parts.body);
    this.alarm = make("p", "alarm");
    this.alarm.setAttribute("role", "alert");
    parts.panel.insertBefore(this.alarm, parts.body);
    this.views = ROOFLINE_VIEWS.map(([name, label, title]) => {
      const button = make("button", null, label);
      button.type = "button";
      button.title = title;
      button.addEventListener("click", () => {
        this.choose(name);
        ctx.tell("part", label); // the engine times parts only while somebody looks at them
      });
      choice.append(button);
      return { name, label, button, node: this.chart(parts.body, name) };
    });
    el.append(parts.panel);
    this.reset();
    this.choose("roofline_step");
  }

  reset() {
    this.captions = {};
    this.alarm.hidden = true;
    this.alarm.textContent = "";
    super.reset();
    this.showLegend();
  }

  choose(chosen) {
    this.chosen = chosen;
    for (const { name, button, node } of this.views) {
      button.setAttribute("aria-pressed", String(name === chosen));
      node.hidden = name !== chosen;
    }
    this.say();
    this.paint();
  }

  say() {
    const { label } = this.views.find((view) => view.name === this.chosen);
    this.caption.textContent = this.captions[label] || "";
  }

  update(frame) {
    if (frame.roofline) {
      this.captions = frame.roofline.captions;
      this.say();
      if (frame.roofline.alarm) {
        this.alarm.textContent = "\u26a0\ufe0e " + frame.roofline.alarm;
        this.alarm.hidden = false;
      }
    }
    this.showLegend();
    return super.update(frame);
  }

  // Only the roofs that are drawn are named, each with the style of its line.
  showLegend() {
    const sources = new Set((this.ctx.store.rows.get("roofline_step_ridges") || []).map((row) => row.source));
    const key = [...sources].join();
    if (key === this.legendKey) return;
    this.legendKey = key;
    const entries = ["prefill", "decode"].map((phase) => legendEntry("dot dot-" + phase, phase));
    for (const [source, words] of ROOF_LINES) {
      if (sources.has(source)) entries.push(legendEntry("roof roof-" + source, words));
    }
    if (!sources.size) entries.push(legendEntry("roof", "no roofs yet"));
    this.legend.replaceChildren(...entries);
  }
}

function legendEntry(className, words) {
  const entry = make("span", "entry");
  entry.append(make("span", className), make("span", null, words));
  return entry;
}
