// The feed: a list, then a watch from there, and the list again when the watch says `gone`.
//
// One stream per tab at most, and none while the tab is hidden: a browser opens only six connections to an origin, and
// no viewer sees a hidden page.

import { get, queryOf, refusal, watch as stream } from "../lib/api.js";

/**
 * @typedef {{ from: number, seq: number, records: number, kept: probe.Record[], state: fold.State }} Sum
 * @typedef {object} Snapshot
 * @property {number} seq
 * @property {string} log
 * @property {number} size how many records the log keeps
 * @property {string} [recording]
 * @property {{ [name: string]: string }} [switches]
 * @property {fold.State} state
 * @typedef {object} Hearer
 * @property {(answer: Snapshot) => void} snapshot
 * @property {(list: probe.Record[]) => void} records
 * @property {(message: Sum) => void} coalesced
 * @property {() => string} follows
 * @property {(status: hold.Status) => void} world
 * @property {(ms: number) => void} took
 * @property {(word: string, title: string) => void} state
 */

const silence = 3000; // the server sends a bookmark every second; after so long without a word it is not running
const pause = 500; // ms until what failed is tried again

// A Feed calls on.snapshot(answer), on.records(list), on.coalesced(message) when the server has summed records up that
// the page was too slow for, or that were too many to be looked at, on.world(status) when the world is held or its
// clock moved, and on.state(word, title). on.follows() is the part of the query that says what it is not to sum up.
export class Feed {
  /** @param {Hearer} on */
  constructor(on) {
    this.on = on;
    /** @type {AbortController | null} */
    this.source = null; // what aborts the list or the stream that is read
    this.heard = 0; // when it last said something; 0: it has not yet
    this.retry = 0;
    this.closed = false;
    /** @type {{ seq: number, log: string } | null} */
    this.at = null; // the newest message, and the log; null: it has to be listed
    this.follows = ""; // what on.follows() said when the stream was opened
  }

  // begin lists again.
  begin() {
    this.end();
    this.at = null;
    if (!this.closed) this.read();
  }

  // read lists what has not been listed, and reads the stream of what comes after, until it is called again. A stream
  // that breaks is resumed; one that is refused begins again.
  async read() {
    // The stream before stays until this one is open, or gives up: a world that is held because a page is open never
    // loses its page.
    const before = this.source;
    const mine = (this.source = new AbortController());
    this.heard = 0;
    try {
      if (!this.at) {
        const snapshot = await get("/viz/snapshot", { signal: mine.signal });
        if (mine !== this.source) return;
        this.on.snapshot(snapshot);
        this.at = { seq: snapshot.seq, log: snapshot.log };
      }
      this.follows = this.on.follows();
      const query = queryOf({ since: this.at.seq, log: this.at.log }) + this.follows;
      for await (const message of stream(`/viz/events?${query}`, mine.signal)) {
        if (mine !== this.source) return;
        before?.abort();
        queueMicrotask(() => this.hear(message)); // an error of the page's own ends no stream
      }
    } catch (problem) {
      if (mine === this.source && refusal(problem).status) this.at = null;
    } finally {
      before?.abort();
    }
    if (mine !== this.source) return;
    this.source = null;
    this.on.state("reconnecting", this.at ? "The stream broke; resuming after the last record seen."
      : "The server does not answer; trying again.");
    this.retry = setTimeout(() => this.read(), pause);
  }

  /** @param {import("../lib/api.js").Message} message */
  hear({ id, event, data }) {
    const began = performance.now();
    this.heard = began;
    if (this.at) this.at.seq = Number(id);
    this.on.state("live", "Every record as it is written.");
    const message = JSON.parse(data);
    if (event === "frame") this.on.records(message);
    else if (event === "world") this.on.world(message);
    else if (event === "gone") this.begin();
    else if (event === "coalesced") {
      this.on.coalesced(message);
      if (this.on.follows() !== this.follows) this.read();
    }
    this.on.took(performance.now() - began);
  }

  end() {
    clearTimeout(this.retry);
    this.source?.abort();
    this.source = null;
  }

  // check says that the server is silent, if it is.
  check() {
    if (!this.source || this.heard === 0 || performance.now() - this.heard <= silence) return;
    this.on.state("silent", "Connected, but the process sends nothing: it is stopped, perhaps in a debugger.");
  }

  // close ends it for good: something else is shown; after that reopen begins again.
  close() {
    this.closed = true;
    this.end();
  }

  reopen() {
    this.closed = false;
    this.begin();
  }
}
