// Asks the server again and again how something stands, for lines that never report anything to the
// page: a report would run the page again, even one that is being left.

/**
 * @template Answer
 * @param {URL} address
 * @returns {Promise<Answer | null>} Null where the server does not answer, as at its restart.
 */
export async function answer(address) {
  try {
    const response = await fetch(address);
    return response.ok ? await response.json() : null;
  } catch {
    return null;
  }
}

/** @template Status */
export class StatusPoll {
  /**
   * @param {object} how
   * @param {URL} how.address Of the status.
   * @param {number} how.everyMs
   * @param {(status: Status) => void} how.show
   * @param {(status: Status) => unknown} how.isChanging It will be another before long.
   */
  constructor({ address, everyMs, show, isChanging }) {
    this.address = address;
    this.everyMs = everyMs;
    this.show = show;
    this.isChanging = isChanging;
    this.isClosed = false;
    this.isFollowing = false;
  }

  /** @param {Status} status As the page was drawn with it. */
  from(status) {
    this.take(status);
    if (!this.isFollowing) void this.follow();
  }

  close() {
    this.isClosed = true;
  }

  /** @param {Status} status */
  take(status) {
    this.status = status;
    this.show(status);
  }

  async follow() {
    this.isFollowing = true;
    while (!this.isClosed && this.status !== undefined && this.isChanging(this.status)) {
      await new Promise((resolve) => setTimeout(resolve, this.everyMs));
      /** @type {Status | null} */
      const status = this.isClosed ? null : await answer(this.address);
      if (status && !this.isClosed) this.take(status);
    }
    this.isFollowing = false;
  }
}
