// The WebSocket of attention weights, open while they are shown.

/** @import { AttentionState, BlockHeader } from "./types.js" */
/**
 * @typedef {{ kind: "state" } & AttentionState
 *   | { kind: "row", query: number, head: number | null, k0: number, kb: number }
 *   | { kind: "blocks", blocks: BlockHeader[] }} Header
 */

import { socketAddress } from "./run_link.js";
import { split } from "./weight_blocks.js";

const TRIES = 6;
const FIRST_PAUSE_MS = 500;

export class AttentionLink {
  /**
   * @param {URL} base Where the server is.
   * @param {(header: Header, body: ArrayBuffer) => void} take
   */
  constructor(base, take) {
    this.base = base;
    this.take = take;
    this.address = base;
    this.tries = 0;
    this.isWanted = false;
    /** @type {WebSocket | null} */
    this.socket = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
  }

  /**
   * @param {string} runId
   * @param {string} token
   * @param {string} role A viewer's page asks the engine for nothing.
   */
  open(runId, token, role) {
    this.close();
    this.tries = 0;
    this.isWanted = true;
    this.address = socketAddress(this.base, "attention", runId, { k: token, as: role });
    this.timer = setTimeout(() => this.connect()); // of several openings at once only the last
  }

  connect() {
    const socket = new WebSocket(this.address);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    socket.onmessage = (event) => {
      this.tries = 0;
      const { header, body } = split(event.data);
      requestAnimationFrame(() => {
        if (socket !== this.socket) return;
        this.take(header, body);
        if (socket.readyState === WebSocket.OPEN) socket.send("a");
      });
    };
    socket.onclose = () => socket === this.socket && this.retry();
  }

  retry() {
    this.socket = null;
    if (!this.isWanted || this.tries >= TRIES) return;
    this.timer = setTimeout(() => this.connect(), FIRST_PAUSE_MS * 2 ** this.tries);
    this.tries += 1;
  }

  /** @param {object} request */
  ask(request) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(request));
  }

  close() {
    this.isWanted = false;
    clearTimeout(this.timer);
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }
}
