// What the attention picture says in words: its caption, its text for those who cannot see it, the
// line under it, and the description of the cell pointed at.

/** @import { Cell } from "./types.js" */
/** @import { MaskPanel } from "./mask_panel.js" */
/** @typedef {[string | null, string]} Paragraph A class and a text. */

import { rampOf, SCALES } from "./colour_scales.js";
import { COLOURS, make } from "./elements.js";
import { group, percentText, weightText } from "./numbers.js";
import { bestKeys, weightAt } from "./weight_blocks.js";

export const NO_SOCKET = "Weights come over a WebSocket, which this connection does not have.";
const BEST_KEYS = 2; // with the layer and the heads they fit on two lines
const WAITING = "No weights yet.";
const LAST_ROW = "The last row of prefill: its output chose the first output token, x\u2080.";

export class MaskWords {
  /** @param {MaskPanel} panel */
  constructor(panel) {
    this.panel = panel;
  }

  caption() {
    return this.panel.view === "weights" ? this.weights() : this.mask().caption;
  }

  // The whole picture, for those who cannot see it.
  label() {
    const { panel } = this;
    const row = panel.rows.length > 1 ? `, request ${panel.rowNumber + 1}` : "";
    const last = panel.row.isPromptFed && panel.kind.attends ? ` ${LAST_ROW}` : "";
    if (panel.view !== "weights") return this.mask().description + last;
    const drawn = panel.captured ? `Attention weights of layer ${panel.layer}, ${this.heads()}${row}. ` : "";
    return `${drawn || "Attention weights. "}${this.weights()}${last}`;
  }

  // Sentences come from the page for the first row; those of another row of a batch are made here.
  mask() {
    const { panel } = this;
    if (panel.rowNumber > 0) return this.ownMask(`equest ${panel.rowNumber + 1}`);
    const words = panel.words[panel.model?.of_layer[panel.layer] ?? 0];
    return {
      caption: words?.caption || "",
      description: words?.description || "Attention mask: empty, no step yet.",
    };
  }

  /** @param {string} name Of the request, without its first letter. */
  ownMask(name) {
    const { panel } = this;
    const { newest } = panel.row;
    if (!newest) {
      return { caption: `R${name}: no step yet.`, description: `Attention mask of r${name}: empty, no step yet.` };
    }
    const query = newest.to - 1;
    const keys = panel.kind.attends ? query - panel.start(query) + 1 : 0;
    const rows = newest.to - newest.edges[newest.edges.length - 1];
    const added = newest.phase === "prefill" ? `${group(rows)} rows of prefill` : "one new row";
    const caption = `R${name}: ${added}, the newest reads ${group(keys)} keys.`;
    return { caption, description: `Attention mask of ${group(panel.row.context)} rows. ${caption}` };
  }

  heads() {
    const { choice } = this.panel.state || {};
    if (!choice) return "mean over the heads";
    if (choice.all) return "each head by itself, framed by K/V head";
    return choice.head === null ? "mean over the heads" : `head ${choice.head}`;
  }

  // What is drawn, in few words.
  plane() {
    const { choice } = this.panel.state || {};
    const heads = this.panel.model?.heads;
    if (choice?.all) return "all heads";
    return choice && choice.head !== null ? `head ${choice.head}` : `mean of ${heads ?? "the"} heads`;
  }

  // The newest row in words, or that of the token pointed at.
  weights() {
    const { panel } = this;
    const { lit } = panel;
    const isLitHeld = lit !== null && panel.weights.holding(lit) !== null;
    const query = isLitHeld ? lit : panel.weights.newestQuery;
    const block = query === null ? null : panel.weights.holding(query);
    if (query === null || !block) return this.whyNot() || WAITING;
    const best = bestKeys(block, 0, query, BEST_KEYS).map(({ weight, key }) => `${this.name(key)} ${percentText(weight)}`);
    const head = panel.weights.heads.length > 1 ? `, head ${panel.weights.heads[0]}` : "";
    const reads = best.length > 1 ? " reads keys" : " reads";
    const read = best.length ? `${reads} ${best.join(", ")}` : " gives no weight that is a number";
    return `Layer ${panel.layer}, ${this.plane()}: query ${this.name(query)}${head}${read}.`;
  }

  // Why there are no weights, or not those asked for.
  whyNot() {
    const { notice, note, reason } = this.panel.state || {};
    return notice || (reason ? sentence(reason) : "") || note || "";
  }

  // The line under the picture: the colours, then what is wrong, what capturing costs, and x0.
  foot() {
    const { panel } = this;
    const isWeights = panel.view === "weights";
    const first = panel.row.isPromptFed && panel.kind.attends ? "x\u2080: last row of prefill, chose the first output token." : "";
    const { notice, note, reason } = panel.state || {};
    const isWarning = isWeights && Boolean(notice || reason);
    const isInCaption = !panel.weights.blocks.length;
    const troubles = isInCaption ? [] : [notice, reason && sentence(reason), note];
    const notes = isWeights ? [...troubles, panel.cost].filter(Boolean).join(" ") : first;
    return { notes, title: isWeights ? `${notes} ${first}`.trim() : notes, isWarning };
  }

  // The colours of both phases from the least to the most, and that of what is no number.
  key() {
    const { panel } = this;
    const node = make("span", "mask-key");
    const bars = make("span", "mask-bars");
    for (const colour of [COLOURS.prefill, COLOURS.decode]) {
      const [low, middle, high] = rampOf(colour, panel.ctx.theme).map((part) => `rgb(${part.join(" ")})`);
      const bar = make("span");
      bar.style.background = `linear-gradient(to right, ${low}, ${middle} 60%, ${high})`;
      bars.append(bar);
    }
    const { from, to } = SCALES[panel.scale];
    node.append(make("span", null, from), bars, make("span", null, to(panel.weights.topOf(panel.scale))));
    if (!panel.weights.hasNan) return node;
    const nan = make("span", "mask-nan");
    nan.style.background = COLOURS.notANumber;
    node.append(nan, make("span", null, "NaN"));
    return node;
  }

  /**
   * A token's position, and its text in marks that keep it apart from the sentence around it.
   * @param {number} position
   */
  name(position) {
    const token = this.panel.ctx.tokens[this.panel.rowNumber]?.strip.tokens[position];
    return `${group(position)}${token ? ` \u2068\u201c${token.text}\u201d\u2069` : ""}`;
  }

  /**
   * A cell in words.
   * @param {Cell} cell
   * @returns {Paragraph[]}
   */
  describe({ plane, query, key }) {
    const { panel } = this;
    const isRead = panel.kind.attends && key <= query && key >= panel.start(query);
    /** @type {Paragraph[]} */
    const lines = [];
    if (panel.view === "mask" || !isRead) {
      lines.push([null, `query ${this.name(query)} ${isRead ? "reads key" : "may not read key"} ${this.name(key)}`]);
    } else {
      lines.push(...this.weight({ plane, query, key }));
    }
    if (query === panel.row.prompt - 1) lines.push(["tip-small", LAST_ROW]);
    return lines;
  }

  /**
   * @param {Cell} cell
   * @returns {Paragraph[]}
   */
  weight({ plane, query, key }) {
    const { weights, exact, model } = this.panel;
    const head = weights.heads[plane] ?? null;
    const shared = model && head !== null ? Math.floor((head * model.kv_heads) / model.heads) : 0;
    const whose = head === null ? "" : `, head ${head} on K/V head ${shared}`;
    const names = `query ${this.name(query)}, key ${this.name(key)}${whose}`;
    if (exact && exact.query === query && exact.head === head && exact.kb === 1) {
      return [["tip-title", `weight ${weightText(exact.weights[key - exact.k0])}`], [null, names]];
    }
    const block = weights.holding(query);
    const weight = block && weightAt(block, plane, query, key);
    if (!block || weight === null) return [[null, `${names}: this row was not captured`]];
    const isOne = block.qb === 1 && block.kb === 1;
    const about = isOne || Number.isNaN(weight) ? "" : ` at most: the largest of ${block.qb} \u00d7 ${block.kb}`;
    return [["tip-title", `weight ${weightText(weight, 3)}${about}`], [null, names]];
  }
}

/** @param {string} words */
function sentence(words) {
  const begun = words[0].toUpperCase() + words.slice(1);
  return begun.endsWith(".") ? begun : begun + ".";
}
