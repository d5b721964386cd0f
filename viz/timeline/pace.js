// The pace: which changes are told, and how fast. Up to ten changes within ten seconds, each is told: the more wait,
// the quicker. Of more than that one is told at a time, whole, and the others land meanwhile. Above twenty a second
// they are a stream. Nothing here knows the document.

import { changeOf as nameOf } from "../stage/hops.js";

/**
 * @typedef {object} Goal to where a story plays
 * @property {number} seq
 * @property {number} pace
 * @property {number} due
 * @property {(reached: boolean) => void} done
 * @property {number} left so many changes have not begun
 * @property {number} every of so many changes one is told
 * @typedef {object} Change that is due, or has begun
 * @property {number} seq the record with which it begins; 0: not known
 * @property {boolean} [told] undefined: it has not begun
 * @typedef {object} Stage what of the stage the pace goes by
 * @property {(r: probe.Record) => boolean} travels
 * @property {(r: probe.Record) => boolean} matches is it about what is followed?
 * @property {(change: string) => boolean} under has a copy of it yet to go on by itself?
 */

const way = 2000; // ms that a change is on its way, about
const told = 10; // changes within so many seconds that are told each
const lately = 10_000; // ms
const burst = 2000; // ms over which a stream is told from a burst
const gap = 60; // ms between two changes that land untold, at most
const waits = 300; // ms after which a change that does not go on is left where it is
const late = 9500; // ms behind the newest record, live, after which not each change is told
const noted = 4000; // changes that are remembered as waiting, or as told
const few = 20; // changes a second, at most, that travel
const calm = 0.7; // … and again when there are so much fewer
const patience = 2000; // … for so many ms

// changeOf names the change that a record is about; "" is none.
/** @param {probe.Record} r */
export const changeOf = (r) => (r.rv ? nameOf(r) : "");

export class Pace {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.clock = 0; // ms that have passed on the stage; it stands where nothing moves
    this.speed = 1;
    this.times = 1; // times the reading pace, at present
    this.share = 1; // the change on its way is one of so many
    this.single = false; // of several changes one travels
    this.behind = 0; // for how many ms of the stage's clock the record after the cursor has been waiting, live
    /** @type {Goal | null} */
    this.goal = null;
    /** @type {[at: number, n: number][]} */
    this.arrivals = []; // how many changes became due, by the clock
    /** @type {Map<string, Change>} */
    this.changes = new Map(); // by name
    this.current = ""; // the change that is told
    this.went = 0; // when its last hop ended
    this.landing = 0; // changes that have landed untold since the last one that was told
    this.stream = false;
    this.hushed = 0; // since when there is less
  }

  // forget forgets what waits to be shown: the cursor goes elsewhere.
  forget() {
    this.changes.clear();
    [this.current, this.landing, this.share] = ["", 0, 1];
  }

  // note counts a change that becomes due with a record.
  /** @param {probe.Record} r */
  note(r) {
    if (r.point !== "Etcd3IncomingSent" && r.point !== "TxnCommitted") return;
    if (!r.key || this.changes.has(changeOf(r)) || !this.stage.travels(r)) return;
    this.remember(changeOf(r), r.seq);
    this.arrived(1);
  }

  /** @param {number} n */
  arrived(n) { this.arrivals.push([this.clock, n]); }

  /** @param {string} change @param {number} seq @returns {Change} */
  remember(change, seq) {
    const { changes } = this;
    const one = { seq, told: undefined };
    changes.set(change, one);
    if (changes.size > noted) changes.delete(/** @type {string} */ (changes.keys().next().value));
    return one;
  }

  // since is how many changes became due in the last so many ms.
  /** @param {number} ms */
  since(ms) {
    const { arrivals, clock } = this;
    while (arrivals.length > noted || (arrivals.length > 0 && arrivals[0][0] < clock - lately)) arrivals.shift();
    return arrivals.reduce((sum, [t, n]) => sum + (t > clock - ms ? n : 0), 0);
  }

  // streams takes notice of how many changes become due in a second, and reports whether they are a stream. While a
  // story plays, none are.
  streams(rate = this.goal ? 0 : (this.since(burst) * 1000) / burst) {
    if (rate > few) this.stream = true;
    if (rate > few * calm) this.hushed = 0;
    else if (this.stream) this.hushed ||= this.clock;
    if (this.hushed && this.clock - this.hushed > patience) [this.stream, this.hushed] = [false, 0];
    return this.stream;
  }

  // after is how many changes begin after a record.
  /** @param {number} seq */
  after(seq) {
    let n = 0;
    for (const change of this.changes.values()) if (change.seq > seq) n++;
    return n;
  }

  // begins reports whether a change begins with a record.
  /** @param {probe.Record} r */
  begins(r) { return Boolean(r.key && changeOf(r)) && this.changes.get(changeOf(r))?.told === undefined; }

  // tells reports whether the change of a record is told. One that is not lands as its records are folded.
  /** @param {probe.Record} r */
  tells(r) {
    const change = changeOf(r);
    if (!change) return !this.samples() || !r.key || this.current.endsWith(nameOf(r)); // a key in a workqueue
    const one = this.changes.get(change) ?? this.remember(change, 0);
    if (one.told === undefined) {
      one.told = this.chooses(r);
      if (one.told) {
        [this.current, this.share, this.landing, this.went] = [change, r.key ? this.landing + 1 : 1, 0, this.clock];
      } else if (r.key) this.landing++;
    }
    return one.told;
  }

  // samples reports whether there are too many changes to tell each.
  samples() {
    if (this.goal) return this.goal.every > 1;
    return this.single || this.since(lately) > told || this.behind > late;
  }

  // chooses reports whether a change that begins is told: where not each can be, the newest one, when the one before is
  // over, or does not go on.
  /** @param {probe.Record} r */
  chooses(r) {
    const { goal, clock } = this;
    if (goal && r.key) goal.left--;
    if (!this.samples() || this.stage.matches(r)) return true;
    if (goal) return goal.left % goal.every === 0 && (goal.left <= 0 || clock + way / 3 < goal.due);
    const over = !this.stage.under(this.current) || clock - this.went > waits;
    return over && (this.single || this.after(r.seq) === 0);
  }

  // hurry is at how many times the reading pace hops are shown. It quickens with what waits.
  /** @param {number} from */
  hurry(from) {
    const { goal, clock, speed } = this;
    const pile = this.samples() ? 0 : this.after(from);
    if (!goal) return (this.times = Math.min(4, Math.max(0.25, speed)) * Math.min(3, 1 + 0.35 * pile));
    const left = way * (1 + Math.floor(goal.left / goal.every)) * 0.7;
    return (this.times = Math.max(goal.pace, Math.min(3, left / Math.max(50, goal.due - clock - gap * goal.left))));
  }

  // moment is how long a change that lands untold is waited for, of so many.
  /** @param {number} pile */
  moment(pile) {
    return Math.min(gap, this.goal ? Math.max(0, this.goal.due - this.clock) : 400 / (pile + 1));
  }

  // goalOf is a goal that tells as many of some changes as there is time for, the last one among them. When the time is
  // over, it is the only one.
  /**
   * @param {number} seq @param {number} n @param {number} pace @param {number} within
   * @param {(reached: boolean) => void} done
   */
  goalOf(seq, n, pace, within, done) {
    const every = Math.max(1, Math.ceil(((n - 1) * way) / 3 / Math.max(1, within - gap * n)));
    this.goal = { seq, pace, due: this.clock + within, done, left: n, every };
  }
}
