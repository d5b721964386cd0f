// The pace selects the changes to show hop by hop, and their speed; it skips others, whose records are only folded. Up
// to ten changes in ten seconds are all shown, faster if several wait; only late changes of the demo are skipped. If
// there are more, one is shown at a time. Over twenty a second are a stream. The viewer's own go first (own.js).

import { keep } from "../log/tape.js";
import { changeOf as nameOf } from "../stage/hops.js";
import { Own } from "./own.js";

/**
 * @typedef {object} Goal the record to which a story or a step plays
 * @property {number} seq
 * @property {number} due
 * @property {(reached: boolean) => void} done
 * @property {number} left the number of changes that have not begun
 * @property {number} every one in this many changes is shown
 * @property {number} began
 * @property {number} from the record before its first one; NaN if all records without a change can be shown
 * @typedef {object} Change a change that is due, or has begun
 * @property {number} seq its first record; 0 if unknown
 * @property {boolean} [told] whether it is shown; undefined if it has not begun
 * @typedef {object} Stage the part of the stage that the pace uses
 * @property {(r: probe.Record) => boolean} travels
 * @property {(r: probe.Record) => boolean} matches whether a record is about the followed object
 * @property {(change: string) => boolean} under whether a copy of the change rests at a station
 */

const way = 2000; // the approximate ms that a change takes
const told = 10; // up to this many changes in ten seconds (lately) are all shown
const lately = 10_000; // ms
const burst = 2000; // ms over which the rate is measured, so that a burst is not a stream
const gap = 60; // the maximum ms between two skipped changes
const waits = 300; // ms without progress after which the next change may be shown
const late = 9500; // ms behind the newest record, in live mode, beyond which some changes are skipped
const noted = 4000; // the maximum number of remembered changes
const final = 5; // the number of a goal's last records, which never lag
const few = 20; // the maximum number of changes a second that travel
const calm = 0.7; // a stream ends below this share of that rate
const patience = 2000; // ms for which the rate must stay that low

// changeOf names the change that a record is about, or returns "" for a record without a version.
/** @param {probe.Record} r */
export const changeOf = (r) => (r.rv ? nameOf(r) : "");

export class Pace {
  /** @param {Stage} stage @param {Own} [own] */
  constructor(stage, own = new Own()) {
    this.stage = stage;
    this.own = own;
    this.clock = 0; // ms of stage time, which stops while the player is frozen
    this.speed = 1;
    this.times = 1; // the current multiple of the reading pace
    this.single = false; // whether only one of several changes travels
    this.behind = 0; // ms of stage time that the record after the cursor has waited, in live mode
    /** @type {Goal | null} */
    this.goal = null;
    /** @type {[at: number, n: number][]} */
    this.arrivals = []; // the number of changes that became due at each time
    /** @type {Map<string, Change>} */
    this.changes = new Map(); // by name
    /** @type {Map<number, probe.Record>} */
    this.asked = new Map(); // commits, by the seq of their requests' records
    this.current = ""; // the change that is shown
    this.went = 0; // the end of its last hop
    this.stream = false;
    this.loud = 0; // when the rate was last near a stream's
  }

  forget() {
    this.changes.clear();
    this.asked.clear();
    this.current = "";
  }

  // note counts a change as due at its first record, a commit or an event in etcd3's channel.
  /** @param {probe.Record} r */
  note(r) {
    if (r.point !== "Etcd3IncomingSent" && r.point !== "TxnCommitted") return;
    if (!r.key || !this.stage.travels(r)) return;
    if (r.point === "TxnCommitted") keep(this.asked, r.args?.[0] ?? 0, r, noted);
    if (this.changes.has(changeOf(r))) return;
    this.known(changeOf(r), r.seq);
    this.arrivals.push([this.clock, 1]);
  }

  /** @param {string} change @param {number} [seq] @returns {Change} */
  known(change, seq = 0) {
    const one = this.changes.get(change) ?? { seq, told: undefined };
    if (!this.changes.has(change)) keep(this.changes, change, one, noted);
    return one;
  }

  /** @param {number} ms */
  since(ms) {
    const { arrivals, clock } = this;
    while (arrivals.length > noted || (arrivals.length > 0 && arrivals[0][0] < clock - lately)) arrivals.shift();
    return arrivals.reduce((sum, [t, n]) => sum + (t > clock - ms ? n : 0), 0);
  }

  // streams reports whether the rate of due changes makes a stream. While there is a goal, the rate counts as 0.
  streams(rate = this.goal ? 0 : (this.since(burst) * 1000) / burst) {
    if (rate > few * calm) this.loud = this.clock;
    this.stream = rate > few || (this.stream && this.clock - this.loud <= patience);
    return this.stream;
  }

  /** @param {number} seq */
  after(seq) { return [...this.changes.values()].filter((change) => change.seq > seq).length; }

  /** @param {probe.Record} r */
  begins(r) { return Boolean(r.key && changeOf(r)) && this.changes.get(changeOf(r))?.told === undefined; }

  // tells reports whether to show the change of a record, or of a request, hop by hop. Skipped ones are only folded.
  /** @param {probe.Record} r */
  tells(r) {
    const about = this.asked.get(r.seq) ?? r;
    const change = changeOf(about);
    if (this.own.first) return this.stars(r, change);
    if (!change && this.own.demo(r) && this.after(r.seq) > 0) return false;
    if (!change && this.lags(r)) return false;
    if (!change) return !this.samples() || !r.key || this.current.endsWith(nameOf(r)); // a workqueue key has no version
    const one = this.known(change);
    if (one.told === undefined) {
      one.told = this.chooses(about);
      if (one.told) [this.current, this.went] = [change, this.clock];
    }
    return one.told;
  }

  // stars reports whether a record moves the viewer's first change towards the client on stage or, at the dispatcher,
  // towards any client. The viewer's next changes, and others' to its object, are shown later; all others are skipped.
  /** @param {probe.Record} r @param {string} change */
  stars(r, change) {
    const { own } = this;
    if (!own.leads({ change, seq: r.seq })) {
      const [rv, key] = change.split(" ");
      const later = own.theirs.has(change) || own.queue.some((e) => e.key === key && Number(rv) >= Number(e.rv));
      if (change && !later) this.known(change).told = false;
      return false;
    }
    if (change) this.known(change).told = true;
    [this.current, this.went] = [change, this.clock];
    own.setsOut(this.clock);
    return r.point === "InputSent" || Boolean(own.who?.yours(r));
  }

  // lags reports whether a goal is too late to show a record without a change. The last few records never lag.
  /** @param {probe.Record} r */
  lags({ seq }) {
    const { goal } = this;
    if (!goal) return false;
    const [left, time] = [goal.seq - final - seq, Math.max(0, goal.due - this.clock)];
    return left / (goal.seq - goal.from) > time / (goal.due - goal.began);
  }

  // samples reports whether there are too many changes to show all.
  samples() {
    if (this.goal) return this.goal.every > 1;
    return this.single || this.since(lately) > told || this.behind > late;
  }

  // chooses reports whether to show a change: never a summed one, always a followed one, any other except late ones of
  // the demo. If there are too many: with a goal some of them, otherwise the newest once the current one ends or stops.
  /** @param {probe.Record} r */
  chooses(r) {
    const { goal, clock, own } = this;
    if (goal && r.key) goal.left--;
    if (own.summed.has(changeOf(r))) return false;
    if (this.stage.matches(r)) return true;
    if (!this.samples()) return Boolean(goal) || !own.demo(r) || this.behind < waits;
    if (goal) return goal.left % goal.every === 0 && (goal.left <= 0 || clock + way / 3 < goal.due);
    const over = !this.stage.under(this.current) || clock - this.went > waits;
    return over && (this.single || this.after(r.seq) === 0);
  }

  // hurry returns the multiple of the reading pace for the next hop. More waiting changes make it higher.
  /** @param {number} from */
  hurry(from) {
    const { goal, clock, speed } = this;
    const { queue } = this.own;
    const pile = queue.length > 0 ? queue.length - 1 : this.samples() ? 0 : this.after(from);
    if (!goal) return (this.times = Math.min(4, Math.max(0.25, speed)) * Math.min(3, 1 + 0.35 * pile));
    const left = way * (1 + Math.floor(goal.left / goal.every)) * 0.7;
    return (this.times = Math.max(1, Math.min(3, left / Math.max(50, goal.due - clock - gap * goal.left))));
  }

  // moment returns the pause, in ms, after a skipped change. pile is the number of waiting changes.
  /** @param {number} pile */
  moment(pile) {
    if (this.own.first) return 0;
    return Math.min(gap, this.goal ? Math.max(0, this.goal.due - this.clock) : 400 / (pile + 1));
  }

  // goalOf sets a goal: show as many of n changes as the time (within, in ms) allows, and the last one even if late.
  /** @param {number} seq @param {number} n @param {number} within @param {(reached: boolean) => void} done */
  goalOf(seq, n, within, done) {
    const every = Math.max(1, Math.ceil(((n - 1) * way) / 3 / Math.max(1, within - gap * n)));
    this.goal = { seq, due: this.clock + within, done, left: n, every, began: this.clock, from: NaN };
  }
}
