// Presenter mode of one panel, a presenter's or a viewer's. What is shown is the server's record,
// which every page that follows applies as it comes, the presenter's own included.

/** @import { Frame, PanelData, Presentation, PresentMessage, StageData } from "./types.js" */
/** @import { Asked } from "./present_keys.js" */

import { rgbOf } from "./colour_scales.js";
import { makeButton, readTheme } from "./elements.js";
import { group } from "./numbers.js";
import { askedBy, chosenPanels, ideaWords, Paced } from "./present_keys.js";
import { PresentLink } from "./present_link.js";
import { Stage } from "./stage.js";

const POINTED_EVERY_MS = 100;
const LEFT = "The presenter has left. The run stays here, and you can look around in it.";
const LOST = "The server does not answer; trying again.";
const STEERING = new Set(["step", "back", "panel", "light"]);
// The page's own buttons for the items of a playlist; there are none on pages that show no item.
const ITEM_BUTTONS = { next: ".st-key-playlist-next button", previous: ".st-key-playlist-back button" };
const TYPED_INTO = "input, textarea, select, [contenteditable]";

/**
 * @typedef {object} Place What presenter mode is given of the panel.
 * @property {HTMLElement} root
 * @property {Map<string, HTMLElement>} boxes
 * @property {URL} base Where the server is.
 * @property {() => void} changed Another run is presented, or none any more.
 * @property {() => void} redraw All colours, or the size of everything, have changed.
 * @property {(isOn: boolean) => void} tell Tell the page that the mode is on or off.
 */

/**
 * Null on pages that neither present nor follow a presenter.
 * @param {PanelData} data
 * @param {Place} place
 */
export function presentingOf(data, place) {
  return data.stage ? new Presenting(data, data.stage, place) : null;
}

class Presenting {
  /**
   * @param {PanelData} data
   * @param {StageData} given
   * @param {Place} place
   */
  constructor(data, given, place) {
    this.data = data;
    this.given = given;
    this.place = place;
    this.isViewer = given.role === "viewer";
    this.isOn = false;
    this.told = given.on; // what the page takes it to be
    /** @type {Presentation | null} */
    this.now = null;
    /** @type {{ phase: "prefill" | "decode", T: string, L: string } | null} */
    this.step = null;
    this.stage = new Stage(place.root, place.boxes, {
      data: given,
      actions: {
        choose: (name, isBeside) => this.choose(name, isBeside),
        press: (what) => this.act({ do: what }),
        point: (pointer) => this.point(pointer),
        fitted: () => place.redraw(),
      },
    });
    const address = new URL(given.address, place.base);
    address.protocol = place.base.protocol === "https:" ? "wss:" : "ws:";
    address.searchParams.set("as", given.role);
    this.link = new PresentLink(address, {
      opened: () => this.opened(),
      take: (message) => this.take(message),
      lost: (isLost) => this.lost(isLost),
    });
    this.pointing = new Paced((pointer) => this.link.send({ do: "point", pointer }), POINTED_EVERY_MS);
    this.pressed = (/** @type {KeyboardEvent} */ event) => this.key(event);
    document.addEventListener("keydown", this.pressed);
    if (!this.isViewer) place.root.querySelector(".head-line")?.append(this.opener());
    if (this.isViewer) this.link.open();
    else if (given.on) this.enter();
  }

  opener() {
    const button = makeButton("Present (F)", () => this.act({ do: "toggle" }));
    button.className = "opener";
    button.title = "Large type, one or two panels at a time, and a link by which others follow";
    return button;
  }

  /** The run that is drawn in place of the page's own; undefined for the page's own. */
  get run() {
    return this.isOn ? this.now?.run : undefined;
  }

  /** @param {PanelData} data The page has run again. */
  call(data) {
    const before = { run_id: this.data.run_id, on: this.given.on, panels: String(this.given.panels) };
    this.data = data;
    this.given = data.stage ?? this.given;
    this.stage.take(this.given);
    if (this.isOn) this.think();
    if (this.isViewer) return;
    // Another item of a playlist may begin with another panel; without any, those shown stay.
    const { panels } = this.given;
    const others = String(panels) === before.panels || !panels.length ? {} : { panels };
    if (data.run_id !== before.run_id) this.link.send({ do: "show", ...this.own, ...others });
    const { on } = this.given;
    if (on === before.on || on === this.isOn) return;
    if (on) this.enter();
    else this.leave();
  }

  /** The page's own run. */
  get own() {
    return { run_id: this.data.run_id, token: this.data.token };
  }

  /** Switch presenter mode on. */
  enter() {
    if (this.isOn) return;
    this.isOn = true;
    const { panels, says } = this.given;
    this.stage.choose(panels.length ? panels : [this.given.ideas[0].name]);
    this.stage.light(isDark(this.place.root));
    this.stage.open();
    this.stage.say(says);
    this.link.open();
    this.tell(true);
  }

  opened() {
    if (this.isViewer || this.now?.holds === false) return; // another presenter has taken over
    const panels = this.now?.panels ?? this.given.panels;
    this.link.send({ do: "take", ...this.own, panels, dark: this.place.root.dataset.light === "dark" });
  }

  /** @param {boolean} isOn */
  tell(isOn) {
    if (isOn === this.told) return;
    this.told = isOn;
    this.place.tell(isOn);
  }

  /** Switch presenter mode off; those who follow are told by the server. */
  leave() {
    if (!this.isOn) return;
    this.link.send({ do: "leave" });
    this.link.close();
    this.end();
    this.stage.say("");
    this.tell(false);
  }

  end() {
    this.isOn = false;
    this.now = null;
    this.pointing.close();
    this.stage.close();
    this.place.changed();
  }

  /** @param {PresentMessage} message */
  take(message) {
    if ("says" in message) this.stage.say(message.says);
    else if (message.presents) this.apply(message);
    else if (this.isViewer && this.isOn) {
      this.end();
      this.stage.say(LEFT, { isLasting: true });
    }
    if (this.isViewer && "presents" in message) this.tell(message.presents);
  }

  /** @param {Presentation} now */
  apply(now) {
    const before = this.now;
    this.now = now;
    this.stage.choose(now.panels);
    this.stage.light(now.dark);
    if (!this.isOn) {
      this.isOn = true;
      this.stage.say("");
      this.stage.open();
    } else if (now.dark !== before?.dark) this.place.redraw();
    if (!now.holds || this.isViewer) this.stage.point(now.pointer);
    this.think();
    this.place.changed();
  }

  /** @param {boolean} isLost */
  lost(isLost) {
    if (this.isOn || !isLost) this.stage.say(isLost ? LOST : "", { isLasting: isLost });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const [target] = event.composedPath();
    const at = target instanceof Element ? target : null;
    if (event.defaultPrevented || at?.matches(TYPED_INTO)) return;
    const asked = askedBy(event, this.isOn);
    if (!asked || (event.key === " " && at?.matches("button"))) return;
    if (this.isViewer && !STEERING.has(asked.do)) return;
    event.preventDefault();
    this.act(asked);
  }

  /** @param {Asked} asked */
  act(asked) {
    if (asked.do === "toggle") return this.isOn ? this.leave() : this.enter();
    if (asked.do === "leave") return this.stage.hasLink ? this.stage.link() : this.leave();
    if (asked.do === "link") return this.stage.link();
    if (asked.do === "next" || asked.do === "previous") return pressItem(asked.do);
    if (asked.do === "light") return this.link.send({ do: "show", dark: !this.now?.dark });
    if (asked.do !== "panel") return this.link.send({ do: asked.do });
    const idea = this.given.ideas[asked.number - 1];
    return idea && this.choose(idea.name, asked.isBeside);
  }

  /**
   * @param {string} name
   * @param {boolean} isBeside
   */
  choose(name, isBeside) {
    if (!this.stage.has(name)) return;
    this.link.send({ do: "show", panels: chosenPanels(this.now?.panels ?? [], name, isBeside) });
  }

  /** @param {[string, number, number] | null} pointer */
  point(pointer) {
    if (this.isViewer) return;
    this.stage.point(pointer);
    this.pointing.say(pointer);
  }

  /** @param {Frame} frame */
  update({ step }) {
    this.stage.offer();
    if (!step) return;
    this.step = { phase: step.phase, T: group(step.T), L: group(step.L) };
    this.think();
  }

  /** Another run is drawn from its beginning. */
  reset() {
    this.step = null;
    this.think();
  }

  think() {
    const shown = this.now?.panels.at(-1);
    this.stage.think(ideaWords(this.given.ideas.find(({ name }) => name === shown), this.step));
  }

  close() {
    document.removeEventListener("keydown", this.pressed);
    this.pointing.close();
    this.link.close();
    this.stage.close();
  }
}

/** @param {"next" | "previous"} way To which item of the page's playlist. */
function pressItem(way) {
  /** @type {HTMLElement | null} */ (document.querySelector(ITEM_BUTTONS[way]))?.click();
}

/**
 * Whether the page is light on dark at this moment.
 * @param {Element} node
 */
function isDark(node) {
  const [red, green, blue] = rgbOf(readTheme(node).background);
  return red + green + blue < 384;
}
