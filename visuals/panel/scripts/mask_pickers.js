// What the attention panel offers to choose: request, layer, head and colour scale.

/** @import { AttentionModel, Choice } from "./types.js" */

import { SCALES } from "./colour_scales.js";
import { make, makeOption } from "./elements.js";

export class MaskPickers {
  /**
   * @param {object} calls
   * @param {() => void} calls.pick A request, layer or head was chosen.
   * @param {(scale: string) => void} calls.scale
   */
  constructor({ pick, scale }) {
    this.line = make("div", "pickers");
    this.requests = this.select("Request", pick);
    this.layers = this.select("Layer", pick);
    this.heads = this.select("Head", pick);
    this.scales = this.select("Colour scale", () => scale(this.scales.value));
    for (const [name, { label, tip }] of Object.entries(SCALES)) {
      const option = makeOption(name, label);
      option.title = tip;
      this.scales.append(option);
    }
    this.legend = make("div", "legend");
    for (const phase of ["prefill", "decode"]) {
      const entry = make("span", "entry");
      entry.append(make("span", "swatch swatch-" + phase), make("span", null, phase));
      this.legend.append(entry);
    }
    this.line.append(this.legend);
  }

  /**
   * @param {string} name
   * @param {() => void} change
   */
  select(name, change) {
    const select = make("select", "matrix");
    select.setAttribute("aria-label", name);
    select.addEventListener("change", change);
    this.line.append(select);
    return select;
  }

  clear() {
    this.requests.replaceChildren();
    this.layers.replaceChildren();
  }

  /**
   * Which pickers there are.
   * @param {{ isWeights: boolean, requests: number }} what
   */
  arrange({ isWeights, requests }) {
    this.requests.hidden = requests < 2;
    this.layers.hidden = !this.layers.length;
    this.heads.hidden = this.scales.hidden = !isWeights;
    this.legend.hidden = isWeights;
  }

  /**
   * What a model and its run offer.
   * @param {AttentionModel} model
   * @param {number} requests
   */
  offer(model, requests) {
    this.requests.replaceChildren(
      ...Array.from({ length: requests }, (_, number) => makeOption(String(number), `request ${number + 1}`)),
    );
    this.layers.replaceChildren(
      ...model.of_layer.map((kind, layer) => {
        const option = makeOption(String(layer), `layer ${layer}: ${model.kinds[kind].short}`);
        option.title = model.kinds[kind].label || "";
        return option;
      }),
    );
    this.heads.replaceChildren(...headOptions(model));
  }

  /** @param {Choice} choice */
  mark({ layer, head, all, row }) {
    this.layers.value = String(Math.min(layer, Math.max(0, this.layers.length - 1)));
    this.heads.value = all ? "all" : head === null ? "mean" : String(head);
    if (!this.heads.value) this.heads.value = "mean";
    this.requests.value = String(row < this.requests.length ? row : 0);
  }

  get layer() {
    return Number(this.layers.value || 0);
  }

  get request() {
    return Number(this.requests.value || 0);
  }

  /** @returns {Choice} */
  get choice() {
    const head = this.heads.value;
    return {
      layer: this.layer,
      head: head === "mean" || head === "all" ? null : Number(head),
      all: head === "all",
      row: this.request,
    };
  }
}

/**
 * The heads; query heads that share a K/V head stand together.
 * @param {AttentionModel} model
 * @returns {HTMLElement[]}
 */
function headOptions({ heads, kv_heads: shared }) {
  const means = [makeOption("mean", `mean of ${heads} heads`), makeOption("all", `all ${heads} heads`)];
  const options = Array.from({ length: heads }, (_, head) => makeOption(String(head), `head ${head}`));
  const size = heads / shared;
  if (!(Number.isInteger(size) && size > 1)) return [...means, ...options];
  const groups = Array.from({ length: shared }, (_, number) => {
    const group = make("optgroup");
    group.label = `K/V head ${number}`;
    group.append(...options.slice(number * size, (number + 1) * size));
    return group;
  });
  return [...means, ...groups];
}
