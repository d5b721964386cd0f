// The viewer's own changes, made with the page, its console or kubectl. A commit's record refers to the record of its
// request, which has the agent. Own changes are shown first, one at a time, each until the last handler has returned.

import { objectKey } from "../log/fold.js";
import { like } from "../log/query.js";
import { keep } from "../log/tape.js";
import { changeOf } from "../stage/hops.js";
import { hangsOn, programs } from "../stage/places.js";

/**
 * @typedef {object} Change a change of the viewer's
 * @property {string} change its name
 * @property {string} key
 * @property {string} rv
 * @property {string} resource
 * @property {number} seq the seq of its request's record
 * @property {number} t the time of that record
 * @property {"waits" | "travels" | "arrived" | "elsewhere"} state
 * @property {number} ms from the request to its newest record
 * @property {Map<probe.Station, number>} came the time at which it reached each station
 * @property {number} left the number of handlers that have yet to return
 * @property {boolean} handed whether the informer has passed it to all its listeners
 * @property {number} began the time at which it began to travel, by the stage's clock; 0 if it has not
 * @property {number} went the time of its last move, by the stage's clock
 * @typedef {object} Who the rules that decide who made a change
 * @property {string} viewers a pattern of agents whose changes go first
 * @property {string} demo the agent whose changes make room for the viewer's
 * @property {string[]} writes methods of requests that change something
 * @property {(r: probe.Record) => boolean} here whether a record is about the resource on stage
 * @property {(r: probe.Record) => boolean} yours whether a record is on the way to, or in, the client on stage
 * @property {(r: probe.Record) => probe.Station} station
 */

const most = 5; // the maximum number of changes in the queue; further ones are only counted
const patience = 1000; // ms without a record after which a change counts as arrived
const kept = 200; // the maximum number of the demo's objects to remember

export class Own {
  /** @param {Who} [who] */
  constructor(who) {
    this.who = who;
    /** @type {Map<string, string>} */
    this.demos = new Map(); // objects that the demo has written since the viewer last did
    this.clear();
  }

  clear() {
    /** @type {Change[]} */
    this.queue = []; // changes that have not arrived
    /** @type {Change | null} */
    this.last = null; // the newest change that has arrived
    /** @type {Change | null} */
    this.elsewhere = null; // the newest change of another resource
    /** @type {Set<string>} */
    this.summed = new Set(); // changes not shown, because too many wait
    /** @type {Map<string, string>} */
    this.theirs = new Map(); // other agents' changes to the same objects: the agent, by change
  }

  /** @returns {Change | undefined} */
  get first() { return this.queue[0]; } // the change that travels, or travels next
  get star() { return this.first ?? this.last; }

  // leads reports whether a token carries the first change, or the request that caused it.
  /** @param {{ change: string, seq: number }} of */
  leads({ change, seq }) {
    const { first } = this;
    return Boolean(first) && (change === first?.change || seq === first?.seq);
  }

  // its reports whether a record belongs to a queued change or to the last one, outside the lanes of other clients.
  /** @param {probe.Record} r */
  its(r) {
    const is = (/** @type {Change | null} */ each) => each?.change === changeOf(r) && this.who?.yours(r);
    return [...this.queue, this.last].some((each) => is(each) || each?.seq === r.seq);
  }

  /** @param {probe.Record} r */
  demo(r) { return this.demos.has(objectKey(r.key ?? "")); }

  // note remembers a commit by the viewer or the demo, or to an object of the viewer's. asked returns a record, by seq.
  /** @param {probe.Record} r @param {(seq: number) => probe.Record | undefined} asked */
  note(r, asked) {
    const { who, queue, demos } = this;
    const request = who && r.key && r.point === "TxnCommitted" && asked(r.args?.[0] ?? 0);
    if (!request) return;
    const { agent = "", method = "", path = "" } = request.texts ?? {};
    const [key, rv, change] = [objectKey(r.key ?? ""), r.rv ?? "0", changeOf(r)];
    if (!like(who.viewers, agent) || !who.writes.includes(method) || programs.test(path)) {
      if (agent === who.demo) keep(demos, key, agent, kept);
      if ([...queue, this.last].some((each) => each?.key === key)) this.theirs.set(change, agent);
      return;
    }
    demos.delete(key);
    for (let seq = request.seq; seq < r.seq; seq++) { // two commits of one object may be recorded in either order
      const one = asked(seq);
      const later = one?.point === "TxnCommitted" && one.key === r.key && Number(one.rv) > Number(rv);
      if (!later || queue.some((each) => each.change === changeOf(one))) continue;
      this.theirs.set(changeOf(one), asked(one.args?.[0] ?? 0)?.texts?.agent ?? "");
    }
    /** @type {Change} */
    const own = { change, key, rv, resource: r.resource ?? "", seq: request.seq, t: request.t, state: "waits", ms: 0,
      left: 0, handed: false, began: 0, went: 0,
      came: new Map([request, r].map((each) => [who.station(each), each.t])) };
    if (!who.here(r)) this.elsewhere = Object.assign(own, { state: "elsewhere" });
    else if (queue.length >= most) this.summed.add(change);
    else queue.push(own);
    if (queue.length === 1) this.summed.clear();
  }

  /** @param {number} clock */
  setsOut(clock) {
    const { first } = this;
    if (first?.state === "waits") Object.assign(first, { state: "travels", began: clock, went: clock });
  }

  // fold updates the own changes from the records that the cursor has passed; newest means that no record follows.
  /** @param {probe.Record[]} list @param {number} clock @param {boolean} newest */
  fold(list, clock, newest) {
    for (const r of this.queue.length > 0 ? list : []) {
      const one = r.key && this.queue.find(({ change }) => change === changeOf(r));
      if (one && this.who?.yours(r)) step(one, r, this.who.station(r), clock);
    }
    const { first } = this;
    if (!first) return;
    first.went ||= clock;
    const over = first.handed && first.left <= 0;
    if (!over && !(newest && clock - first.went > patience)) return;
    first.state = "arrived";
    this.last = first;
    this.queue.shift();
  }
}

/** @param {Change} one @param {probe.Record} r @param {probe.Station} station @param {number} clock */
function step(one, r, station, clock) {
  if (!one.came.has(station)) one.came.set(station, r.t);
  one.ms = Math.max(one.ms, (r.t - one.t) / 1e6);
  one.went = clock;
  if (r.point === "HandlerReturned") one.left--;
  if (r.point !== "Distributed") return;
  one.left += r.args?.[0] ?? 0;
  one.handed = true;
}

const server = ["http", "etcd", "etcd3", "ring", "store", "incoming", "dispatch"];

// yours reports whether a record is on the way to the client on stage, or inside that client.
/** @param {import("../stage/places.js").Places} places @param {probe.Station} station @param {string} subject */
export function yours(places, station, subject) {
  const { informer, serving, listeners } = places;
  const listener = listeners.lanes.get(subject)?.subject;
  return server.includes(station) || serving.has(subject) || subject === informer
    || Boolean(listener && hangsOn(places, listener));
}

// wayOf returns each station on a change's way, in path order, with the ms from the one before; the last time includes
// the work there. The two sides of a hand-over may report in either order; a time is at most the next station's.
/** @param {Change} own @param {probe.Station[]} order */
export function wayOf({ came, t, ms }, order) {
  const way = [...came].sort(([a], [b]) => order.indexOf(a) - order.indexOf(b));
  let next = Infinity;
  for (const each of [...way].reverse()) next = each[1] = Math.min(each[1], next);
  way[way.length - 1][1] = t + ms * 1e6;
  return way.map(([station, at], i) => /** @type {const} */ ([station, (at - way[Math.max(0, i - 1)][1]) / 1e6]));
}
