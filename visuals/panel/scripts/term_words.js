// The terms and where they stand in a text. Pure: no page.

/** @import { FoundTerm, Term, TermsFile } from "./types.js" */

const MOST_KEPT = 4000; // texts whose terms are remembered
const QUOTED = /\u2068[^\u2069]*(\u2069|$)/g; // what others wrote, within a sentence of ours

/** The glossary, as the server's file has it. */
export class TermWords {
  /** @param {TermsFile} file */
  constructor({ pattern, terms, chapters }) {
    this.pattern = new RegExp(pattern, "g");
    this.chapters = chapters;
    /** @type {Map<string, Term>} */
    this.byForm = new Map(terms.flatMap((term) => term.forms.map((form) => [form, term])));
    /** @type {Map<string, Term>} */
    this.byKey = new Map(terms.map((term) => [term.key, term]));
    /** @type {Map<string, FoundTerm[]>} A page says the same texts again and again. */
    this.kept = new Map();
  }

  /** @param {string} form As a text has it. */
  termOf(form) {
    return this.byForm.get(form) ?? this.byForm.get(form.toLowerCase());
  }

  /**
   * The terms in a text, each where it first stands: of two that begin at one place the longer.
   * @param {string} text
   */
  find(text) {
    const known = this.kept.get(text);
    if (known) return known;
    /** @type {Map<string, FoundTerm>} */
    const found = new Map();
    const own = text.replace(QUOTED, (quoted) => " ".repeat(quoted.length));
    for (const match of own.matchAll(this.pattern)) {
      const key = this.termOf(match[0])?.key;
      if (key && !found.has(key)) found.set(key, { key, from: match.index, to: match.index + match[0].length });
    }
    const terms = [...found.values()];
    if (this.kept.size >= MOST_KEPT) this.kept.clear();
    this.kept.set(text, terms);
    return terms;
  }
}
