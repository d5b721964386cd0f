// The player moves the cursor. The picture is always the fold of the records up to the cursor, plus moving tokens for
// the next records. One change travels at a time, hop by hop. An arrival (sent, appended, stored) is folded when it
// lands, a departure (received, popped) before it travels. Due records are those that have arrived; in a replay, those
// up to its log time; in a story, those up to its goal. In a stream the cursor shows ten pictures a second.

import { departs, together } from "../stage/hops.js";
import { Pace, changeOf } from "./pace.js";

/**
 * @typedef {import("../stage/plan.js").Plan} Plan
 * @typedef {import("../log/tape.js").Tape} Tape
 * @typedef {import("./pace.js").Stage & Moves} Motion the moving part of the stage
 * @typedef {object} Moves
 * @property {(list: probe.Record[], res: fold.Resource | undefined) => Plan} plan
 * @property {(plan: Plan, t0: number, t1: number, folded: number) => void} launch
 * @property {(plan: Plan) => void} land
 * @property {(list: probe.Record[]) => void} pass
 * @typedef {object} Listener of a player
 * @property {Motion} motion
 * @property {import("./own.js").Own} [own] the viewer's changes
 * @property {() => string} resource the resource on stage
 * @property {(list: probe.Record[], sum?: boolean) => void} applied takes records folded one by one; with sum, the
 *   few to show singly, while the newest picture replaces the others
 * @property {() => void} jumped called when another picture is shown
 * @property {() => void} grounded called when a hop is cancelled
 * @property {() => void} froze called when the tokens stop
 * @property {(problem: unknown) => void} trouble
 * @typedef {object} Flight the current hop, or a pause
 * @property {probe.Record[]} list the records to fold when it lands
 * @property {Plan | null} plan
 * @property {number} end
 * @typedef {"live" | "frozen" | "playing"} Mode
 */

const silence = 1000; // ms; the replay cuts longer silences short
const folded = 4000; // the maximum number of records that a frame folds one by one
const quickest = 48; // the minimum ms of a hop
const legible = 300; // the minimum ms of a hop of the viewer's own change at reading pace: each hop has a sentence
const tooFar = 11_000; // ms behind the newest record, in live mode, beyond which the cursor catches up
const tooMany = 2500; // the same, in records instead of ms
export const sweep = 100; // ms between two pictures of a sweep
const lateFrame = 26; // ms between frames; on a slower page hops take more records
const ahead = 40; // the maximum number of records searched for one hop
const near = 4096; // the maximum number of records searched for the next match

export class Player {
  /** @param {import("../log/fold.js").Fold} fold @param {Listener} on @param {Tape} tape @param {fold.State} state */
  constructor(fold, on, tape, state) {
    this.fold = fold;
    this.on = on;
    this.motion = on.motion;
    this.beat = new Pace(on.motion, on.own);
    /** @type {Mode} */
    this.mode = "live";
    this.tape = tape;
    this.state = state;
    this.cursor = state.seq; // the record up to which the picture is folded
    this.head = state.seq; // the newest record
    this.oldest = 0; // the first record with a picture
    this.recording = false; // whether a recording is on stage
    this.moved = false; // whether the viewer chose the moment on stage, by moving or replaying
    this.sweeping = false; // whether records come too fast to show hop by hop
    /** @type {Flight | null} */
    this.flight = null;
    /** @type {[seq: number, clock: number][]} */
    this.came = []; // the newest record of each batch that arrived and is not on stage
    this.headT = state.t; // the newest record's time
    this.frame = 0; // average ms between frames
    this.ready = 0; // in a replay, the newest due record
    this.time = 0; // while playing, the log time in ns
    this.ticket = 0; // the number of the newest move
    this.wanted = 0; // the target of the running seek; 0 if none runs
    this.loading = false;
    this.lent = false; // whether the tape owns the state, which apply must then clone before it folds records
  }

  get clock() { return this.beat.clock; }
  get own() { return this.beat.own; }
  get speed() { return this.beat.speed; }
  set speed(speed) { this.beat.speed = speed; }

  /** @param {Tape} tape @param {fold.State} state @param {boolean} recording */
  reset(tape, state, recording) {
    this.ground();
    this.turned();
    Object.assign(this, { tape, state, cursor: state.seq, head: state.seq, headT: state.t, recording, moved: false });
    this.mode = recording ? "frozen" : "live";
    tape.keep(state, true);
    this.lent = false;
    this.on.jumped();
  }

  forget() {
    this.came = [];
    this.beat.forget();
    this.own.clear();
  }

  turned() {
    this.forget();
    this.beat.arrivals = [];
  }

  // arrived takes records from the feed. They appear on stage when the cursor reaches them.
  /** @param {probe.Record[]} list */
  arrived(list) {
    this.tape.put(list);
    this.reached(list[list.length - 1]);
    if (this.mode === "live") this.await(list);
  }

  /** @param {probe.Record[]} list */
  await(list) {
    this.came.push([this.head, this.clock]);
    for (const r of list) {
      this.beat.note(r);
      this.own.note(r, (seq) => this.tape.get(seq));
    }
  }

  awaitRest() { this.await(this.tape.between(this.cursor + 1, this.head + 1)); }

  // reached notes the newest record. It keeps oldest in the newest 90 % of a full log, which surely have pictures.
  /** @param {{ seq: number, t: number }} newest */
  reached({ seq, t }) {
    if (seq > this.head) [this.head, this.headT] = [seq, t];
    this.oldest = Math.max(this.oldest, this.head - Math.floor(this.tape.room * 0.9));
  }

  // replaced takes a newer picture. kept has the records in between that are shown singly, or null if they are unknown.
  /** @param {fold.State} state @param {probe.Record[] | null} kept */
  replaced(state, kept) {
    this.tape.put(kept ?? []);
    this.tape.keep(state, true, true);
    this.reached(state);
    if (this.mode !== "live") return;
    this.ground();
    let next = this.cursor + 1;
    while (kept && next <= state.seq && this.tape.get(next)) next++;
    this.sweeping = true;
    this.apply(this.tape.between(this.cursor + 1, next)); // the records that the tape holds
    const before = this.state;
    const counts = (/** @type {fold.State} */ of) => of.resources[this.on.resource()]?.points.RingAppend ?? 0;
    this.came = [];
    this.beat.forget();
    if (kept) this.beat.arrivals.push([this.clock, Math.max(0, counts(state) - counts(before))]);
    else this.own.clear();
    this.beat.streams();
    [this.state, this.lent] = [state, true];
    this.cursor = state.seq;
    for (const r of kept ?? []) this.own.note(r, (seq) => this.tape.get(seq));
    this.own.fold((kept ?? []).filter(({ seq }) => seq >= next), this.clock, true);
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
    this.own.fold(list, this.clock, this.cursor >= this.head);
    this.on.applied(list);
  }

  behind() { return Math.max(0, this.head - this.cursor); }
  target() { return this.wanted || this.cursor; }

  // lag returns how long the record after the cursor has waited, in ms of the stage's clock. Outside live mode, it
  // returns the log time from the cursor to the newest record, in ms.
  lag() {
    if (this.mode !== "live") return Math.max(0, this.headT - this.state.t) / 1e6;
    while (this.came.length > 0 && this.came[0][0] <= this.cursor) this.came.shift();
    return this.came.length > 0 ? this.clock - this.came[0][1] : 0;
  }

  // ---- moves of the viewer

  freeze(reached = false) {
    if (this.mode === "frozen") return;
    this.moved = this.mode === "playing";
    this.leaveGoal(reached);
    this.mode = "frozen";
    this.sweeping = false;
    this.on.froze();
  }

  // going runs act before the cursor moves. It resolves to false if act fails or another move has begun meanwhile.
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

  // seek moves the cursor to a record, and reports whether it got there.
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

  // step moves n records forward or back. A single step forward is played.
  /** @param {number} n */
  async step(n) {
    if (this.flight) this.land(this.flight);
    const seq = this.target() + n;
    if (seq <= this.head && seq >= this.oldest) await (n === 1 && !this.wanted ? this.playTo(seq)
      : this.seek(seq));
  }

  // playTo plays to a record at the reading pace, or faster to arrive within the given ms, and freezes there. It seeks
  // a record that is not ahead, or is beyond a gap. It resolves to false if loading fails or the viewer goes elsewhere.
  /** @param {number} seq @param {{ within?: number }} [how] @returns {Promise<boolean>} */
  async playTo(seq, { within = Infinity } = {}) {
    const to = Math.min(this.head, Math.round(seq));
    if (to <= this.cursor) return this.seek(to);
    if (!(await this.going(() => this.tape.load(this.cursor + 1, to + 1)))) return false;
    if (!this.tape.holds(this.cursor + 1, to + 1)) return this.seek(to);
    this.mode = "playing";
    this.moved = true;
    this.forget();
    const coming = this.tape.between(this.cursor + 1, to + 1);
    const told = new Set(coming.filter((r) => r.key && this.motion.travels(r)).map(changeOf).filter(Boolean));
    const others = coming.filter((r) => !changeOf(r) && this.motion.travels(r)).length;
    return new Promise((done) => {
      this.beat.goalOf(to, told.size, within, done);
      if (this.beat.goal && others * quickest > within) this.beat.goal.from = this.cursor;
    });
  }

  /** @param {boolean} reached */
  leaveGoal(reached) {
    const left = this.beat.goal;
    this.beat.goal = null;
    left?.done(reached);
  }

  // stepTo moves to the next or the previous record that match accepts. It returns false only if none is nearby.
  /** @param {number} direction @param {(r: probe.Record) => boolean} match */
  async stepTo(direction, match) {
    const from = this.target() + (direction > 0 ? 1 : -near);
    const [first, end] = [Math.max(from, this.oldest + 1), Math.min(from + near, this.head + 1)];
    this.freeze();
    if (!(await this.going(() => this.tape.load(first, end)))) return true;
    const list = this.tape.between(first, end);
    const next = direction > 0 ? list.find(match) : list.findLast(match);
    if (next) await this.seek(next.seq);
    return Boolean(next);
  }

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

  // toggle freezes a running stage. A frozen one returns to live, or plays on if moved, recorded or at another speed.
  toggle() {
    if (this.mode !== "frozen") return this.freeze();
    return this.moved || this.recording || this.speed !== 1 ? this.play() : this.live();
  }

  // ---- at reading pace

  /** @param {number} ms */
  tick(ms) {
    this.beat.clock += ms;
    this.frame += (ms - this.frame) / 20;
    if (this.wanted || this.loading || this.mode === "frozen") return;
    if (this.mode === "playing" && !this.beat.goal && !this.advance(ms)) return;
    this.makeRoom();
    this.readOn();
  }

  // makeRoom lands the current hop at once when a change of the viewer's waits.
  makeRoom() {
    const { flight, own } = this;
    own.fold([], this.clock, this.cursor >= this.head);
    if (own.first && flight && !flight.plan?.moves.some((each) => own.leads(each))) this.land(flight);
  }

  // ground cancels the current hop, goal and seek, because another moment comes on stage.
  ground() {
    this.ticket++;
    this.wanted = 0;
    if (this.flight?.plan) this.on.grounded();
    this.flight = null;
    this.sweeping = false;
    this.leaveGoal(false);
  }

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
      this.beat.behind = this.mode === "live" ? this.lag() : 0;
      const lost = this.mode === "live" && (end - this.cursor > tooMany || this.beat.behind > tooFar);
      this.sweeping = (this.beat.streams() || lost) && !this.own.first; // own changes are never swept over
      if (this.sweeping) return this.apply(this.tape.between(this.cursor + 1, Math.min(end, this.cursor + folded) + 1));
      this.hop(end);
    }
  }

  // hop folds the records before the next one to show, and begins its hop, or a pause if a skipped change begins.
  /** @param {number} end */
  hop(end) {
    /** @type {probe.Record[]} */
    const passed = [];
    let next = null;
    let untold = false; // whether a skipped change begins
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
      if (this.fold.infos.get(r.point).op === "open") break; // the next record travels in a new layout
    }
    this.motion.pass(passed);
    this.apply(passed);
    const pile = this.beat.after(this.cursor);
    if (untold) this.flight = { list: [], plan: null, end: this.clock + this.beat.moment(pile) };
    else if (next) this.take(this.groupFrom(next, end));
  }

  /** @param {probe.Record} r */
  leaves(r) { return departs(this.fold.infos.get(r.point), r); }

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
      // As a hop begins, copies are folded and leave their queues. One queued while others arrive waits for the next.
      const arrives = list.some((each) => motion.travels(each) && !this.leaves(each));
      if (list[n].point === r.point && this.leaves(r) && arrives) break;
      n = list.length - 1;
    }
    return list.slice(0, n + 1);
  }

  // take begins a hop: its tokens set out, and land at its end. Departures are folded at once.
  /** @param {probe.Record[]} list */
  take(list) {
    const plan = this.motion.plan(list, this.state.resources[this.on.resource()]);
    const arriving = list.findIndex((r) => this.motion.travels(r) && !this.leaves(r));
    const left = plan.ms > 0 ? (arriving < 0 ? list.length : arriving) : 0;
    const arrives = list.some(({ point }) => point === "HandlerCalled") ? 3 : 1; // the last hop of the way takes longer
    const least = plan.moves.some((each) => this.own.leads(each)) ? legible * arrives : 0;
    const ms = plan.ms > 0 ? Math.max(quickest, Math.max(least, plan.ms) / this.beat.hurry(list[0].seq)) : 0;
    const flight = (this.flight = { list: list.slice(left), plan, end: this.clock + ms });
    this.motion.launch(plan, this.clock, flight.end, list[left - 1]?.seq ?? 0);
    this.apply(list.slice(0, left));
    if (ms === 0) this.land(flight);
  }

  /** @param {Flight} flight */
  land({ list, plan }) {
    this.flight = null;
    if (plan) this.motion.land(plan);
    this.apply(list);
    this.beat.went = this.clock;
  }

  // ---- a replay

  // advance moves the replay's log time forward, and reports whether there are records to show.
  /** @param {number} ms */
  advance(ms) {
    const last = this.head;
    if (!this.flight && this.cursor >= last) {
      if (this.recording) this.freeze();
      else if (this.speed >= 1) this.live(); // in slow motion, the replay waits for more records
      return false;
    }
    this.time += ms * 1e6 * this.speed;
    let next = this.tape.get(this.ready + 1);
    for (; next && next.t <= this.time; next = this.tape.get(this.ready + 1)) {
      this.ready++;
      this.beat.note(next);
    }
    if (!next && this.ready < last) this.fetchMore(this.ready + 1);
    if (next && !this.flight && this.cursor >= this.ready) {
      this.time = Math.max(this.time, next.t - silence * 1e6 * this.speed);
    }
    return Boolean(this.flight) || this.cursor < this.ready;
  }

  /** @param {number} seq */
  async fetchMore(seq) {
    this.loading = true;
    try {
      await this.tape.load(seq, Math.min(this.head + 1, seq + 2000));
      if (!this.tape.get(seq)) await this.seek(this.head); // the record has left the log meanwhile
    } catch (problem) {
      this.freeze();
      this.on.trouble(problem);
    } finally {
      this.loading = false;
    }
  }
}
