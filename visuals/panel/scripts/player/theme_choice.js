// Light or dark: as the system has it, until the reader chooses.

import { makeButton } from "../elements.js";

export class ThemeChoice {
  /** @param {() => void} changed */
  constructor(changed) {
    this.changed = changed;
    this.system = window.matchMedia("(prefers-color-scheme: dark)");
    this.button = makeButton("\u25d0", () => this.choose());
    this.button.className = "player-theme";
    this.button.setAttribute("aria-label", "Light or dark");
    this.button.title = "Light or dark";
    this.system.addEventListener("change", () => this.changed());
  }

  get isDark() {
    const { theme } = document.documentElement.dataset;
    return theme ? theme === "dark" : this.system.matches;
  }

  choose() {
    document.documentElement.dataset.theme = this.isDark ? "light" : "dark";
    this.changed();
  }
}
