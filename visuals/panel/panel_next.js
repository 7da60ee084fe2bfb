// The next token: its likeliest candidates before and after sampling, and the entropy over the run.

class NextTokenPanel extends ChartPanel {
  mount(el, ctx) {
    this.ctx = ctx;
    const parts = makePanel("next", "Next token", ctx.data.explanations?.next);
    this.caption = parts.caption;
    this.how = make("span", "next-how");
    parts.tools.insertBefore(this.how, parts.help);
    parts.body.classList.add("pair");
    this.table = make("div", "next-table");
    parts.body.append(this.table);
    this.chart(parts.body, "entropy_by_step", "wide");
    el.append(parts.panel);
  }

  reset() {
    this.table.replaceChildren();
    this.how.textContent = "";
    super.reset();
  }

  update(frame) {
    if (frame.next) this.show(frame.next);
    return super.update(frame);
  }

  show({ step, how, caption, rows }) {
    this.caption.textContent = `Step ${group(step)}. ${caption}`;
    this.caption.title = this.caption.textContent;
    this.how.textContent = how;
    const isGreedy = rows.every((row) => row[3] === null);
    this.table.classList.toggle("greedy", isGreedy);
    const head = make("div", "next-row next-head");
    head.append(make("span", null, "token"), make("span", null, isGreedy ? "probability" : "model\u2019s own"));
    if (!isGreedy) head.append(make("span", null, "drawn from"));
    this.table.replaceChildren(head, ...rows.map((row) => this.row(row, isGreedy)));
  }

  row([, text, before, after, isChosen], isGreedy) {
    const line = make("div", "next-row" + (isChosen ? " chosen" : ""));
    line.append(make("span", "tip-token", (isChosen ? "\u25b8 " : "") + text), this.bar(before));
    if (!isGreedy) line.append(this.bar(after, after === 0 ? "ruled out" : null));
    return line;
  }

  bar(p, words) {
    const cell = make("span", "next-bar");
    const track = make("span", "chance-track");
    const filled = make("span", "chance-bar");
    filled.style.width = `${(p || 0) * 100}%`;
    track.append(filled);
    cell.append(track, make("span", "chance-p", words || percentText(p)));
    return cell;
  }
}
