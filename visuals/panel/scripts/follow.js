// How a run is followed, without sockets or timers: what happens goes in, what to do comes out.
//
// A WebSocket is tried a few times, each after a longer pause. Then the page feeds the panel, while
// the socket is tried again and again; once a frame comes over it, the page stops feeding.

export const TRIES_BEFORE_POLLING = 4;
export const FIRST_PAUSE_MS = 500;
export const LONGEST_PAUSE_MS = 5000;
export const FIRST_PROBE_MS = 5000;
export const LONGEST_PROBE_MS = 60_000;

/**
 * @typedef {object} Follow
 * @property {"idle" | "socket" | "poll"} mode What brings the frames.
 * @property {number} tries Connections that failed since the last frame.
 * @property {boolean} isProven A frame has come over the socket since the run is followed.
 * @property {boolean} isOver All of a final run was drawn: nothing is left to connect for.
 * @property {string} said The transport that the page was told last.
 *
 * @typedef {{ type: "follow", isFed: boolean } | { type: "message" | "closed" | "fed" | "timer" |
 *   "over" | "leave" }} FollowEvent
 *
 * @typedef {{ do: "connect" } | { do: "hang up" } | { do: "wait", ms: number } |
 *   { do: "say", transport: "poll" | "restored" }} Action
 *
 * @typedef {[Follow, Action[]]} Next
 */

/** @type {Follow} */
export const IDLE = { mode: "idle", tries: 0, isProven: false, isOver: false, said: "" };

/**
 * The state after an event, and what to do for it.
 * @param {Follow} follow
 * @param {FollowEvent} event
 * @returns {Next}
 */
export function after(follow, event) {
  if (event.type === "follow") return begun(follow, event.isFed);
  if (event.type === "leave") return [{ ...IDLE, said: follow.said }, [{ do: "hang up" }]];
  if (follow.mode === "idle" || follow.isOver) return [follow, []];
  switch (event.type) {
    case "message":
      return received({ ...follow, tries: 0, isProven: true });
    case "closed":
      return lost({ ...follow, tries: follow.tries + 1 });
    case "fed":
      return fed(follow);
    case "timer":
      return [follow, [{ do: "connect" }]];
    case "over":
      return [{ ...follow, isOver: true }, follow.mode === "poll" ? [{ do: "hang up" }] : []];
  }
}

/**
 * @param {Follow} follow
 * @param {boolean} isFed
 * @returns {Next}
 */
function begun({ said }, isFed) {
  const next = { ...IDLE, said };
  if (isFed) return [{ ...next, mode: "poll" }, [{ do: "hang up" }, probe(0)]];
  return [{ ...next, mode: "socket" }, [{ do: "hang up" }, { do: "connect" }]];
}

/**
 * @param {Follow} follow
 * @returns {Next}
 */
function received(follow) {
  if (follow.mode === "socket") return [follow, []];
  return told({ ...follow, mode: "socket" }, "restored");
}

/**
 * @param {Follow} follow
 * @returns {Next}
 */
function lost(follow) {
  const { mode, tries } = follow;
  if (mode === "poll") return [follow, [probe(tries)]];
  if (tries < TRIES_BEFORE_POLLING) {
    return [follow, [{ do: "wait", ms: Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (tries - 1)) }]];
  }
  const [next, actions] = told({ ...follow, mode: "poll", tries: 0, isProven: false }, "poll");
  return [next, [...actions, probe(0)]];
}

/**
 * The page feeds a panel: needless where the socket works, the only way where it does not.
 * @param {Follow} follow
 * @returns {Next}
 */
function fed(follow) {
  if (follow.mode === "poll") return [follow, []];
  if (follow.isProven) return told(follow, "restored");
  return [{ ...follow, mode: "poll", tries: 0 }, [{ do: "hang up" }, probe(0)]];
}

/**
 * @param {Follow} follow
 * @param {"poll" | "restored"} transport
 * @returns {Next}
 */
function told(follow, transport) {
  if (follow.said === transport) return [follow, []];
  return [{ ...follow, said: transport }, [{ do: "say", transport }]];
}

/**
 * @param {number} failed
 * @returns {Action}
 */
function probe(failed) {
  return { do: "wait", ms: Math.min(LONGEST_PROBE_MS, FIRST_PROBE_MS * 2 ** failed) };
}
