// The tape: records and pictures that the page has at hand, and where to get those it has not.
//
// The picture at a cursor is always the same thing: the newest picture kept at or before it, and the records from there
// on, folded. What has left the page's memory is asked of the server by range; a recording that was dropped onto the
// page is all here.

import { get, queryOf } from "../lib/api.js";
import { agentOf } from "./fold.js";
import { partsOf } from "./recording.js";

/**
 * @typedef {import("./fold.js").Fold} Fold
 * @typedef {{ records: probe.Record[], next: number }} Page
 * @typedef {object} Source
 * @property {number} room how many records it keeps
 * @property {(at: number) => Promise<{ seq: number, state: fold.State }>} keyframe
 * @property {(from: number, to: number) => Promise<Page>} records
 */

// first is the key that a map has had longest.
/** @template K @param {Map<K, unknown>} map */
const first = (map) => /** @type {K} */ (map.keys().next().value);

const stride = 1024; // records that are asked for at once
const frameRoom = 16; // pictures kept when there is a server to ask again: as many as it keeps
const partsRoom = 200_000; // of all pictures kept
const namesRoom = 8192; // clients of which the name is kept
const frameEvery = 4096; // records between two of them, at least

// A Tape is empty at first. Without a source everything will be put in. It keeps hardly more records than its source.
export class Tape {
  /** @param {Fold} fold @param {Source | null} source */
  constructor(fold, source) {
    this.fold = fold;
    this.source = source;
    this.room = source?.room ?? Infinity;
    /** @type {Map<number, probe.Record>} */
    this.records = new Map(); // by sequence number, in the order in which they came
    /** @type {{ seq: number, parts: number, state: fold.State }[]} */
    this.frames = []; // oldest first
    /** @type {Map<string, string>} */
    this.names = new Map(); // of the clients of watchers: of those that have gone, too
  }

  /** @param {number} seq */
  get(seq) { return this.records.get(seq); }

  /** @param {string | undefined} resource @param {string} subject @param {string | undefined} text */
  name(resource, subject, text) {
    this.names.set(`${resource ?? ""} ${subject}`, agentOf(text));
    if (this.names.size > namesRoom) this.names.delete(first(this.names));
  }

  // called is what the subject of a record is called: a watcher as its client, where that is known.
  /** @param {{ resource?: string, subject?: string }} r */
  called(r) { return this.names.get(`${r.resource ?? ""} ${r.subject}`) ?? r.subject ?? ""; }

  /** @param {probe.Record[]} list */
  put(list) {
    for (const r of list) {
      if (r.point === "WireOpened" && r.subject) this.name(r.resource, r.subject, r.texts?.agent);
      this.records.set(r.seq, r);
      if (this.records.size > this.room + stride) this.records.delete(first(this.records));
    }
  }

  // keep takes a picture, unless there is one close by. The state may go on being folded, unless it is given away.
  /** @param {fold.State} state @param {boolean} [always] @param {boolean} [given] */
  keep(state, always = false, given = false) {
    const { frames } = this;
    let i = frames.length;
    while (i > 0 && frames[i - 1].seq > state.seq) i--;
    const before = frames[i - 1];
    if (before?.seq === state.seq) return;
    if (!always && before && state.seq - before.seq < Math.max(frameEvery, before.parts)) return;
    for (const [resource, { subjects }] of Object.entries(state.resources)) {
      for (const [id, { texts: { WireOpened: opened } }] of Object.entries(subjects)) {
        if (opened?.agent) this.name(resource, id, opened.agent);
      }
    }
    frames.splice(i, 0, { seq: state.seq, parts: partsOf(state), state: given ? state : structuredClone(state) });
    if (this.source && frames.length > frameRoom) frames.shift();
    const parts = frames.reduce((n, frame) => n + frame.parts, 0);
    // The older they are, the wider apart.
    if (parts > partsRoom) this.frames = frames.filter((_, i) => i % 2 === 0 || i === frames.length - 1);
  }

  /** @param {number} from @param {number} to */
  holds(from, to) { return this.between(from, to).length === to - from; }

  // load makes sure that the records in [from, to) are at hand, as far as they exist.
  /** @param {number} from @param {number} to */
  async load(from, to) {
    while (from < to && this.get(from)) from++;
    while (to > from && this.get(to - 1)) to--;
    while (from < to && this.source) {
      const answer = await this.source.records(from, to);
      this.put(answer.records);
      if (answer.next <= from) return;
      from = answer.next;
    }
  }

  // stateAt returns the picture at a cursor. It is the caller's to fold on.
  /** @param {number} seq @returns {Promise<fold.State>} */
  async stateAt(seq) {
    /** @type {{ seq: number, state: fold.State } | undefined} */
    let base = this.frames.findLast((frame) => frame.seq <= seq);
    if (this.source && (!base || !this.holds(base.seq + 1, seq + 1))) {
      const frame = await this.source.keyframe(seq);
      this.keep(frame.state, true);
      base = { seq: frame.seq, state: frame.state };
      await this.load(frame.seq + 1, seq + 1);
    }
    if (!base) throw Object.assign(new Error("there is no picture of that moment"), { gone: true });
    const state = structuredClone(base.state);
    this.fold.apply(state, this.between(base.seq + 1, seq + 1));
    return state;
  }

  // between returns the records at hand in [from, to).
  /** @param {number} from @param {number} to */
  between(from, to) {
    /** @type {probe.Record[]} */
    const list = [];
    for (let seq = from; seq < to; seq++) {
      const r = this.get(seq);
      if (r) list.push(r);
    }
    return list;
  }

  // find returns the number of the first record from `from` on, forwards or backwards, that match accepts; 0: none.
  /**
   * @param {number} from @param {number} direction @param {number} oldest @param {number} last
   * @param {(r: probe.Record) => boolean} match
   */
  async find(from, direction, oldest, last, match) {
    for (let seq = from; seq >= Math.max(1, oldest) && seq <= last; seq += direction) {
      if (!this.get(seq)) {
        await (direction > 0 ? this.load(seq, Math.min(last + 1, seq + stride))
          : this.load(Math.max(oldest, seq - stride + 1), seq + 1));
      }
      const r = this.get(seq);
      if (r && match(r)) return seq;
    }
    return 0;
  }
}

// serverSource asks the server whose log it is, of so many records.
/** @param {string} log @param {number} room @returns {Source & { of(query: string): Promise<Page> }} */
export function serverSource(log, room) {
  /** @param {string} path */
  const ask = (path) => get(`${path}&${queryOf({ log })}`);
  return {
    room,
    keyframe: (at) => ask(`/viz/keyframe?at=${at}`),
    records: (from, to) => ask(`/viz/records?from=${from}&to=${to}`),
    of: (query) => ask(`/viz/records?${query}`),
  };
}
