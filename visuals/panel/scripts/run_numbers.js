// The numbers that a shown run has for the terms of the glossary, for whoever explains one.

/** @import { Figure, Frame, Model, Step } from "./types.js" */

import { group, NONE } from "./numbers.js";

const ASKED = "token-by-token-number"; // the event by which a card asks the run on its page

/** @type {[string, string][]} A figure of the header, and what stands before it. */
const PERCENTILES = [["itl_p50", "p50 "], ["itl_p95", "p95 "]];
/** @type {Record<string, [string, string][]>} */
const FIGURES = { ttft: [["ttft", ""]], tpot: [["tpot", ""]], itl: PERCENTILES, percentile: PERCENTILES };

/**
 * What a term is in the run that the page shows; empty where there is none, or it has no number.
 * @param {string} key Of the term.
 */
export function numberOf(key) {
  let said = "";
  /** @param {string} words */
  const say = (words) => (said ||= words);
  document.dispatchEvent(new CustomEvent(ASKED, { detail: { key, say } }));
  return said;
}

export class RunNumbers {
  constructor() {
    this.answer = this.answer.bind(this);
    document.addEventListener(ASKED, this.answer);
    this.reset();
  }

  reset() {
    /** @type {Model | null} */
    this.model = null;
    /** @type {Step | null} */
    this.step = null;
    /** @type {Map<string, Figure>} */
    this.figures = new Map();
    /** @type {Map<string, string>} What panels say of the newest step, by term. */
    this.words = new Map();
  }

  /** @param {Frame} frame */
  take({ model, step, figures, captions, roofline, next, weights }) {
    this.model = model ?? this.model;
    this.step = step ?? this.step;
    for (const figure of figures ?? []) this.figures.set(figure.key, figure);
    const said = {
      step_time: captions?.latency,
      kv_cache: captions?.kv,
      arithmetic_intensity: roofline?.captions.step,
      roofline: roofline?.captions.step,
      entropy: next?.caption,
      weight_reuse: weights?.length ? captions?.weights : "",
    };
    for (const [key, words] of Object.entries(said)) if (words) this.words.set(key, words);
  }

  /** @param {Event} event */
  answer(event) {
    const { key, say } = /** @type {CustomEvent} */ (event).detail;
    say(this.figure(key) || this.ofStep(key) || this.ofModel(key) || this.words.get(key) || "");
  }

  /** @param {string} key */
  figure(key) {
    return (FIGURES[key] ?? [])
      .map(([name, label]) => ({ label, figure: this.figures.get(name) }))
      .filter(({ figure }) => figure && figure.value !== NONE)
      .map(({ label, figure }) => `${label}${figure?.value} ${figure?.unit}`)
      .join(", ");
  }

  /** @param {string} key */
  ofStep(key) {
    const { step } = this;
    if (!step) return "";
    /** @type {Record<string, string>} */
    const said = {
      token: `${group(step.known)} tokens known, ${group(step.stored)} of them stored`,
      fed: `T = ${group(step.T)} in step ${group(step.index)}`,
      length: `L = ${group(step.L)} after step ${group(step.index)}`,
      decode: `${group(step.decode)} decode steps so far`,
    };
    return said[key] ?? "";
  }

  /** @param {string} key */
  ofModel(key) {
    const { model } = this;
    if (!model) return "";
    const { of_layer: layers, heads, kv_heads: shared, kinds } = model.attention;
    const windows = kinds.map(({ window }) => window).filter((tokens) => tokens !== null);
    const rows = group(model.requests.length);
    const prompt = model.requests.reduce((sum, request) => sum + request.prompt_tokens, 0);
    /** @type {Record<string, string>} */
    const said = {
      prefill: `${group(prompt)} prompt tokens`,
      layer: `${group(layers.length)} layers`,
      head: `${group(heads)} heads in each layer`,
      grouped_heads: `${group(heads)} query heads on ${group(shared)} K/V heads`,
      sliding_window: windows.length ? `${windows.map(group).join(", ")} tokens` : "no layer has one",
      sequence: rows,
      row: rows,
      batch: model.requests.length > 1 ? `${rows} sequences` : "one sequence alone",
      slot: model.batch?.slots ? `${group(model.batch.slots)} slots` : "",
    };
    return said[key] ?? "";
  }

  close() {
    document.removeEventListener(ASKED, this.answer);
  }
}
