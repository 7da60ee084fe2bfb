// The library that draws the charts, from this server; tried again until it comes.

/**
 * @typedef {(node: HTMLElement, spec: object, options: object) => Promise<any>} Embed
 * @typedef {typeof import("./loader.js").untilLoaded} UntilLoaded
 */

export class Vega {
  /**
   * @param {URL} address
   * @param {object} calls
   * @param {UntilLoaded} calls.untilLoaded
   * @param {(isMissing: boolean) => void} calls.say Tell the reader that it does not come, or came.
   */
  constructor(address, { untilLoaded, say }) {
    this.address = address;
    this.untilLoaded = untilLoaded;
    this.say = say;
    /** @type {Promise<Embed | null> | null} */
    this.loading = null;
    this.isClosed = false;
    this.isMissing = false;
  }

  /** @returns {Promise<Embed | null>} Null once the panel is closed. */
  load() {
    this.loading ??= this.untilLoaded((number) => this.fetched(number), {
      failed: (error) => this.failed(error),
      isOver: () => this.isClosed,
    });
    return this.loading;
  }

  /**
   * @param {number} number
   * @returns {Promise<Embed>}
   */
  async fetched(number) {
    const url = new URL(this.address);
    if (number) url.searchParams.set("try", String(number));
    await import(url.href);
    this.say(false);
    return Reflect.get(window, "vegaEmbed");
  }

  /** @param {unknown} error */
  failed(error) {
    if (!this.isMissing) console.error("Vega could not be loaded:", error);
    this.isMissing = true;
    if (!this.isClosed) this.say(true);
  }

  close() {
    this.isClosed = true;
  }
}
