// The player: it moves the cursor, and the cursor is the only clock. In every mode the picture is the fold of the
// records up to the cursor, and, for the one that comes next, a token on its way.
//
// One change travels. The program is a thousand times too fast to be followed, so time is stretched: the player takes
// the records that are due one hop after the other. An arrival (something is sent, appended, stored) travels first, and
// is folded when it lands. A departure (something is received, popped) is folded first, and travels then. What does not
// travel is folded at once. Due is what has arrived; in a replay, what the log's own clock has come to; what a story
// plays to. Which changes are told, and how fast, is the pace's (pace.js). Of a stream the cursor sweeps over the
// records, and the stage shows it ten times a second. Nothing here knows the document.

import { departs, together } from "../stage/hops.js";
import { Pace, changeOf } from "./pace.js";

/**
 * @typedef {import("../stage/plan.js").Plan} Plan
 * @typedef {import("../log/tape.js").Tape} Tape
 * @typedef {import("./pace.js").Stage & Moves} Motion what moves on the stage
 * @typedef {object} Moves
 * @property {(list: probe.Record[]) => Plan} plan
 * @property {(plan: Plan, t0: number, t1: number, folded: number) => void} launch
 * @property {(plan: Plan) => void} land
 * @property {(list: probe.Record[]) => void} pass
 * @typedef {object} Listener of a player
 * @property {Motion} motion
 * @property {() => string} resource on stage
 * @property {(list: probe.Record[], sum?: boolean) => void} applied records were folded one after the other; or the
 *   newest picture came instead of the records between, of which these matter one by one
 * @property {() => void} jumped the picture is another one
 * @property {() => void} grounded what was on its way never left
 * @property {() => void} froze what moved stands
 * @property {(ns: number) => void} skipped silence was cut short
 * @property {(problem: unknown) => void} trouble
 * @typedef {object} Flight the hop that is on its way, or a moment in which nothing is
 * @property {probe.Record[]} list that are folded when it lands
 * @property {Plan | null} plan
 * @property {number} end
 * @property {number} [seq]
 * @property {boolean} [step] the viewer has asked for it
 * @property {() => void} [done]
 * @typedef {"live" | "frozen" | "playing"} Mode
 */

const longestWait = 1500; // ms: where longer nothing would happen, the replay moves on
const rest = 400; // ms that are left of such a wait
const folded = 4000; // records a frame may fold one by one
const quickest = 48; // ms of a hop that is told
const tooFar = 11_000; // ms behind the newest record, live, after which the cursor goes there
const tooMany = 2500; // records, likewise
export const sweep = 100; // ms between two pictures of what is swept over
const lateFrame = 26; // ms from one frame to the next: on a slower page a hop has fewer stops
const ahead = 40; // records that are looked at for what belongs to one hop

export class Player {
  /** @param {import("../log/fold.js").Fold} fold @param {Listener} on @param {Tape} tape @param {fold.State} state */
  constructor(fold, on, tape, state) {
    this.fold = fold;
    this.on = on;
    this.motion = on.motion;
    this.beat = new Pace(on.motion);
    /** @type {Mode} */
    this.mode = "live";
    this.tape = tape;
    this.state = state;
    this.cursor = state.seq; // the record up to which the picture is folded
    this.head = state.seq; // the newest one there is
    this.oldest = 0; // the first picture that can be had
    this.recording = false; // nothing comes any more
    this.moved = false; // the viewer went to another moment since the freeze
    this.sweeping = false; // more comes than anybody can read
    this.worldPace = 1; // times at which the held world's clock runs
    /** @type {Flight | null} */
    this.flight = null;
    /** @type {[seq: number, when: number, clock: number][]} */
    this.came = []; // newest records of what arrived and is not on stage
    this.frame = 0; // ms from one frame to the next, on average
    this.ready = 0; // in a replay: the newest record that is due
    this.time = 0; // while playing: where in the log's time, ns
    this.ticket = 0; // of the newest seek
    this.wanted = 0; // where that seek goes; 0: no seek is under way
    this.loading = false;
    this.lent = false; // the tape keeps the picture that is on stage: it must not be folded on
  }

  get clock() { return this.beat.clock; }
  get pace() { return this.beat.times; }
  get share() { return this.beat.share; }
  get speed() { return this.beat.speed; }
  set speed(speed) { this.beat.speed = speed; }
  set single(on) { this.beat.single = on; }
  get single() { return this.beat.single; }

  // reset begins with another log.
  /** @param {Tape} tape @param {fold.State} state @param {boolean} recording */
  reset(tape, state, recording) {
    this.ground();
    this.turned();
    Object.assign(this, { tape, state, cursor: state.seq, head: state.seq, recording, moved: false });
    this.mode = recording ? "frozen" : "live";
    tape.keep(state, true);
    this.lent = false;
    this.on.jumped();
  }

  // forget forgets what waits to be shown: the cursor goes elsewhere.
  forget() {
    this.came = [];
    this.beat.forget();
  }

  // turned is told that the records of another resource are shown.
  turned() {
    this.forget();
    this.beat.arrivals = [];
  }

  // arrived takes records from the feed. They are on stage when the cursor comes to them.
  /** @param {probe.Record[]} list */
  arrived(list) {
    this.tape.put(list);
    this.reached(list[list.length - 1].seq);
    if (this.mode !== "live") return;
    this.came.push([this.head, performance.now(), this.clock]);
    for (const r of list) this.beat.note(r);
  }

  // reached notes how far the log has come, and what has left it. Its oldest picture is not of its oldest record.
  /** @param {number} seq */
  reached(seq) {
    this.head = Math.max(this.head, seq);
    this.oldest = Math.max(this.oldest, this.head - Math.floor(this.tape.room * 0.9));
  }

  // pile is how many changes there are of which no record is at or before the cursor.
  pile() { return this.beat.after(this.cursor); }

  // replaced takes a newer picture from the feed, and of the records between those that matter one by one; null: it is
  // not known what was between.
  /** @param {fold.State} state @param {probe.Record[] | null} kept */
  replaced(state, kept) {
    this.tape.put(kept ?? []);
    this.tape.keep(state, true, true);
    this.reached(state.seq);
    if (this.mode !== "live") return;
    this.ground();
    let next = this.cursor + 1;
    while (kept && next <= state.seq && this.tape.get(next)) next++;
    this.apply(this.tape.between(this.cursor + 1, next)); // what is at hand
    const before = this.state;
    const counts = (/** @type {fold.State} */ of) => of.resources[this.on.resource()]?.points.RingAppend ?? 0;
    this.forget();
    if (kept) this.beat.arrived(Math.max(0, counts(state) - counts(before)));
    this.beat.streams();
    [this.state, this.lent] = [state, true];
    this.cursor = state.seq;
    if (kept) this.on.applied(kept, true);
    else this.on.jumped();
  }

  /** @param {probe.Record[]} list */
  apply(list) {
    if (list.length === 0) return;
    if (this.lent) this.state = structuredClone(this.state);
    this.lent = false;
    this.fold.apply(this.state, list);
    this.cursor = this.state.seq;
    this.tape.keep(this.state);
    this.on.applied(list);
  }

  behind() { return Math.max(0, this.head - this.cursor); }
  target() { return this.wanted || (this.flight?.step ? this.flight.seq ?? this.cursor : this.cursor); }

  // lag is for how many ms the record after the cursor has been waiting.
  lag() {
    while (this.came.length > 0 && this.came[0][0] <= this.cursor) this.came.shift();
    return this.came.length > 0 ? performance.now() - this.came[0][1] : 0;
  }

  // waited is that by the stage's clock, which does not count what a slow page has missed.
  waited() { return this.mode === "live" && this.lag() > 0 ? this.clock - this.came[0][2] : 0; }

  // runs reports whether the stage's clock runs.
  runs() { return this.mode !== "frozen" || Boolean(this.flight?.step); }

  // ---- where the viewer goes

  freeze(reached = false) {
    if (this.mode === "frozen") return;
    this.moved = this.mode === "playing";
    this.leaveGoal(reached);
    this.mode = "frozen";
    this.sweeping = false;
    this.on.froze();
  }

  // going takes its time on the way to another moment, and reports whether the cursor was not sent elsewhere meanwhile.
  /** @param {() => Promise<void>} act */
  async going(act) {
    this.ground();
    const mine = this.ticket;
    try {
      await act();
    } catch (problem) {
      if (mine === this.ticket) this.wanted = 0;
      this.on.trouble(problem);
      return false;
    }
    return mine === this.ticket;
  }

  // seek shows the picture at a cursor, and stays there. It returns whether it came there.
  /** @param {number} seq @param {Mode} [mode] */
  async seek(seq, mode = "frozen") {
    let { state } = this;
    const there = await this.going(async () => {
      const wanted = (this.wanted = Math.min(this.head, Math.max(this.oldest, Math.round(seq))));
      [this.mode, this.moved] = [mode, mode !== "live"];
      state = await this.tape.stateAt(wanted);
      const [from, to] = [Math.max(wanted - 40, this.oldest + 1), Math.min(this.head, wanted + 200) + 1];
      await this.tape.load(from, to).catch(() => {});
    });
    if (!there) return false;
    [this.state, this.lent, this.wanted] = [state, false, 0];
    this.cursor = this.ready = state.seq;
    this.time = state.t;
    this.forget();
    this.on.jumped();
    return true;
  }

  // step goes n records on or back. One record on is shown as it happens; the promise is kept when it has.
  /** @param {number} n @returns {Promise<void | boolean>} */
  async step(n) {
    if (this.flight?.step) this.land(this.flight);
    const seq = this.target() + n;
    if (seq > this.head || seq < this.oldest) return;
    const next = this.tape.get(seq);
    if (n !== 1 || this.wanted || !next) return this.seek(seq);
    this.ground();
    this.mode = "frozen";
    this.moved = true;
    return new Promise((done) => this.take([next], { step: true, done: () => done() }));
  }

  // playTo plays on to a record at so many times the reading pace, faster if it would not be there within so many ms,
  // and rests there. It returns whether it came there: the viewer may go elsewhere meanwhile. What lies behind the
  // cursor is sought.
  /** @param {number} seq @param {{ pace?: number, within?: number }} [how] @returns {Promise<boolean>} */
  async playTo(seq, { pace = 1, within = Infinity } = {}) {
    const to = Math.min(this.head, Math.round(seq));
    if (to <= this.cursor) return this.seek(to);
    if (!(await this.going(() => this.tape.load(this.cursor + 1, to + 1)))) return false;
    if (!this.tape.holds(this.cursor + 1, to + 1)) return this.seek(to);
    this.mode = "playing";
    this.moved = true;
    this.forget();
    const coming = this.tape.between(this.cursor + 1, to + 1);
    const told = new Set(coming.filter((r) => r.key && this.motion.travels(r)).map(changeOf).filter(Boolean));
    return new Promise((done) => this.beat.goalOf(to, told.size, pace, within, done));
  }

  /** @param {boolean} reached */
  leaveGoal(reached) {
    const left = this.beat.goal;
    this.beat.goal = null;
    left?.done(reached);
  }

  // stepTo goes to the next record that match accepts, or the one before; it returns whether there is one.
  /** @param {number} direction @param {(r: probe.Record) => boolean} match */
  async stepTo(direction, match) {
    const from = this.target();
    this.freeze();
    try {
      const seq = await this.tape.find(from + direction, direction, this.oldest + 1, this.head, match);
      if (seq) await this.seek(seq);
      return seq > 0;
    } catch (problem) {
      this.on.trouble(problem);
      return true;
    }
  }

  // live returns to the end and stays with it, at the pace of the program.
  async live() {
    if (this.recording) return this.seek(this.head);
    this.speed = 1;
    return this.seek(this.head, "live");
  }

  async play() {
    if (this.cursor >= this.head && this.recording) await this.seek(this.oldest);
    this.ground();
    this.time = this.state.t;
    this.ready = this.cursor;
    this.forget();
    this.mode = "playing";
  }

  // toggle freezes what moves. What was only frozen returns to the end; who has gone elsewhere plays from there.
  toggle() {
    if (this.mode !== "frozen") return this.freeze();
    return this.moved || this.recording || this.speed !== 1 ? this.play() : this.live();
  }

  // ---- at reading pace

  // tick lets ms pass on the stage.
  /** @param {number} ms */
  tick(ms) {
    this.beat.clock += ms;
    this.frame += (ms - this.frame) / 20;
    const { flight } = this;
    if (flight?.step) return this.clock < flight.end ? undefined : this.land(flight);
    if (this.wanted || this.loading || this.mode === "frozen") return;
    if (this.mode === "playing" && !this.beat.goal && !this.advance(ms)) return;
    this.readOn();
  }

  // ground ends what is on its way, and a seek: another moment comes on stage.
  ground() {
    this.ticket++;
    this.wanted = 0;
    const was = this.flight;
    this.flight = null;
    if (was?.plan) this.on.grounded();
    this.sweeping = false;
    was?.done?.();
    this.leaveGoal(false);
  }

  // due is the newest record that may be shown.
  due() { return this.beat.goal ? this.beat.goal.seq : this.mode === "live" ? this.head : this.ready; }

  readOn() {
    for (let n = 0; n < folded; n++) {
      if (this.flight && this.clock < this.flight.end) return;
      if (this.flight) this.land(this.flight);
      const end = this.due();
      if (this.cursor >= end) {
        if (this.beat.goal) this.freeze(true);
        return;
      }
      if (!this.tape.get(this.cursor + 1)) return void this.fetchMore(this.cursor + 1);
      this.beat.behind = this.waited();
      const lost = this.mode === "live" && (end - this.cursor > tooMany || this.beat.behind > tooFar);
      this.sweeping = this.beat.streams() || lost; // what comes would take too long to look at
      if (this.sweeping) return this.apply(this.tape.between(this.cursor + 1, Math.min(end, this.cursor + folded) + 1));
      this.hop(end);
    }
  }

  // hop folds what does not travel, and begins the next hop.
  /** @param {number} end */
  hop(end) {
    /** @type {probe.Record[]} */
    const passed = [];
    let next = null;
    let untold = false; // a change begins that lands without being told
    for (let seq = this.cursor + 1; seq <= end && passed.length < folded && !untold; seq++) {
      const r = this.tape.get(seq);
      if (!r) break;
      if (this.motion.travels(r)) {
        const begins = this.beat.begins(r);
        if (this.beat.tells(r)) {
          next = r;
          break;
        }
        untold = begins;
      }
      passed.push(r);
      if (this.fold.infos.get(r.point).op === "open") break; // what comes travels to another picture
    }
    this.motion.pass(passed);
    this.apply(passed);
    if (untold) this.flight = { list: [], plan: null, end: this.clock + this.beat.moment(this.pile()) };
    else if (next) this.take(this.groupFrom(next, end));
  }

  /** @param {probe.Record} r */
  leaves(r) { return departs(this.fold.infos.get(r.point), r); }

  // groupFrom returns the records that are one hop, from one that travels.
  /** @param {probe.Record} first @param {number} end */
  groupFrom(first, end) {
    const { motion } = this;
    const pace = this.beat.hurry(first.seq) * Math.max(1, this.frame / lateFrame);
    let n = 0;
    const list = [first];
    for (let seq = first.seq + 1; seq <= Math.min(end, first.seq + ahead); seq++) {
      const r = this.tape.get(seq);
      if (!r || ["open", "close"].includes(this.fold.infos.get(r.point).op)) break;
      list.push(r);
      if (!motion.travels(r)) continue;
      if (!together(list[n], r, pace)) break;
      // Copies leave their queues together as a hop begins, for that is when they are folded. What waits in a queue
      // while others arrive leaves it with the next hop.
      const arrives = list.some((each) => motion.travels(each) && !this.leaves(each));
      if (list[n].point === r.point && this.leaves(r) && arrives) break;
      n = list.length - 1;
    }
    return list.slice(0, n + 1);
  }

  // take begins a hop: its tokens set out, and land at its end. What has left is folded at once.
  /** @param {probe.Record[]} list @param {{ step?: boolean, done?: () => void }} [more] */
  take(list, more = {}) {
    const plan = this.motion.plan(list);
    const arriving = list.findIndex((r) => this.motion.travels(r) && !this.leaves(r));
    const left = plan.ms > 0 ? (arriving < 0 ? list.length : arriving) : 0;
    const pace = more.step ? 1 : this.beat.hurry(list[0].seq);
    const ms = plan.ms > 0 ? Math.max(quickest, plan.ms / pace) : 0;
    const flight = { list: list.slice(left), plan, end: this.clock + ms, seq: list[list.length - 1].seq, ...more };
    this.flight = flight;
    this.motion.launch(plan, this.clock, flight.end, list[left - 1]?.seq ?? 0);
    this.apply(list.slice(0, left));
    if (ms === 0) this.land(flight);
  }

  // land folds what has arrived.
  /** @param {Flight} flight */
  land({ list, plan, done }) {
    this.flight = null;
    if (plan) this.motion.land(plan);
    this.apply(list);
    this.beat.went = this.clock;
    done?.();
  }

  // ---- a replay

  // advance lets the log's own time pass, and reports whether there is something to be shown.
  /** @param {number} ms */
  advance(ms) {
    const last = this.head;
    if (!this.flight && this.cursor >= last) {
      if (this.recording) this.freeze();
      else if (this.speed >= 1) this.live(); // in slow motion there will be more
      return false;
    }
    this.time += ms * 1e6 * this.speed;
    let next = this.tape.get(this.ready + 1);
    for (; next && next.t <= this.time; next = this.tape.get(this.ready + 1)) {
      this.ready++;
      this.beat.note(next);
    }
    if (!next && this.ready < last) this.fetchMore(this.ready + 1);
    if (next && !this.flight && this.cursor >= this.ready) this.cutSilence(next.t);
    return Boolean(this.flight) || this.cursor < this.ready;
  }

  /** @param {number} until */
  cutSilence(until) {
    const wait = (until - this.time) / 1e6 / this.speed;
    if (wait < longestWait) return;
    const skipped = until - rest * 1e6 * this.speed - this.time;
    this.time += skipped;
    this.on.skipped(skipped);
  }

  /** @param {number} seq */
  async fetchMore(seq) {
    this.loading = true;
    try {
      await this.tape.load(seq, Math.min(this.head + 1, seq + 2000));
      if (!this.tape.get(seq)) await this.seek(this.head); // it has left the log while we watched
    } catch (problem) {
      this.freeze();
      this.on.trouble(problem);
    } finally {
      this.loading = false;
    }
  }
}
