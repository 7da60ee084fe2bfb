// The entry of a page that holds a run and plays it: the live panel with controls above it.

/** @import { Frame, PanelData, TermsFile } from "../types.js" */
/** @import { RecordedItem } from "./recorded_weights.js" */
/**
 * @typedef {object} About What the page says of its run.
 * @property {PanelData} panel
 * @property {number[]} stops Steps shown wherever the run can be held.
 * @property {number[]} ends_s When they are reached at the run's own pace.
 * @property {Record<string, number>} speeds By what the choice says.
 * @property {RecordedItem[]} weights
 * @property {TermsFile} terms The glossary.
 * @property {string} no_weights Said where weights are asked for that are not in the page.
 */

import { make } from "../elements.js";
import { LivePanel } from "../live_panel.js";
import { open as openTerms } from "../terms.js";
import { Pace } from "./pace.js";
import { RecordedOrigin } from "./recorded_origin.js";
import { ThemeChoice } from "./theme_choice.js";
import { Transport } from "./transport.js";
import { unpackedJson } from "./unpacked.js";

const TOO_OLD = "This browser is too old to unpack the run. Open the page in a newer one.";
const DAMAGED = "This page is damaged, or was cut when it was saved, so the run cannot be shown. Save it again.";

/** @param {HTMLElement} place */
async function begin(place) {
  /** @type {About} */
  const about = await unpackedJson("about");
  /** @type {Frame[][]} */
  const frames = await unpackedJson("frames");
  const origin = new RecordedOrigin({ frames, weights: about.weights, noWeights: about.no_weights });
  const pace = new Pace(about.ends_s, () => performance.now());
  const transport = new Transport({ pace, stops: about.stops, speeds: about.speeds }, (stop, isPlaying) =>
    origin.stops.show(stop, isPlaying),
  );
  transport.begin(); // the panel then begins where it is to stand
  place.replaceChildren();
  const base = new URL(location.href); // where no server is
  const panel = new LivePanel(
    { data: about.panel, parentElement: place, setStateValue: () => undefined },
    {
      base,
      untilLoaded: async () => Reflect.get(window, "vegaEmbed"), // a script of this page
      origin,
    },
  );
  origin.stops.again = () => panel.again();
  transport.box.append(new ThemeChoice(() => panel.retheme()).button);
  const terms = make("div");
  place.before(terms, transport.box);
  openTerms({ data: { entry: "", scripts: "", terms: "", tour: "" }, parentElement: terms }, { base, file: about.terms });
}

const place = /** @type {HTMLElement} */ (document.getElementById("player"));
if (typeof DecompressionStream === "undefined") {
  place.replaceChildren(make("p", "trouble", TOO_OLD));
} else {
  begin(place).catch((error) => {
    console.error("The run could not be shown:", error);
    place.replaceChildren(make("p", "trouble", DAMAGED));
  });
}
