// The WebSocket of a run: carries out what `follow.js` decides.

/** @import { Acknowledge, Frame } from "./types.js" */
/** @import { FollowEvent } from "./follow.js" */

import { after, IDLE } from "./follow.js";

/**
 * The address of a WebSocket of this server.
 * @param {URL} base Where the server is, a proxy's path included.
 * @param {"run" | "attention"} route
 * @param {string} runId
 * @param {Record<string, string>} query
 */
export function socketAddress(base, route, runId, query) {
  const url = new URL(`live/${route}/${encodeURIComponent(runId)}`, base);
  url.protocol = base.protocol === "https:" ? "wss:" : "ws:";
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return url;
}

export class RunLink {
  /**
   * @param {object} calls
   * @param {() => URL} calls.address Where to connect, from where the panel has come to.
   * @param {(frame: Frame, acknowledge: Acknowledge) => void} calls.receive
   * @param {(transport: string) => void} calls.say Tell the page what brings the frames.
   */
  constructor({ address, receive, say }) {
    this.address = address;
    this.receive = receive;
    this.say = say;
    this.follow = IDLE;
    /** @type {WebSocket | null} */
    this.socket = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
  }

  get isFed() {
    return this.follow.mode === "poll";
  }

  /** @param {FollowEvent} event */
  on(event) {
    const [next, actions] = after(this.follow, event);
    this.follow = next;
    for (const action of actions) {
      if (action.do === "connect") this.connect();
      else if (action.do === "hang up") this.hangUp();
      else if (action.do === "wait") this.timer = setTimeout(() => this.on({ type: "timer" }), action.ms);
      else this.say(action.transport);
    }
  }

  connect() {
    const socket = new WebSocket(this.address());
    this.socket = socket;
    socket.onmessage = (event) => {
      if (socket !== this.socket) return;
      this.on({ type: "message" });
      this.receive(JSON.parse(event.data), (tookMs) => {
        if (socket.readyState === WebSocket.OPEN) socket.send(`a ${Math.round(tookMs)}`);
      });
    };
    socket.onclose = () => {
      if (socket !== this.socket) return;
      this.socket = null;
      this.on({ type: "closed" });
    };
  }

  hangUp() {
    clearTimeout(this.timer);
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }
}
