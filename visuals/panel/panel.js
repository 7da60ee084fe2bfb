// The live panel: one component that follows one run over its own WebSocket.
// The server sends what is new, the panel draws it and answers "a"; only then comes the next frame.

const PANELS = [
  HeaderPanel,
  TokensPanel,
  BatchPanel,
  MaskPanel,
  RooflinePanel,
  LatencyPanel,
  WeightsPanel,
  CachePanel,
  UtilizationPanel,
  NextTokenPanel,
];
const WHOLE_WIDTH = new Set([HeaderPanel, TokensPanel, BatchPanel]);
const TRIES_BEFORE_POLLING = 4;
const LONGEST_WAIT_MS = 5000;
const POLL_MS = 400; // between two frames that the page hands over
const HIDDEN_TAB_MS = 400; // a hidden tab draws no animation frames

const WAITS = {
  queued: "Waits for the run before it.",
  loading: "Comes when the model is loaded.",
  running: "Comes with the first step.",
  paused: "Comes with the first step: press Step or Resume.",
};

const counters = (window.__tbt ??= { mounts: 0, calls: 0, frames: 0, steps: 0, state: "", ids: [], run: "" });

class LivePanel {
  constructor(root, component) {
    this.root = make("div", "tbt");
    root.append(this.root);
    this.store = new Store();
    this.hover = new Hover();
    this.ctx = { data: component.data, store: this.store, hover: this.hover, tokens: [] };
    this.ctx.theme = readTheme(this.root);
    this.ctx.tell = (name, value) => this.component.setStateValue(name, value);
    this.ctx.tip = new Tip(this.root);
    loadVega();
    const grid = make("div", "grid");
    this.panels = PANELS.map((Panel) => {
      const panel = new Panel();
      panel.mount(WHOLE_WIDTH.has(Panel) ? this.root : grid, this.ctx);
      return panel;
    });
    this.root.append(grid, this.ctx.tip.box);
    this.waiting = this.root.querySelectorAll(".wait");
    counters.mounts += 1;
    this.follow(component);
  }

  // Called on every rerun of the page that changes something, the theme included.
  call(component) {
    this.component = component;
    const isOther = component.data.run_id !== this.runId;
    this.ctx.data = component.data;
    this.retheme();
    if (isOther) this.follow(component);
    else if (component.data.frame) this.polled(component.data.frame);
  }

  follow(component) {
    this.hangUp();
    this.component = component;
    this.runId = counters.run = component.data.run_id;
    this.tries = 0;
    this.state = "";
    this.isOver = false;
    this.isPolling = false;
    this.restart();
    if (component.data.frame) this.polled(component.data.frame);
    else this.connect();
  }

  restart() {
    this.cursor = 0;
    this.pending = null;
    this.hasStep = false;
    this.store.reset();
    for (const panel of this.panels) panel.reset();
    Object.assign(counters, { frames: 0, steps: 0, state: "", ids: [] });
  }

  connect() {
    const url = new URL(`/live/run/${encodeURIComponent(this.runId)}`, location.origin);
    url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    url.searchParams.set("k", this.component.data.token);
    url.searchParams.set("from", String(this.cursor));
    const socket = new WebSocket(url);
    this.socket = socket;
    socket.onmessage = (event) => {
      this.tries = 0;
      this.receive(JSON.parse(event.data), () => socket.readyState === WebSocket.OPEN && socket.send("a"));
    };
    socket.onclose = () => socket === this.socket && this.retry();
  }

  retry() {
    this.socket = null;
    if (this.isOver || this.isClosed) return;
    this.tries += 1;
    if (this.tries >= TRIES_BEFORE_POLLING) {
      this.isPolling = true;
      this.component.setStateValue("transport", "poll");
      return;
    }
    const wait = Math.min(LONGEST_WAIT_MS, 250 * 2 ** this.tries);
    this.timer = setTimeout(() => this.connect(), wait);
  }

  hangUp() {
    clearTimeout(this.timer);
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }

  // A frame that the page hands over instead: draw it and say how much has been seen.
  polled(frame) {
    if (this.socket) this.hangUp();
    this.isPolling = true;
    if (frame.from === 0 && frame.to > this.cursor && this.cursor > 0) this.restart();
    const tell = () => this.component.setStateValue("cursor", this.cursor);
    if (frame.from !== this.cursor) return tell(); // the page has a cursor of another run
    this.receive(frame, () => (this.timer = setTimeout(tell, POLL_MS)));
  }

  receive(frame, acknowledge) {
    this.pending = { frame, acknowledge };
    if (this.isScheduled) return;
    this.isScheduled = true;
    let isDone = false;
    const once = () => {
      if (isDone) return;
      isDone = true;
      this.isScheduled = false;
      this.draw();
    };
    requestAnimationFrame(once);
    setTimeout(once, HIDDEN_TAB_MS);
  }

  async draw() {
    if (!this.pending || this.isClosed) return;
    const { frame, acknowledge } = this.pending;
    this.pending = null;
    const isNew = frame.to > this.cursor;
    this.cursor = frame.to;
    this.store.take(frame.rows);
    this.count(frame);
    this.isOver = frame.run.final && frame.to === frame.total;
    this.waits(frame);
    try {
      await Promise.all(this.panels.map((panel) => panel.update(frame)));
    } finally {
      if (isNew || !this.isPolling) acknowledge();
      this.tell(frame.run.state);
    }
  }

  // Until the first step the panels say what they wait for.
  waits(frame) {
    this.hasStep ||= Boolean(frame.step);
    const words = this.hasStep ? "" : WAITS[frame.run.state] || "Nothing was recorded.";
    this.root.classList.toggle("waiting", Boolean(words));
    for (const node of this.waiting) if (node.textContent !== words) node.textContent = words;
  }

  count(frame) {
    counters.frames += 1;
    counters.steps += (frame.mask || []).length;
    counters.state = frame.run.state;
    for (const output of frame.outputs || []) counters.ids.push(output[2]);
  }

  // The page's buttons follow the state: one rerun for each change.
  tell(state) {
    if (state === this.state) return;
    this.state = state;
    this.component.setStateValue("state", state);
  }

  retheme() {
    const theme = readTheme(this.root);
    if (JSON.stringify(theme) === JSON.stringify(this.ctx.theme)) return;
    this.ctx.theme = theme;
    for (const panel of this.panels) panel.retheme();
  }

  close() {
    this.isClosed = true;
    this.hangUp();
    for (const panel of this.panels) panel.close?.();
    this.root.remove();
  }
}

export default function (component) {
  const parent = component.parentElement;
  counters.calls += 1;
  if (parent.__tbtPanel) parent.__tbtPanel.call(component);
  else parent.__tbtPanel = new LivePanel(parent, component);
  return () => {
    parent.__tbtPanel?.close();
    parent.__tbtPanel = undefined;
  };
}
