// Where the panel's run comes from in a page that holds it: nothing is asked of any server.

/** @import { FrameCalls, Frame, Origin, WeightCalls } from "../types.js" */
/** @import { RecordedItem } from "./recorded_weights.js" */

import { RecordedFrames } from "./recorded_frames.js";
import { RecordedWeights } from "./recorded_weights.js";

/** @implements {Origin} */
export class RecordedOrigin {
  /**
   * @param {object} run
   * @param {Frame[][]} run.frames For each stop those that lead to it.
   * @param {RecordedItem[]} run.weights
   * @param {string} run.noWeights What is said where weights are asked for that are not here.
   */
  constructor({ frames, weights, noWeights }) {
    this.hasServer = false;
    this.held = { items: weights, none: noWeights };
    /** @type {RecordedWeights[]} */
    this.shown = [];
    this.stops = new RecordedFrames(frames, { shown: () => this.shown.forEach((weights) => weights.shown()) });
  }

  /** @param {FrameCalls} calls */
  frames({ receive }) {
    this.stops.receive = receive;
    return this.stops;
  }

  /** @param {WeightCalls} take */
  weights(take) {
    const weights = new RecordedWeights(this.held, { take, stop: () => this.stops.stop });
    this.shown.push(weights);
    return weights;
  }
}
