// The player: it moves the cursor, and the cursor is the only clock. In every mode the picture is the fold of the
// records up to the cursor, and, for those that come next, tokens on their way.
//
// What arrives goes onto the tape. Live, and when a story plays to a record, a reader could not follow the program: the
// player takes the records at reading pace, in groups of those that can be looked at together. An arrival (something is
// sent, appended, stored) travels first, and is folded when it lands. A departure (something is received, popped) is
// folded first, and travels then. With more on the tape than there is time for, the hops get shorter; with much more,
// the cursor sweeps over the records, and the stage shows it ten times a second. So it is never much longer than a
// reader's patience behind the newest record.
//
// A replay has the log's own clock: a record is folded when its time has come, and its token sets out a moment before.

import { objectKey } from "../log/fold.js";
import { departs } from "../stage/steps.js";

const longestWait = 1500; // ms: where longer nothing would happen, the replay moves on
const rest = 400; // ms that are left of such a wait
const folded = 4000; // records a frame may fold while replaying

const patience = 2400; // ms that the cursor may be behind the newest record, live
const usually = 22; // ms of reading that a record takes, until it is known better
const hurried = 24; // times the reading pace: more than that is swept over
const calm = 16; // … until what comes can be read at so many times the reading pace
export const sweep = 100; // ms between two pictures of what is swept over
const sweepWithin = 300; // ms after which what was swept over is on stage
const together = 64; // records in one group
const lead = 160; // ms before its record's time that a replay's token sets out
const led = 40; // records whose tokens may be on their way in a replay
const average = 3000; // ms over which the rate of what arrives is taken

// still is what a player does that no stage draws for.
const still = { prepare: () => null, launch() {}, landed() {}, abort() {} };

// newPlayer calls on.applied(list) when records have been folded one after the other, on.summed(before, kept) when the
// newest picture came instead of the records between, of which kept matter one by one, on.jumped() when the picture is
// another one, on.froze() when what moved stands, on.skipped(ns) when silence was cut short, and on.trouble(error).
// on.motion prepares and launches the tokens (stage/motion.js).
export function newPlayer(fold, on) {
  const p = {
    mode: "live", // live, frozen, playing
    state: null,
    cursor: 0, // the record up to which the picture is folded
    head: 0, // the newest one there is
    oldest: 0, // the first picture that can be had
    speed: 1,
    loop: null, // {from, to}
    recording: false, // nothing comes any more
    tape: null,
    moved: false, // the viewer went to another moment since the freeze
    clock: 0, // ms that have passed on the stage; it stands where nothing moves
    pace: 1, // times the reading pace, at present
    sweeping: false, // more comes than anybody can read
  };
  const motion = on.motion ?? still;
  let flight = null; // the group that is on its way: {list, end, departed, done}
  let goal = null; // to where a story plays: {seq, pace, due, done}
  let free = 0; // until when, by the clock, the last group took
  let swept = 0; // when the cursor swept last
  let reading = usually; // ms a record
  let rate = 0; // records a ms that arrive
  let rated = 0;
  let came = []; // [newest seq, when] of what arrived and is not on stage
  let ran = 1; // the replay's speed, when tokens set out last
  let previewed = 0; // in a replay: up to where tokens have set out
  let time = 0; // while playing: where in the log's time, ns
  let ticket = 0; // of the newest seek
  let wanted = 0; // where that seek goes; 0: no seek is under way
  let loading = false;
  let lent = false; // the tape keeps the picture that is on stage: it must not be folded on

  // reset begins with another log.
  p.reset = (tape, state, recording) => {
    ticket++;
    wanted = 0;
    ground();
    came = [];
    rate = 0;
    Object.assign(p, { tape, state, cursor: state.seq, head: state.seq, recording, loop: null, moved: false });
    p.mode = recording ? "frozen" : "live";
    tape.keep(state, true);
    lent = false;
    on.jumped();
  };

  // arrived takes records from the feed. They are on stage when the cursor comes to them.
  p.arrived = (list) => {
    p.tape.put(list);
    p.head = Math.max(p.head, list.at(-1).seq);
    came.push([p.head, performance.now()]);
    note(list.length);
  };

  // note counts what arrives.
  function note(n) {
    const ms = Math.max(0, p.clock - rated);
    rated = p.clock;
    rate = rate * Math.exp(-ms / average) + n / average;
  }

  // replaced takes a newer picture from the feed, and of the records between those that matter one by one; null: it is
  // not known what was between.
  p.replaced = (state, kept) => {
    p.tape.put(kept ?? []);
    p.tape.keep(state, true, true);
    p.head = Math.max(p.head, state.seq);
    note(Math.max(0, state.seq - p.cursor));
    if (p.mode !== "live") return;
    ticket++;
    wanted = 0;
    ground();
    if (kept) catchUp(state.seq);
    came = [];
    const before = p.state;
    [p.state, lent] = [state, true];
    p.cursor = state.seq;
    if (kept) on.summed(before, kept);
    else on.jumped();
  };

  function apply(list) {
    if (list.length === 0) return;
    own();
    fold.apply(p.state, list);
    p.cursor = p.state.seq;
    p.tape.keep(p.state);
    on.applied(list);
  }

  function own() {
    if (lent) p.state = structuredClone(p.state);
    lent = false;
  }

  p.behind = () => Math.max(0, p.head - p.cursor);
  p.target = () => wanted || (flight?.step ? flight.list[0].seq : p.cursor);

  // lag is for how many ms the record after the cursor has been waiting.
  p.lag = () => {
    while (came.length > 0 && came[0][0] <= p.cursor) came.shift();
    return came.length > 0 ? performance.now() - came[0][1] : 0;
  };

  // runs reports whether the stage's clock runs.
  p.runs = () => p.mode !== "frozen" || Boolean(flight?.step);

  p.freeze = () => {
    if (p.mode === "frozen") return;
    p.moved = p.mode === "playing";
    leaveGoal(false);
    p.mode = "frozen";
    p.sweeping = false;
    on.froze();
  };

  // seek shows the picture at a cursor, and stays there. It returns whether the cursor was not sent elsewhere
  // meanwhile.
  p.seek = async (seq, mode = "frozen") => {
    const mine = ++ticket;
    ground();
    wanted = Math.min(p.head, Math.max(p.oldest, Math.round(seq)));
    p.mode = mode;
    p.moved = true;
    try {
      const state = await p.tape.stateAt(wanted);
      if (mine !== ticket) return false;
      await p.tape.load(Math.max(wanted - 40, p.oldest + 1), Math.min(p.head, wanted + 200) + 1).catch(() => {});
      if (mine !== ticket) return false;
      wanted = 0;
      [p.state, lent] = [state, false];
      p.cursor = previewed = state.seq;
      time = state.t;
      on.jumped();
      return true;
    } catch (problem) {
      if (mine === ticket) wanted = 0;
      on.trouble(problem);
      return false;
    }
  };

  // step goes n records on or back. One record on is shown as it happens; the promise is kept when it has.
  p.step = async (n) => {
    if (flight?.step) land();
    const seq = p.target() + n;
    if (seq > p.head || seq < p.oldest) return;
    const next = p.tape.get(seq);
    if (n !== 1 || wanted || !next) return p.seek(seq);
    ground();
    p.mode = "frozen";
    p.moved = true;
    free = p.clock;
    return new Promise((done) => take([next], 1, { step: true, done }));
  };

  // playTo plays on to a record at so many times the reading pace, faster if it would not be there within so many ms,
  // and rests there. It returns whether it came there: the viewer may go elsewhere meanwhile. What lies behind the
  // cursor is sought.
  p.playTo = async (seq, { pace = 1, within = Infinity } = {}) => {
    const to = Math.min(p.head, Math.round(seq));
    if (to <= p.cursor) return p.seek(to);
    const mine = ++ticket;
    ground();
    try {
      await p.tape.load(p.cursor + 1, to + 1);
    } catch (problem) {
      on.trouble(problem);
      return false;
    }
    if (mine !== ticket) return false;
    if (!p.tape.holds(p.cursor + 1, to + 1)) return p.seek(to);
    wanted = 0;
    p.mode = "playing";
    p.moved = true;
    free = p.clock;
    return new Promise((done) => (goal = { seq: to, pace, due: p.clock + within, done }));
  };

  function leaveGoal(reached) {
    const left = goal;
    goal = null;
    left?.done(reached);
  }

  // stepTo goes to the next record that match accepts, or the one before; it returns whether there is one.
  p.stepTo = async (direction, match) => {
    const from = p.target();
    p.freeze();
    try {
      const seq = await p.tape.find(from + direction, direction, p.oldest + 1, p.head, match);
      if (seq) await p.seek(seq);
      return seq > 0;
    } catch (problem) {
      on.trouble(problem);
      return true;
    }
  };

  // live returns to the end and stays with it, at the pace of the program.
  p.live = async () => {
    if (p.recording) return p.seek(p.head);
    ground();
    p.loop = null;
    p.speed = 1;
    if (!wanted && p.tape.holds(p.cursor + 1, p.head + 1)) {
      own();
      fold.apply(p.state, p.tape.between(p.cursor + 1, p.head + 1));
    } else {
      const mine = ++ticket;
      wanted = p.head;
      try {
        let state;
        do {
          state = await p.tape.stateAt(p.head); // what came meanwhile may have been passed over: then once more
          if (mine !== ticket) return;
        } while (!p.tape.holds(state.seq + 1, p.head + 1));
        fold.apply(state, p.tape.between(state.seq + 1, p.head + 1));
        [p.state, lent] = [state, false];
      } catch (problem) {
        if (mine === ticket) wanted = 0;
        return on.trouble(problem);
      }
      wanted = 0;
    }
    p.cursor = p.state.seq;
    p.mode = "live";
    p.moved = false;
    came = [];
    on.jumped();
  };

  p.play = async () => {
    if (p.cursor >= p.head && p.recording) await p.seek(p.loop?.from ?? p.oldest);
    ground();
    time = p.state.t;
    previewed = p.cursor;
    p.mode = "playing";
  };

  // toggle freezes what moves. What was only frozen returns to the end; who has gone elsewhere plays from there.
  p.toggle = () => {
    if (p.mode !== "frozen") return p.freeze();
    return p.moved || p.recording || p.speed !== 1 ? p.play() : p.live();
  };

  // tick lets ms pass on the stage.
  p.tick = (ms) => {
    p.clock += ms;
    if (flight?.step) return p.clock < flight.end || land();
    if (wanted || loading || p.mode === "frozen") return;
    if (p.mode === "live" || goal) read();
    else replay(ms);
  };

  // ---- at reading pace

  // ground ends what is on its way: another moment comes on stage.
  function ground() {
    motion.abort(p.clock);
    const was = flight;
    flight = null;
    p.sweeping = false;
    was?.done?.();
    leaveGoal(false);
  }

  function read() {
    const end = goal ? goal.seq : p.head;
    for (let n = 0; n < folded; n++) {
      if (flight && p.clock < flight.end) return;
      if (flight) land();
      if (p.cursor >= end) return goal && arrive();
      free = Math.max(free, p.clock - 120); // what a late frame missed is made up for, but no more
      const hurry = paceFor(end);
      if (p.sweeping) return sweepOver(end);
      const group = groupFrom(p.cursor + 1, end);
      if (group.length === 0) return fetchMore(p.cursor + 1);
      take(group, hurry);
    }
  }

  function arrive() {
    p.mode = "frozen";
    p.sweeping = false;
    leaveGoal(true);
    on.froze();
  }

  // paceFor says at how many times the reading pace the rest can be on stage within a reader's patience.
  function paceFor(end) {
    if (goal) {
      const hurry = Math.max(goal.pace, (reading * (end - p.cursor)) / Math.max(50, goal.due - p.clock));
      if (hurry > hurried && !p.sweeping) [p.sweeping, swept] = [true, p.clock];
      return (p.pace = hurry);
    }
    const wait = reading * (end - p.cursor);
    const hurry = wait / Math.max(200, patience - p.lag());
    note(0);
    if (hurry > hurried && !p.sweeping) [p.sweeping, swept] = [true, p.clock];
    else if (hurry < 1 && rate * reading < calm) p.sweeping = false;
    return (p.pace = Math.max(1, p.speed, hurry));
  }

  // groupFrom returns the records that can be looked at together: a token goes one way at a time, and nothing is sent
  // in the picture before what was received is.
  function groupFrom(from, end) {
    const list = [];
    const ways = new Map(); // by version, or else by key: the point that moves it, and whose
    const keys = new Set();
    let leaves = null;
    for (let seq = from; seq <= end && list.length < together; seq++) {
      const r = p.tape.get(seq);
      if (!r) break;
      const info = fold.infos.get(r.point);
      if (motion.travels?.(r)) {
        const leaving = departs(info, r);
        const [object, owner] = [r.rv || r.key || "", r.subject ?? ""];
        const [point, owners] = ways.get(object) ?? [r.point, new Set()];
        const taken = [...ways.values()].some(([other, theirs]) => other === r.point && theirs.has(owner));
        const again = !r.rv && keys.has(objectKey(r.key ?? ""));
        if (leaves !== null && (leaving !== leaves || point !== r.point || taken || again)) break;
        leaves = leaving;
        ways.set(object, [point, owners.add(owner)]);
        keys.add(objectKey(r.key ?? ""));
      }
      list.push(r);
      if (info.op === "open" || info.op === "close") break; // what comes travels to another picture
    }
    return list;
  }

  // take begins a group: its tokens set out, and land at its end.
  function take(list, hurry, more = {}) {
    const jobs = list.map((r) => motion.prepare(r, p.clock)).filter(Boolean);
    const ms = Math.max(0, ...jobs.map((job) => job.ms));
    if (!more.step) reading += (ms / list.length - reading) * Math.min(0.2, list.length / 200);
    const departed = list.some((r) => motion.travels?.(r) && departs(fold.infos.get(r.point), r));
    const end = free + ms / hurry;
    flight = { list, end, departed, ...more };
    for (const job of jobs) motion.launch(job, free, end, p.clock);
    free = end;
    if (departed) apply(list);
    if (ms === 0) land();
  }

  // land folds what has arrived.
  function land() {
    const { list, departed, done } = flight;
    flight = null;
    motion.landed(Math.max(p.clock, free));
    if (!departed) apply(list);
    done?.();
  }

  // sweepOver folds what would take too long to look at.
  function sweepOver(end) {
    free = p.clock;
    const passed = p.clock - swept;
    if (passed <= 0) return;
    swept = p.clock;
    const backlog = end - p.cursor;
    if (goal) {
      const left = Math.min(goal.due - p.clock, (reading * backlog) / goal.pace);
      return apply(p.tape.between(p.cursor + 1, p.cursor + 1 + Math.ceil((backlog * passed) / Math.max(passed, left))));
    }
    const all = p.lag() > patience || passed >= sweepWithin;
    apply(
      p.tape.between(
        p.cursor + 1,
        p.cursor + 1 + (all ? backlog : Math.min(backlog, Math.max(20, Math.ceil((backlog * passed) / sweepWithin))))
      )
    );
  }

  // catchUp folds what is at hand before a record.
  function catchUp(before) {
    const end = Math.min(before, p.head);
    if (p.cursor < end && p.tape.get(p.cursor + 1)) {
      let last = p.cursor + 1;
      while (last < end && p.tape.get(last + 1)) last++;
      apply(p.tape.between(p.cursor + 1, last + 1));
    }
  }

  // ---- a replay

  function replay(ms) {
    if (p.loop && p.cursor >= p.loop.to) return p.seek(p.loop.from, "playing");
    // in slow motion there will be more
    if (p.cursor >= p.head) return p.recording ? p.freeze() : p.speed < 1 || p.live();
    time += ms * 1e6 * p.speed;
    const list = [];
    const last = Math.min(p.head, p.loop?.to ?? p.head);
    for (let seq = p.cursor + 1; list.length < folded && seq <= last; seq++) {
      const r = p.tape.get(seq);
      if (!r) {
        if (list.length === 0) fetchMore(seq);
        break;
      }
      if (r.t > time) {
        if (list.length === 0) cutSilence(r.t);
        break;
      }
      list.push(r);
    }
    if (list.length === folded) time = list.at(-1).t; // the screen does not keep up: it is the clock that waits
    if (p.speed !== ran) {
      motion.abort(p.clock); // what is on its way would come too early, or too late
      [ran, previewed] = [p.speed, p.cursor];
    }
    send(list, last);
    motion.landed(p.clock, list.at(-1)?.seq ?? p.cursor);
    apply(list);
  }

  // send lets the tokens set out of what is folded now, and of what is going to be.
  function send(list, last) {
    for (const r of list) if (r.seq > previewed) launch(r, p.clock);
    previewed = Math.max(previewed, list.at(-1)?.seq ?? 0, p.cursor);
    for (let n = 0; n < led && previewed < last; n++) {
      const r = p.tape.get(previewed + 1);
      const due = r ? (r.t - time) / 1e6 / p.speed : Infinity;
      if (due > lead) return;
      launch(r, p.clock + Math.max(0, due));
      previewed++;
    }
  }

  function launch(r, due) {
    const one = motion.prepare(r, p.clock);
    if (!one) return;
    if (departs(fold.infos.get(r.point), r)) motion.launch(one, due, due + Math.min(one.ms, lead));
    else motion.launch(one, p.clock, due);
  }

  function cutSilence(until) {
    const wait = (until - time) / 1e6 / p.speed;
    if (wait < longestWait) return;
    const skipped = until - rest * 1e6 * p.speed - time;
    time += skipped;
    on.skipped(skipped);
  }

  async function fetchMore(seq) {
    loading = true;
    try {
      await p.tape.load(seq, Math.min(p.head + 1, seq + 2000));
      if (!p.tape.get(seq)) await p.seek(p.head); // it has left the log while we watched
    } catch (problem) {
      p.freeze();
      on.trouble(problem);
    } finally {
      loading = false;
    }
  }

  return p;
}
