// A component's own script, which Streamlit imports from a blob: it finds the server, imports the
// modules of the page's version from its entry on, and tries again where they do not come.

/** @import { Component } from "./types.js" */

const PANEL = "main.js";
const PAUSES_MS = [500, 1000, 2000, 4000, 8000];

/**
 * Where the server is: the page's own folder, or what the page was told, a proxy's path included.
 * @param {string} address Of the page.
 * @param {string | undefined} told `window.__streamlit.BACKEND_BASE_URL`.
 */
export function serverBase(address, told) {
  const base = new URL(told || ".", address);
  if (!base.pathname.endsWith("/")) base.pathname += "/";
  base.search = base.hash = "";
  return base;
}

/**
 * Import until it works. Browsers keep a failed import of an address, so each try has its own.
 * @template T
 * @param {(attempt: number) => Promise<T>} attempt
 * @param {object} calls
 * @param {(error: unknown) => void} calls.failed
 * @param {(ms: number) => Promise<void>} [calls.pause]
 * @param {() => boolean} [calls.isOver] Nobody needs it any more.
 * @returns {Promise<T | null>} Null once nobody needs it.
 */
export async function untilLoaded(attempt, { failed, pause = sleep, isOver = () => false }) {
  for (let number = 0; !isOver(); number += 1) {
    try {
      return await attempt(number);
    } catch (error) {
      failed(error);
      await pause(PAUSES_MS[Math.min(number, PAUSES_MS.length - 1)]);
    }
  }
  return null;
}

/** @param {number} ms */
async function sleep(ms) {
  await new Promise((resolve) => setTimeout(resolve, ms));
}

/** One place on the page: what is shown there, once the modules are here. */
class Mount {
  /** @param {Component} component */
  constructor(component) {
    this.component = component;
    this.scripts = component.data.scripts;
    this.entry = component.data.entry;
    this.isClosed = false;
    /** @type {{ call(component: Component): void, close(): void } | null} */
    this.panel = null;
    this.note = document.createElement("p");
    this.note.className = "not-loaded";
    this.note.setAttribute("role", "status");
    component.parentElement.append(this.note);
    void this.load();
  }

  async load() {
    const base = serverBase(location.href, Reflect.get(window, "__streamlit")?.BACKEND_BASE_URL);
    const modules = await untilLoaded((number) => import(new URL(`${this.scripts}/${number}/${this.entry}`, base).href), {
      failed: (error) => this.failed(error),
      isOver: () => this.isClosed,
    });
    if (!modules || this.isClosed) return;
    this.note.remove();
    this.panel = modules.open(this.component, { base, untilLoaded });
  }

  /** @param {unknown} error */
  failed(error) {
    if (!this.note.textContent) console.error("The live panel's modules could not be loaded:", error);
    const part = this.entry === PANEL ? "The live panel" : "A part of this page";
    this.note.textContent = `${part} could not be loaded; trying again.`;
  }

  /** @param {Component} component */
  call(component) {
    this.component = component;
    this.panel?.call(component);
  }

  close() {
    this.isClosed = true;
    this.note.remove();
    this.panel?.close();
  }
}

/** @type {WeakMap<object, Mount>} */
const mounts = new WeakMap();

/**
 * Streamlit calls this whenever what it passes has changed.
 * @param {Component} component
 */
export default function (component) {
  const parent = component.parentElement;
  const held = mounts.get(parent);
  if (held && held.scripts === component.data.scripts) {
    held.call(component);
  } else {
    held?.close(); // the server was started anew with other modules
    mounts.set(parent, new Mount(component));
  }
  return () => {
    mounts.get(parent)?.close();
    mounts.delete(parent);
  };
}
