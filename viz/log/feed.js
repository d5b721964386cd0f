// The feed: a list, then a watch that continues it, and a new list when the watch reports `gone`. A tab has at most one
// stream, or none if it is hidden and holds no world: a browser opens only six connections to an origin.

import { get, queryOf, refusal, watch as stream } from "../lib/api.js";

/**
 * @typedef {{ from: number, seq: number, records: number, kept: probe.Record[], state: fold.State }} Sum
 * @typedef {object} Snapshot
 * @property {number} seq
 * @property {string} log
 * @property {number} size the number of records that the log keeps
 * @property {string} [recording]
 * @property {{ [name: string]: string }} [switches]
 * @property {fold.State} state
 * @typedef {object} Hearer
 * @property {(answer: Snapshot) => void} snapshot
 * @property {(list: probe.Record[]) => void} records
 * @property {(message: Sum) => void} coalesced
 * @property {() => string} follows
 * @property {(status: hold.Status) => void} world
 * @property {(word: string) => void} state
 */

const silence = 3000; // ms; a server that is silent for longer counts as stopped: it sends a bookmark every second
const pause = 500; // ms until the retry after a failure

// A Feed calls on.coalesced(message) if the server has summed up records, and on.world(status) if there is news of the
// world. on.follows() returns the query for records that are never summed up.
export class Feed {
  /** @param {Hearer} on */
  constructor(on) {
    this.on = on;
    /** @type {AbortController | null} */
    this.source = null; // aborts the current list or stream
    this.heard = 0; // when the stream's last message came; 0 before the first
    this.retry = 0;
    /** @type {{ seq: number, log: string } | null} */
    this.at = null; // the newest message's seq, and the log; null before the list
    this.follows = ""; // the answer of on.follows() when the stream was opened
  }

  begin() {
    this.at = null;
    this.read();
  }

  // read resumes the stream or, at first and after a refusal, begins with a list. It runs again if the stream breaks.
  async read() {
    this.end();
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
        queueMicrotask(() => this.hear(message)); // an error in the page must not end the stream
      }
    } catch (problem) {
      if (mine === this.source && refusal(problem).status) this.at = null;
    }
    if (mine !== this.source) return;
    this.source = null;
    this.on.state("reconnecting");
    this.retry = setTimeout(() => this.read(), pause);
  }

  /** @param {import("../lib/api.js").Message} message */
  hear({ id, event, data }) {
    this.heard = performance.now();
    if (this.at) this.at.seq = Number(id);
    this.on.state("live");
    const message = JSON.parse(data);
    if (event === "frame") this.on.records(message);
    if (event === "world") this.on.world(message);
    if (event === "gone") this.begin();
    if (event === "coalesced") this.on.coalesced(message);
    if (event === "coalesced" && this.on.follows() !== this.follows) this.read();
  }

  end() {
    clearTimeout(this.retry);
    this.source?.abort();
    this.source = null;
  }

  check() {
    if (this.source && this.heard > 0 && performance.now() - this.heard > silence) this.on.state("silent");
  }
}
