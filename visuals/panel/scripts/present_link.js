// The WebSocket of presenter mode, a presenter's and a viewer's alike; opened anew until it is closed.

/** @import { PresentMessage } from "./types.js" */

export const TRIED_EVERY_MS = 1000;
const TRIES_BEFORE_SAYING = 2;

export class PresentLink {
  /**
   * @param {URL} address
   * @param {object} calls
   * @param {() => void} calls.opened
   * @param {(message: PresentMessage) => void} calls.take
   * @param {(isLost: boolean) => void} calls.lost The server does not answer, or does again.
   */
  constructor(address, { opened, take, lost }) {
    this.address = address;
    this.opened = opened;
    this.take = take;
    this.lost = lost;
    this.failures = 0;
    /** @type {WebSocket | null} */
    this.socket = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
  }

  open() {
    clearTimeout(this.timer);
    const socket = new WebSocket(this.address);
    this.socket = socket;
    socket.onopen = () => socket === this.socket && this.opened();
    socket.onmessage = (event) => {
      if (socket !== this.socket) return;
      if (this.failures) this.lost(false);
      this.failures = 0;
      this.take(JSON.parse(event.data));
    };
    socket.onclose = () => {
      if (socket !== this.socket) return;
      this.failures += 1;
      if (this.failures === TRIES_BEFORE_SAYING) this.lost(true);
      this.timer = setTimeout(() => this.open(), TRIED_EVERY_MS);
    };
  }

  /** @param {object} asked */
  send(asked) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(asked));
  }

  close() {
    clearTimeout(this.timer);
    const socket = this.socket;
    this.socket = null;
    this.failures = 0;
    socket?.close();
  }
}
