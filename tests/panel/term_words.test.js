import assert from "node:assert/strict";
import { test } from "node:test";

import { TermWords } from "../../visuals/panel/scripts/term_words.js";
import { expected } from "./expected.js";

const { pattern, forms, texts } = expected.terms;
const terms = Object.entries(forms).map(([key, of]) => ({ key, forms: of, title: key, sentence: "", chapter: "" }));
const words = new TermWords({ pattern, terms, chapters: {} });
const found = (text) => words.find(text).map(({ from, to }) => text.slice(from, to));

test("a text has the terms that Python finds in it, each where it first stands", () => {
  for (const [text, of] of texts) {
    assert.deepEqual(words.find(text).map(({ key, from, to }) => [key, from, to]), of, text);
  }
});

test("of two forms that begin at one place the longer counts", () => {
  assert.deepEqual(found("K/V heads and FLOPs per byte"), ["K/V heads", "FLOPs per byte"]);
});

test("a term within a longer word, or an abbreviation in small letters, is none", () => {
  assert.deepEqual(found("keyboard, browser, T4, ttft, t=3, row-wise"), []);
});

test("words stand in any letter case and in the plural", () => {
  assert.deepEqual(found("Tokens; LAYERS; Prefill"), ["Tokens", "LAYERS", "Prefill"]);
});

test("a text that was looked through before has the same terms again", () => {
  assert.deepEqual(found("TTFT and ITL"), ["TTFT", "ITL"]);
  assert.deepEqual(found("TTFT and ITL"), ["TTFT", "ITL"]);
});

test("what others wrote within a sentence is passed over", () => {
  assert.deepEqual(found("query 3 \u2068\u201c prefill\u201d\u2069 reads keys 0 \u2068\u201cTTFT\u201d\u2069; layer"), [
    "query",
    "keys",
    "layer",
  ]);
});
