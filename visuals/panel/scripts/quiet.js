// Whether the page is quiet: drawn, with a main thread that is free for a while.
//
// A run that this page asked for begins when it is. Timers that come when they are due say that
// nothing keeps the main thread busy; a late one says that something did.

export const QUIET_MS = 150;
export const TICK_MS = 30;
export const LATE_MS = 20; // later than this, and something else had the main thread
export const LONGEST_MS = 1000;
export const HIDDEN_TAB_MS = 400; // a hidden tab draws no animation frames

/**
 * For how long the main thread has been free, after a timer.
 * @param {number} freeMs Before it.
 * @param {number} tookMs Since the timer before it.
 */
export function freeAfter(freeMs, tookMs) {
  return tookMs > TICK_MS + LATE_MS ? 0 : freeMs + tookMs;
}

/**
 * Resolves when the page has drawn what it was given and its main thread has been free for a while,
 * or after a second whatever it does. A hidden page draws nothing and is quiet at once.
 * @param {object} [how]
 * @param {() => boolean} [how.isHidden]
 * @param {() => number} [how.now]
 * @param {(call: () => void, ms: number) => unknown} [how.after]
 * @param {(call: () => void) => unknown} [how.drawn]
 * @returns {Promise<void>}
 */
export async function untilQuiet({
  isHidden = () => document.hidden,
  now = () => performance.now(),
  after = (call, ms) => setTimeout(call, ms),
  drawn = (call) => requestAnimationFrame(call),
} = {}) {
  const end = now() + LONGEST_MS;
  /** @type {(ms: number) => Promise<void>} */
  const pause = (ms) => new Promise((resolve) => void after(resolve, ms));
  const frame = () => Promise.race([new Promise((resolve) => void drawn(() => resolve(undefined))), pause(end - now())]);
  if (isHidden()) return;
  await frame(); // draws what was changed
  await frame(); // comes when that has been shown
  let before = now();
  for (let freeMs = 0; freeMs < QUIET_MS && before < end && !isHidden(); ) {
    await pause(TICK_MS);
    freeMs = freeAfter(freeMs, now() - before);
    before = now();
  }
}

/** Resolves when what was changed has been painted. */
export async function untilShown() {
  await new Promise((resolve) => {
    requestAnimationFrame(() => setTimeout(resolve));
    setTimeout(resolve, HIDDEN_TAB_MS);
  });
}
