// Where a picture stands: its size, and whether anybody can see it.
//
// A size that is asked of an element makes the browser lay out the page at that moment; the observer
// is told it when the page is laid out anyway. What is off screen, or in a hidden tab, is not drawn.

const MARGIN = "200px"; // what is about to be scrolled to is drawn already

export class Place {
  /**
   * @param {HTMLElement} node
   * @param {() => void} changed Called when the size has changed, or the picture can be seen again.
   */
  constructor(node, changed) {
    this.node = node;
    this.changed = changed;
    /** @type {{ width: number, height: number } | null} */
    this.measured = null;
    this.isOnScreen = typeof IntersectionObserver === "undefined";
    this.sizes = new ResizeObserver(() => {
      this.measured = { width: node.clientWidth, height: node.clientHeight };
      changed();
    });
    this.sizes.observe(node);
    this.screen = this.isOnScreen ? null : new IntersectionObserver((seen) => this.seen(seen), { rootMargin: MARGIN });
    this.screen?.observe(node);
    this.shown = () => void (document.hidden || changed());
    document.addEventListener("visibilitychange", this.shown);
  }

  /** @param {IntersectionObserverEntry[]} entries */
  seen(entries) {
    const before = this.isOnScreen;
    this.isOnScreen = entries[entries.length - 1].isIntersecting;
    if (this.isOnScreen && !before) this.changed();
  }

  get size() {
    return this.measured ?? { width: this.node.clientWidth, height: this.node.clientHeight };
  }

  get hasRoom() {
    return this.size.width > 0;
  }

  get isSeen() {
    return this.isOnScreen && !document.hidden && this.hasRoom;
  }

  close() {
    this.sizes.disconnect();
    this.screen?.disconnect();
    document.removeEventListener("visibilitychange", this.shown);
  }
}
