// A batch: one step of all rows, what every slot did over time, and the shared and the own bytes.
// Shown only for runs of several requests.

const BATCH_KINDS = [
  ["prefill", "prefill"],
  ["decode", "decode"],
  ["padding", "padding"],
  ["waiting", "waits for a prefill"],
  ["queue", "no slot yet"],
];
const STEP_HEIGHT = 192; // pixels for all rows of the picture of a step
const ROWS_WITH_WORDS = 8;
const OWN_COLOURS = ["#009E73", "#3DB994", "#007455", "#7ED0B6"];

class BatchPanel extends ChartPanel {
  mount(el, ctx) {
    this.ctx = ctx;
    const parts = makePanel("batch", "Batch", ctx.data.explanations?.batch);
    this.panel = parts.panel;
    this.caption = parts.caption;
    this.choice = make("div", "choice");
    this.choice.setAttribute("role", "group");
    this.choice.setAttribute("aria-label", "Show the batch as");
    parts.tools.insertBefore(this.choice, parts.help);
    this.step = make("div", "batch-step");
    this.step.setAttribute("role", "img");
    const time = make("div", "batch-time");
    const legend = make("div", "batch-legend");
    for (const [kind, words] of BATCH_KINDS) {
      const entry = make("span", "entry");
      entry.append(make("span", "swatch kind-" + kind), make("span", null, words));
      legend.append(entry);
    }
    time.append(legend);
    this.chart(time, "slot_timeline", "batch-chart");
    this.table = make("table", "batch-table");
    this.holder = make("div", "batch-latency");
    this.holder.append(this.table);
    this.share = make("div", "batch-share");
    parts.body.classList.add("batch-body");
    parts.body.append(this.step, time, this.holder, this.share);
    this.views = [
      ["steps", [this.step, time]],
      ["latency of each", [this.holder]],
    ].map(([name, nodes]) => {
      const button = make("button", null, name);
      button.type = "button";
      button.addEventListener("click", () => this.choose(name));
      this.choice.append(button);
      return { name, button, nodes };
    });
    el.append(this.panel);
    this.choose("steps");
    this.panel.hidden = true;
  }

  choose(chosen) {
    for (const { name, button, nodes } of this.views) {
      button.setAttribute("aria-pressed", String(name === chosen));
      for (const node of nodes) node.hidden = name !== chosen;
    }
    this.paint();
  }

  reset() {
    this.panel.hidden = true;
    this.plan = null;
    this.step.replaceChildren();
    this.table.replaceChildren();
    this.share.replaceChildren();
    super.reset();
  }

  update(frame) {
    if (frame.model) {
      this.plan = frame.model.batch;
      this.panel.hidden = !this.plan;
    }
    if (!this.plan) return undefined;
    if (frame.batch) {
      this.describe(frame.batch.step);
      this.picture(frame.batch.step);
      this.bytes(frame.batch.shared, frame.batch.rates);
      this.latency(frame.batch.latency);
    }
    return super.update(frame);
  }

  describe(step) {
    const { policy, slots, requests } = this.plan;
    const waiting = step.queued ? `, ${step.queued} waiting for a slot` : "";
    const live = step.rows.filter((row) => !row[4]).length;
    const goOn = live ? `${live} of ${step.rows.length} rows go on` : "all rows are done";
    this.caption.textContent =
      `${requests} requests, ${slots ? `${slots} slots, ` : ""}${policy}. This step: T = ${group(step.T)} over ` +
      `${step.rows.filter((row) => row[2]).length} fed; ${goOn}${waiting}.`;
  }

  // Many rows are drawn thin and without words, so that all of them are seen at once.
  picture(step) {
    const isMany = step.rows.length > ROWS_WITH_WORDS;
    const height = Math.max(4, Math.floor(STEP_HEIGHT / step.rows.length));
    const lines = step.rows.map(([number, kind, fed, stored, isDone, behind]) => {
      const line = make("div", "batch-row");
      const before = Math.max(0, step.columns - stored - behind);
      const track = make("div", "batch-track");
      const parts = [
        ["pad", before],
        ["kv", stored - fed],
        [fed ? "kind-" + kind : "kv", fed],
        ["pad", behind],
      ];
      for (const [name, tokens] of parts) {
        if (!tokens) continue;
        const part = make("span", "part " + name);
        part.style.flexGrow = String(tokens);
        track.append(part);
      }
      const words = isDone && !fed ? "done" : `T=${group(fed)} L=${group(stored)}`;
      line.title = `request ${number + 1}: ${words}`;
      if (isMany) {
        line.style.height = `${height}px`;
        track.style.height = `${Math.max(3, Math.min(16, height - 2))}px`;
        track.style.borderRadius = "1px";
        line.append(track);
      } else {
        line.append(make("b", "batch-number", String(number + 1)), track, make("span", "batch-words", words));
      }
      return line;
    });
    this.step.replaceChildren(...lines);
    this.step.setAttribute("aria-label", this.spoken(step));
  }

  spoken(step) {
    const rows = step.rows.map(
      ([number, kind, fed, stored, isDone]) =>
        `request ${number + 1}: ${isDone && !fed ? "done, padding" : `${kind}, fed ${fed}, stored ${stored}`}`,
    );
    return `One step of ${step.phase}, ${step.T} tokens in all. ${rows.join("; ")}.`;
  }

  bytes(shared, rates) {
    const bar = make("div", "share-bar");
    bar.setAttribute("role", "img");
    const own = shared.own.reduce((sum, [, mib]) => sum + mib, 0);
    const total = shared.weights_mib + own;
    bar.setAttribute("aria-label", `weights ${shared.weights_mib} MiB, K/V of all rows ${own} MiB`);
    const weights = make("span", "share-weights");
    weights.style.flexGrow = String(shared.weights_mib / total);
    bar.append(weights);
    for (const [number, mib] of shared.own) {
      const part = make("span", "share-own");
      part.style.flexGrow = String(mib / total);
      part.style.background = OWN_COLOURS[number % OWN_COLOURS.length];
      bar.append(part);
    }
    const figure = (label, value, unit, source) => {
      const line = make("p", "share-figure");
      const number = make("b", null, value);
      line.append(make("span", null, label + " "), number, make("span", "unit", ` ${unit}`));
      line.title = source;
      return line;
    };
    const tag = (words) => {
      const line = make("p", "share-figure");
      line.append(make("span", "unit", words));
      return line;
    };
    this.share.replaceChildren(
      tag("counted, this step:"),
      figure("weights, read once", mibText(shared.weights_mib), "MiB", "counted"),
      bar,
      figure(`K/V, each of ${shared.own.length} its own`, mibText(own), "MiB", "counted"),
      figure("per weight byte", shared.flops_per_byte, "FLOP", "counted: linear operations / weight bytes"),
      tag("measured, decode steps so far:"),
      figure("each row", rates.each, "tok/s", "measured: median of 1 / TPOT"),
      figure("all rows", rates.all, "tok/s", "measured: tokens of all rows / step times"),
    );
  }

  latency(lines) {
    const head = make("tr");
    head.append(...this.plan.columns.map((name) => make("th", null, name)));
    const rows = lines.map((cells) => {
      const row = make("tr");
      row.append(...cells.map((cell) => make("td", null, cell)));
      return row;
    });
    this.table.replaceChildren(head, ...rows);
  }
}

function mibText(mib) {
  return mib >= 100 ? group(Math.round(mib)) : Number(mib.toPrecision(3)).toString();
}
