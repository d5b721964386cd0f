// The tape: records and pictures in memory. The picture at a cursor is the newest up to it, with the records since.

import { get, queryOf } from "../lib/api.js";
import { agentOf } from "./fold.js";
import { partsOf } from "./recording.js";

/**
 * @typedef {import("./fold.js").Fold} Fold
 * @typedef {{ records: probe.Record[], next: number }} Page
 * @typedef {object} Source
 * @property {number} room the number of records it keeps
 * @property {(at: number) => Promise<{ seq: number, state: fold.State }>} keyframe
 * @property {(from: number, to: number) => Promise<Page>} records
 */

// keep puts a value into a map, and drops the map's oldest entry if there are more than room.
/** @template K, V @param {Map<K, V>} map @param {K} key @param {V} value @param {number} room */
export function keep(map, key, value, room) {
  map.set(key, value);
  if (map.size > room) map.delete(/** @type {K} */ (map.keys().next().value));
}

const spare = 1024; // records kept beyond the room of the source
const frameRoom = 16; // pictures kept if there is a server, which keeps as many; at most one is older than its log
const partsRoom = 200_000; // parts of all kept pictures
const namesRoom = 8192; // clients whose names are kept
const frameEvery = 4096; // the minimum number of records between two pictures, unless one is always kept

// A Tape begins empty. Without a source, put brings all records. A tape keeps at most `spare` more than its source.
export class Tape {
  /** @param {Fold} fold @param {Source | null} source */
  constructor(fold, source) {
    this.fold = fold;
    this.source = source;
    this.room = source?.room ?? Infinity;
    /** @type {Map<number, probe.Record>} */
    this.records = new Map(); // records by sequence number, in order of arrival
    /** @type {{ seq: number, parts: number, state: fold.State }[]} */
    this.frames = []; // pictures, the oldest first
    /** @type {Map<string, string>} */
    this.names = new Map(); // the clients' names by watcher, for closed watchers, too
  }

  /** @param {number} seq */
  get(seq) { return this.records.get(seq); }

  /** @param {string | undefined} resource @param {string} [subject] @param {string} [text] */
  name(resource, subject = "", text = "") {
    if (text) keep(this.names, `${resource ?? ""} ${subject}`, agentOf(text), namesRoom);
  }

  // called returns the name of a record's subject: for a watcher, its client's name if known.
  /** @param {{ resource?: string, subject?: string }} r */
  called(r) { return this.names.get(`${r.resource ?? ""} ${r.subject}`) ?? r.subject ?? ""; }

  /** @param {probe.Record[]} list */
  put(list) {
    for (const r of list) {
      if (r.point === "WireOpened") this.name(r.resource, r.subject, r.texts?.agent);
      keep(this.records, r.seq, r, this.room + spare);
      for (const seq of this.records.keys()) if (seq > r.seq - this.room - spare) break; else this.records.delete(seq);
    }
  }

  // keep stores a picture, copied unless given. It skips a stored one and, unless always, one soon after another.
  /** @param {fold.State} state @param {boolean} [always] @param {boolean} [given] */
  keep(state, always = false, given = false) {
    const { frames } = this;
    const i = frames.findLastIndex(({ seq }) => seq <= state.seq) + 1;
    const before = frames[i - 1];
    if (before?.seq === state.seq) return;
    if (!always && before && state.seq - before.seq < Math.max(frameEvery, before.parts)) return;
    for (const [resource, { subjects }] of Object.entries(state.resources)) {
      for (const [id, { texts }] of Object.entries(subjects)) this.name(resource, id, texts.WireOpened?.agent);
    }
    frames.splice(i, 0, { seq: state.seq, parts: partsOf(state), state: given ? state : structuredClone(state) });
    while (this.source && (frames.length > frameRoom || frames[1]?.seq < state.seq - this.room)) frames.shift();
    const parts = frames.reduce((n, frame) => n + frame.parts, 0);
    // Thinning out keeps the newest and every second picture: older pictures are further apart.
    if (parts > partsRoom) this.frames = frames.filter((_, i) => i % 2 === 0 || i === frames.length - 1);
  }

  /** @param {number} from @param {number} to */
  holds(from, to) { return this.between(from, to).length === to - from; }

  // load fetches the records in [from, to), except those at either end that are in memory. It needs a source.
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

  // stateAt returns the picture at a cursor, which the caller may fold on. It throws if the picture is gone.
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

  /** @param {number} from @param {number} to */
  between(from, to) {
    const all = Array.from({ length: Math.max(0, to - from) }, (_, i) => this.get(from + i));
    return all.filter((r) => r !== undefined);
  }
}

/** @param {string} log @param {number} room @returns {Source} */
export const serverSource = (log, room) => ({ room,
  keyframe: (at) => get(`/viz/keyframe?${queryOf({ at, log })}`),
  records: (from, to) => get(`/viz/records?${queryOf({ from, to, log })}`) });
