// The line about the server: nothing while all is well, and within seconds that it is gone, that
// another was started in its place, or that its engine died. It never reports anything to the page.

/** @import { ServerComponent, ServerNews } from "./types.js" */

import { make, makeButton } from "./elements.js";

export const TRIED_EVERY_MS = 1000;
export const TRIES_BEFORE_SAYING = 2; // a server that only closed one socket answers the first

const GONE = "The server does not answer. What you see came before that, and nothing here can be steered.";
const ANEW = "The server was restarted, so nothing on this page can be steered. Reload the page to continue.";

/**
 * Follow the server where Streamlit says.
 * @param {ServerComponent} component
 * @param {{ base: URL }} how
 */
export function open(component, { base }) {
  return new ServerLine(component, base);
}

class ServerLine {
  /**
   * @param {ServerComponent} component
   * @param {URL} base Where the server is.
   */
  constructor(component, base) {
    this.component = component;
    this.address = new URL(component.data.server_address, base);
    this.address.protocol = base.protocol === "https:" ? "wss:" : "ws:";
    this.failures = 0;
    /** @type {ServerNews} What the server said last. */
    this.news = component.data.drawn;
    this.isClosed = false;
    /** @type {WebSocket | null} */
    this.socket = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.host = make("div", "line");
    this.host.setAttribute("role", "alert");
    this.words = make("span");
    this.button = makeButton("Reload the page", () => location.reload());
    this.host.append(this.words, this.button);
    component.parentElement.append(this.host);
    this.show();
    this.connect();
  }

  /** @param {ServerComponent} component The page was drawn again, by whichever server is there. */
  call(component) {
    const { drawn } = component.data;
    if (drawn.server !== this.component.data.drawn.server) this.news = drawn;
    this.component = component;
    this.show();
  }

  show() {
    const isAnew = this.news.server !== this.component.data.drawn.server;
    const isGone = this.failures >= TRIES_BEFORE_SAYING;
    const words = isGone ? GONE : isAnew ? ANEW : this.news.engine;
    if (this.words.textContent !== words) this.words.textContent = words;
    this.button.hidden = isGone || !isAnew;
    this.host.hidden = !words;
  }

  connect() {
    const socket = new WebSocket(this.address);
    this.socket = socket;
    socket.onmessage = (event) => {
      if (socket !== this.socket) return;
      this.failures = 0;
      this.news = JSON.parse(event.data);
      this.show();
    };
    socket.onclose = () => {
      if (socket !== this.socket || this.isClosed) return;
      this.failures += 1;
      this.show();
      this.timer = setTimeout(() => this.connect(), TRIED_EVERY_MS);
    };
  }

  close() {
    this.isClosed = true;
    clearTimeout(this.timer);
    const socket = this.socket;
    this.socket = null;
    socket?.close();
    this.host.remove();
  }
}
