// The live panel: one component that follows one run over its own WebSocket.
// The server sends what the panel has not drawn; the panel draws it and answers "a" with the time
// that took; only then comes the next frame. A run that waits for its page to be drawn begins with the
// answer, so that one comes when the page is quiet.

/** @import { Acknowledge, Component, Context, Frame, PanelClass, PanelHow } from "./types.js" */

import { make, readTheme } from "./elements.js";
import { serverOrigin } from "./origin.js";
import { PageMessages } from "./page_messages.js";
import { PanelGuard } from "./panel_guard.js";
import { PANELS, panelsOf, showNamed, WIDE_PANELS } from "./panel_list.js";
import { presentingOf } from "./presenting.js";
import { HIDDEN_TAB_MS, untilQuiet, untilShown } from "./quiet.js";
import { socketAddress } from "./run_link.js";
import { Store } from "./store.js";
import { Hover, Tip } from "./tip.js";
import { Vega } from "./vega.js";

const POLL_MS = 400; // between two frames that the page hands over

/** @type {Record<string, string>} */
const WAITS = {
  queued: "Comes when the run begins.",
  loading: "Comes when the model is loaded.",
  running: "Comes with the first step.",
  paused: "Comes with the first step: press Step or Resume.",
};
const NO_CHARTS = "The charts could not be loaded; trying again.";

export class LivePanel {
  /**
   * @param {Component} component
   * @param {PanelHow} how
   */
  constructor(component, { base, untilLoaded, origin = serverOrigin(base) }) {
    this.component = component;
    this.base = base;
    this.root = make("div", "tbt");
    component.parentElement.append(this.root);
    this.messages = new PageMessages(component);
    this.store = new Store();
    this.link = origin.frames({
      address: () => this.address(),
      receive: (frame, acknowledge) => this.receive(frame, acknowledge),
      say: (transport) => this.messages.send("transport", transport),
    });
    this.trouble = make("p", "trouble");
    this.trouble.setAttribute("role", "status");
    this.trouble.hidden = true;
    const vega = new Vega(new URL(component.data.vega, base), {
      untilLoaded,
      say: (isMissing) => this.sayTrouble(isMissing ? NO_CHARTS : ""),
    });
    void vega.load();
    /** @type {Context} */
    this.ctx = {
      data: component.data,
      base,
      origin,
      store: this.store,
      hover: new Hover(),
      tip: new Tip(this.root),
      tokens: [],
      theme: readTheme(this.root),
      vega,
      send: (name, value) => this.messages.send(name, value),
      again: () => this.again(),
      turn: Promise.resolve(),
      afterwards: (call) => void this.afterwards.push(call),
      failed: (panel, error) => this.guards.find((guard) => guard.panel === panel)?.failed(error),
    };
    /** @type {(() => void)[]} */
    this.afterwards = []; // what asks the page for sizes, which then lays it out once
    /** @type {PanelGuard[]} */
    this.guards = [];
    /** @type {Map<string, HTMLElement>} */
    this.boxes = new Map(); // of the panels below the header, by name
    this.root.append(this.trouble);
    const grid = make("div", "grid");
    this.add(WIDE_PANELS, this.root);
    this.add(PANELS, grid);
    showNamed(this.root, this.boxes, component.data);
    this.root.append(grid, this.ctx.tip.box);
    /** @type {NodeListOf<HTMLElement>} */
    this.waiting = this.root.querySelectorAll(".wait");
    this.isClosed = false;
    this.isScheduled = false;
    this.isDrawnByPage = false; // whether frames come from the page, as the panels last heard
    this.run = { id: "", cursor: 0, hasStep: false };
    /** @type {{ frame: Frame, acknowledge: Acknowledge } | null} */
    this.pending = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.asking = undefined;
    this.presenting = presentingOf(component.data, this);
    this.follow();
  }

  /**
   * @param {[string, PanelClass][]} panels
   * @param {HTMLElement} parent
   */
  add(panels, parent) {
    for (const [name, PanelOf] of panelsOf(panels, this.component.data)) {
      const guard = new PanelGuard(PanelOf, parent, this.ctx);
      this.guards.push(guard);
      if (guard.panel && name !== "head") this.boxes.set(name, guard.panel.box);
    }
  }

  /** What is drawn: the page's run, or in its place the one that is presented. */
  get data() {
    return { ...this.component.data, ...this.presenting?.run };
  }

  /** @param {boolean} isOn Presenter mode was switched on or off. */
  tell(isOn) {
    this.messages.send("presenting", isOn);
  }

  /** Another run may be presented, or none any more. */
  changed() {
    if (!this.run.id) return;
    this.ctx.data = this.data;
    if (this.data.run_id !== this.run.id) this.follow();
  }

  /**
   * Called on every rerun of the page that changes something, the theme included.
   * @param {Component} component
   */
  call(component) {
    this.component = component;
    this.messages.call(component);
    showNamed(this.root, this.boxes, component.data);
    this.presenting?.call(component.data);
    const { data } = this;
    this.ctx.data = data;
    this.retheme();
    if (data.run_id !== this.run.id) this.follow();
    else if (data.frame && !this.presenting?.run) this.fed(data.frame);
    this.tellConnection();
  }

  // Each run has an object of its own: what was begun for another one finds it changed.
  follow() {
    const frame = this.presenting?.run ? undefined : this.component.data.frame;
    this.messages.reset();
    this.isDrawnByPage = Boolean(frame);
    this.restart();
    this.link.on({ type: "follow", isFed: Boolean(frame) });
    if (frame) this.fed(frame);
  }

  restart() {
    clearTimeout(this.asking);
    this.run = { id: this.data.run_id, cursor: 0, hasStep: false };
    this.pending = null;
    this.store.reset();
    for (const guard of this.guards) guard.reset();
    this.presenting?.reset();
    this.root.dataset.run = this.run.id;
    delete this.root.dataset.steps;
  }

  /** Draw the run anew from its beginning, since something that is known of all of it has changed. */
  again() {
    const isFed = this.link.isFed;
    this.restart();
    this.link.on({ type: "follow", isFed });
    if (isFed) this.messages.send("cursor", 0);
  }

  address() {
    const { token } = this.data;
    return socketAddress(this.base, "run", this.run.id, { k: token, from: String(this.run.cursor) });
  }

  /**
   * A frame that the page hands over: draw it and say how far the panel has come.
   * @param {Frame} frame
   */
  fed(frame) {
    this.link.on({ type: "fed" });
    if (!this.link.isFed) return; // the socket works
    if (frame.from === 0 && frame.to > this.run.cursor && this.run.cursor > 0) this.restart();
    const { run } = this;
    const ask = () => run === this.run && this.messages.send("cursor", run.cursor);
    if (frame.from !== run.cursor) {
      ask(); // the page has a cursor of another run
      return;
    }
    this.receive(frame, () => (this.asking = setTimeout(ask, POLL_MS)));
  }

  /**
   * @param {Frame} frame
   * @param {Acknowledge} acknowledge
   */
  receive(frame, acknowledge) {
    this.pending = { frame, acknowledge };
    if (this.isScheduled) return;
    this.isScheduled = true;
    let isDone = false;
    const once = () => {
      if (isDone) return;
      isDone = true;
      this.isScheduled = false;
      void this.draw();
    };
    requestAnimationFrame(once);
    setTimeout(once, HIDDEN_TAB_MS);
  }

  async draw() {
    if (!this.pending || this.isClosed) return;
    const { run } = this;
    const { frame, acknowledge } = this.pending;
    const beganAt = performance.now();
    this.pending = null;
    const isNew = frame.to > run.cursor;
    run.cursor = frame.to;
    this.store.take(frame.rows);
    if (frame.run.final && frame.to === frame.total) this.link.on({ type: "over" });
    this.sayWaiting(frame);
    const updates = this.guards.map((guard) => guard.update(frame));
    for (const call of this.afterwards.splice(0)) call();
    if (frame.step) this.root.dataset.steps = String(frame.step.index + 1);
    await Promise.all(updates);
    if (run !== this.run || this.isClosed) return; // another run is followed by now
    const tookMs = performance.now() - beganAt;
    this.messages.sendState(frame.run.state, run.id);
    if (frame.run.held && frame.to === frame.total && !this.link.isFed) {
      await this.settle(frame);
      if (run !== this.run || this.isClosed) return;
    }
    if (isNew || !this.link.isFed) acknowledge(tookMs);
    this.tellConnection();
  }

  /**
   * Wait until the page is quiet, then show the prefill that is about to begin.
   * @param {Frame} frame
   */
  async settle(frame) {
    const { run } = this;
    await untilQuiet();
    if (run !== this.run || this.isClosed || document.hidden) return;
    for (const guard of this.guards) guard.begins(frame);
    await untilShown();
  }

  /**
   * Until the first step the panels say what they wait for.
   * @param {Frame} frame
   */
  sayWaiting(frame) {
    this.run.hasStep ||= Boolean(frame.step);
    this.presenting?.update(frame);
    const words = this.run.hasStep ? "" : WAITS[frame.run.state] || "Nothing was recorded.";
    this.root.classList.toggle("waiting", Boolean(words));
    for (const node of this.waiting) if (node.textContent !== words) node.textContent = words;
  }

  /** @param {string} words */
  sayTrouble(words) {
    this.trouble.textContent = words;
    this.trouble.hidden = !words;
  }

  // Attention weights need a WebSocket of their own.
  tellConnection() {
    if (this.link.isFed === this.isDrawnByPage) return;
    this.isDrawnByPage = this.link.isFed;
    for (const guard of this.guards) guard.connected(!this.isDrawnByPage);
  }

  retheme() {
    if (JSON.stringify(readTheme(this.root)) !== JSON.stringify(this.ctx.theme)) this.redraw();
  }

  /** All colours, or the size of everything, have changed. */
  redraw() {
    this.ctx.theme = readTheme(this.root);
    for (const guard of this.guards) guard.retheme();
  }

  close() {
    this.isClosed = true;
    this.presenting?.close();
    clearTimeout(this.asking);
    this.link.on({ type: "leave" });
    this.messages.close();
    this.ctx.vega.close();
    for (const guard of this.guards) guard.close();
    this.root.remove();
  }
}
