// @ts-nocheck
// The player: it moves the cursor, and the cursor is the only clock. In every mode the picture is the fold of the
// records up to the cursor, and, for the one that comes next, a token on its way.
//
// One change travels. The program is a thousand times too fast to be followed, so time is stretched: the player takes
// the records that are due one hop after the other. An arrival (something is sent, appended, stored) travels first, and
// is folded when it lands. A departure (something is received, popped) is folded first, and travels then. What does not
// travel is folded at once. Due is what has arrived; in a replay, what the log's own clock has come to; what a story
// plays to.
//
// Up to ten changes within ten seconds, each is told: the more wait, the quicker. Of more than that one is told at a
// time, whole, and the others land meanwhile. Above twenty a second the cursor sweeps over the records, and the stage
// shows it ten times a second.

import { changeOf as nameOf, departs, together } from "../stage/steps.js";

const longestWait = 1500; // ms: where longer nothing would happen, the replay moves on
const rest = 400; // ms that are left of such a wait
const folded = 4000; // records a frame may fold one by one

const way = 2000; // ms that a change is on its way, about
const quickest = 48; // ms of a hop that is told
const told = 10; // changes within so many seconds that are told each
const lately = 10_000; // ms
const burst = 2000; // ms over which a stream is told from a burst
const gap = 60; // ms between two changes that land untold, at most
const waits = 300; // ms after which a change that does not go on is left where it is
const late = 9500; // ms behind the newest record, live, after which not each change is told
const tooFar = 11_000; // … and after which the cursor goes there
const tooMany = 2500; // records, likewise
export const sweep = 100; // ms between two pictures of what is swept over
const noted = 4000; // changes that are remembered as waiting, or as told
const lateFrame = 26; // ms from one frame to the next: on a slower page a hop has fewer stops
const ahead = 40; // records that are looked at for what belongs to one hop

// changeOf names the change that a record is about; "" is none.
const changeOf = (r) => (r.rv ? nameOf(r) : "");

// newPlayer calls on.applied(list) when records have been folded one after the other, on.applied(kept, true) when the
// newest picture came instead of the records between, of which kept matter one by one, on.jumped() when the picture is
// another one, on.grounded() when what was on its way never left, on.froze() when what moved stands, on.skipped(ns)
// when silence was cut short, and on.trouble(error). on.motion plans and launches the tokens (stage/motion.js).
export function newPlayer(fold, on) {
  const p = {
    mode: "live", // live, frozen, playing
    state: null,
    cursor: 0, // the record up to which the picture is folded
    head: 0, // the newest one there is
    oldest: 0, // the first picture that can be had
    speed: 1,
    recording: false, // nothing comes any more
    tape: null,
    moved: false, // the viewer went to another moment since the freeze
    clock: 0, // ms that have passed on the stage; it stands where nothing moves
    pace: 1, // times the reading pace, at present
    sweeping: false, // more comes than anybody can read
    share: 1, // the change on its way is one of so many
    single: false, // of several changes one travels
  };
  const { motion } = on;
  let flight = null; // the hop that is on its way: {list, plan, end, step, done}
  let goal = null; // to where a story plays: {seq, pace, due, done, left, every}; left: so many changes have not begun
  let came = []; // [newest seq, when, by the stage's clock] of what arrived and is not on stage
  let arrivals = []; // [when, how many] changes became due, by the clock
  // by name the changes that are due, or have begun: {seq, told}, the record with which it begins (0: not known), and
  // whether it is told (undefined: it has not begun)
  const changes = new Map();
  let current = ""; // the change that is told
  let went = 0; // when its last hop ended
  let landing = 0; // changes that have landed untold since the last one that was told
  let frame = 0; // ms from one frame to the next, on average
  let ready = 0; // in a replay: the newest record that is due
  let time = 0; // while playing: where in the log's time, ns
  let ticket = 0; // of the newest seek
  let wanted = 0; // where that seek goes; 0: no seek is under way
  let loading = false;
  let lent = false; // the tape keeps the picture that is on stage: it must not be folded on

  // reset begins with another log.
  p.reset = (tape, state, recording) => {
    ground();
    p.turned();
    Object.assign(p, { tape, state, cursor: state.seq, head: state.seq, recording, moved: false });
    p.mode = recording ? "frozen" : "live";
    tape.keep(state, true);
    lent = false;
    on.jumped();
  };

  // forget forgets what waits to be shown: the cursor goes elsewhere.
  function forget() {
    came = [];
    changes.clear();
    [current, landing, p.share] = ["", 0, 1];
  }

  // turned is told that the records of another resource are shown.
  p.turned = () => (forget(), (arrivals = []));

  // arrived takes records from the feed. They are on stage when the cursor comes to them.
  p.arrived = (list) => {
    p.tape.put(list);
    reached(list.at(-1).seq);
    if (p.mode !== "live") return;
    came.push([p.head, performance.now(), p.clock]);
    for (const r of list) note(r);
  };

  // reached notes how far the log has come, and what has left it. Its oldest picture is not of its oldest record.
  function reached(seq) {
    p.head = Math.max(p.head, seq);
    p.oldest = Math.max(p.oldest, p.head - Math.floor(p.tape.room * 0.9));
  }

  // note counts a change that becomes due with a record.
  function note(r) {
    if (r.point !== "Etcd3IncomingSent" && r.point !== "TxnCommitted") return;
    if (!r.key || changes.has(changeOf(r)) || !motion.travels(r)) return;
    remember(changeOf(r), r.seq);
    arrivals.push([p.clock, 1]);
  }

  function remember(change, seq) {
    changes.set(change, { seq, told: undefined });
    if (changes.size > noted) changes.delete(changes.keys().next().value);
  }

  // since is how many changes became due in the last so many ms.
  function since(ms) {
    while (arrivals.length > noted || arrivals[0]?.[0] < p.clock - lately) arrivals.shift();
    return arrivals.reduce((sum, [t, n]) => sum + (t > p.clock - ms ? n : 0), 0);
  }

  // rate is how many of them there are in a second at present.
  const rate = () => (since(burst) * 1000) / burst;

  // after is how many changes begin after a record, and pile those of which no record is at or before the cursor.
  const after = (seq) => [...changes.values()].filter((change) => change.seq > seq).length;
  p.pile = () => after(p.cursor);

  // replaced takes a newer picture from the feed, and of the records between those that matter one by one; null: it is
  // not known what was between.
  p.replaced = (state, kept) => {
    p.tape.put(kept ?? []);
    p.tape.keep(state, true, true);
    reached(state.seq);
    if (p.mode !== "live") return;
    ground();
    let next = p.cursor + 1;
    while (kept && next <= state.seq && p.tape.get(next)) next++;
    apply(p.tape.between(p.cursor + 1, next)); // what is at hand
    const before = p.state;
    const counts = (of) => of.resources[on.resource?.()]?.points.RingAppend ?? 0;
    forget();
    if (kept) arrivals.push([p.clock, Math.max(0, counts(state) - counts(before))]);
    motion.rated(rate(), p.clock);
    [p.state, lent] = [state, true];
    p.cursor = state.seq;
    if (kept) on.applied(kept, true);
    else on.jumped();
  };

  function apply(list) {
    if (list.length === 0) return;
    if (lent) p.state = structuredClone(p.state);
    lent = false;
    fold.apply(p.state, list);
    p.cursor = p.state.seq;
    p.tape.keep(p.state);
    on.applied(list);
  }

  p.behind = () => Math.max(0, p.head - p.cursor);
  p.target = () => wanted || (flight?.step ? flight.seq : p.cursor);

  // lag is for how many ms the record after the cursor has been waiting.
  p.lag = () => {
    while (came.length > 0 && came[0][0] <= p.cursor) came.shift();
    return came.length > 0 ? performance.now() - came[0][1] : 0;
  };

  // waited is that by the stage's clock, which does not count what a slow page has missed.
  const waited = () => (p.mode === "live" && p.lag() > 0 ? p.clock - came[0][2] : 0);

  // runs reports whether the stage's clock runs.
  p.runs = () => p.mode !== "frozen" || Boolean(flight?.step);

  p.freeze = (reached = false) => {
    if (p.mode === "frozen") return;
    p.moved = p.mode === "playing";
    leaveGoal(reached);
    p.mode = "frozen";
    p.sweeping = false;
    on.froze();
  };

  // going takes its time on the way to another moment, and reports whether the cursor was not sent elsewhere meanwhile.
  async function going(act) {
    ground();
    const mine = ticket;
    try {
      await act();
    } catch (problem) {
      if (mine === ticket) wanted = 0;
      on.trouble(problem);
      return false;
    }
    return mine === ticket;
  }

  // seek shows the picture at a cursor, and stays there. It returns whether it came there.
  p.seek = async (seq, mode = "frozen") => {
    let state = null;
    const there = await going(async () => {
      wanted = Math.min(p.head, Math.max(p.oldest, Math.round(seq)));
      [p.mode, p.moved] = [mode, mode !== "live"];
      state = await p.tape.stateAt(wanted);
      await p.tape.load(Math.max(wanted - 40, p.oldest + 1), Math.min(p.head, wanted + 200) + 1).catch(() => {});
    });
    if (!there) return false;
    [p.state, lent, wanted] = [state, false, 0];
    p.cursor = ready = state.seq;
    time = state.t;
    forget();
    on.jumped();
    return true;
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
    return new Promise((done) => take([next], { step: true, done }));
  };

  // playTo plays on to a record at so many times the reading pace, faster if it would not be there within so many ms,
  // and rests there. It returns whether it came there: the viewer may go elsewhere meanwhile. What lies behind the
  // cursor is sought.
  p.playTo = async (seq, { pace = 1, within = Infinity } = {}) => {
    const to = Math.min(p.head, Math.round(seq));
    if (to <= p.cursor) return p.seek(to);
    if (!(await going(() => p.tape.load(p.cursor + 1, to + 1)))) return false;
    if (!p.tape.holds(p.cursor + 1, to + 1)) return p.seek(to);
    p.mode = "playing";
    p.moved = true;
    forget();
    const coming = p.tape.between(p.cursor + 1, to + 1);
    const told = new Set(coming.filter((r) => r.key && motion.travels(r)).map(changeOf).filter(Boolean));
    // As many are told as there is time for, the last one among them. When the time is over, it is the only one.
    const every = Math.max(1, Math.ceil(((told.size - 1) * way) / 3 / Math.max(1, within - gap * told.size)));
    return new Promise((done) => {
      goal = { seq: to, pace, due: p.clock + within, done, left: told.size, every };
    });
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
    p.speed = 1;
    return p.seek(p.head, "live");
  };

  p.play = async () => {
    if (p.cursor >= p.head && p.recording) await p.seek(p.oldest);
    ground();
    time = p.state.t;
    ready = p.cursor;
    forget();
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
    frame += (ms - frame) / 20;
    if (flight?.step) return p.clock < flight.end || land();
    if (wanted || loading || p.mode === "frozen") return;
    if (p.mode === "playing" && !goal && !advance(ms)) return;
    read();
  };

  // ---- at reading pace

  // ground ends what is on its way, and a seek: another moment comes on stage.
  function ground() {
    ticket++;
    wanted = 0;
    const was = flight;
    flight = null;
    if (was?.plan) on.grounded();
    p.sweeping = false;
    was?.done?.();
    leaveGoal(false);
  }

  // due is the newest record that may be shown.
  const due = () => (goal ? goal.seq : p.mode === "live" ? p.head : ready);

  function read() {
    for (let n = 0; n < folded; n++) {
      if (flight && p.clock < flight.end) return;
      if (flight) land();
      const end = due();
      if (p.cursor >= end) return goal && p.freeze(true);
      if (!p.tape.get(p.cursor + 1)) return fetchMore(p.cursor + 1);
      const stream = motion.rated(goal ? 0 : rate(), p.clock);
      const lost = p.mode === "live" && (end - p.cursor > tooMany || waited() > tooFar);
      p.sweeping = stream || lost; // what comes would take too long to look at
      if (p.sweeping) return apply(p.tape.between(p.cursor + 1, Math.min(end, p.cursor + folded) + 1));
      hop(end);
    }
  }

  // hop folds what does not travel, and begins the next hop.
  function hop(end) {
    const passed = [];
    let r = null;
    let untold = false; // a change begins that lands without being told
    for (let seq = p.cursor + 1; seq <= end && passed.length < folded && !untold; seq++) {
      r = p.tape.get(seq);
      if (!r) break;
      if (motion.travels(r)) {
        const begins = r.key && changeOf(r) && changes.get(changeOf(r))?.told === undefined;
        if (tells(r)) break;
        untold = begins;
      }
      passed.push(r);
      r = null;
      if (fold.infos.get(passed.at(-1).point).op === "open") break; // what comes travels to another picture
    }
    motion.pass(passed);
    apply(passed);
    const moment = () => Math.min(gap, goal ? Math.max(0, goal.due - p.clock) : 400 / (p.pile() + 1));
    if (untold) flight = { list: [], plan: null, end: p.clock + moment() };
    else if (r) take(groupFrom(r, end));
  }

  // tells reports whether the change of a record is told. One that is not lands as its records are folded.
  function tells(r) {
    const change = changeOf(r);
    if (!change) return !samples() || !r.key || current.endsWith(nameOf(r)); // a key in a workqueue
    if (!changes.has(change)) remember(change, 0);
    const one = changes.get(change);
    if (one.told === undefined) {
      one.told = chooses(r);
      if (one.told) [current, p.share, landing, went] = [change, r.key ? landing + 1 : 1, 0, p.clock];
      else if (r.key) landing++;
    }
    return one.told;
  }

  // samples reports whether there are too many changes to tell each.
  const samples = () => (goal ? goal.every > 1 : p.single || since(lately) > told || waited() > late);

  // chooses reports whether a change that begins is told: where not each can be, the newest one, when the one before is
  // over, or does not go on.
  function chooses(r) {
    if (goal && r.key) goal.left--;
    if (!samples() || motion.matches(r)) return true;
    if (goal) return goal.left % goal.every === 0 && (goal.left <= 0 || p.clock + way / 3 < goal.due);
    const over = !motion.under(current) || p.clock - went > waits;
    return over && (p.single || after(r.seq) === 0);
  }

  // hurry is at how many times the reading pace hops are shown. It quickens with what waits.
  function hurry(from) {
    const pile = samples() ? 0 : after(from);
    if (!goal) return (p.pace = Math.min(4, Math.max(0.25, p.speed)) * Math.min(3, 1 + 0.35 * pile));
    const left = way * (1 + Math.floor(goal.left / goal.every)) * 0.7;
    return (p.pace = Math.max(goal.pace, Math.min(3, left / Math.max(50, goal.due - p.clock - gap * goal.left))));
  }

  const leaves = (r) => departs(fold.infos.get(r.point), r);

  // groupFrom returns the records that are one hop, from one that travels.
  function groupFrom(first, end) {
    const pace = hurry(first.seq) * Math.max(1, frame / lateFrame);
    let n = 0;
    const list = [first];
    for (let seq = first.seq + 1; seq <= Math.min(end, first.seq + ahead); seq++) {
      const r = p.tape.get(seq);
      if (!r || ["open", "close"].includes(fold.infos.get(r.point).op)) break;
      list.push(r);
      if (!motion.travels(r)) continue;
      if (!together(list[n], r, pace)) break;
      // Copies leave their queues together as a hop begins, for that is when they are folded. What waits in a queue
      // while others arrive leaves it with the next hop.
      if (list[n].point === r.point && leaves(r) && list.some((each) => motion.travels(each) && !leaves(each))) break;
      n = list.length - 1;
    }
    return list.slice(0, n + 1);
  }

  // take begins a hop: its tokens set out, and land at its end. What has left is folded at once.
  function take(list, more = {}) {
    const plan = motion.plan(list);
    const arriving = list.findIndex((r) => motion.travels(r) && !leaves(r));
    const left = plan.ms > 0 ? (arriving < 0 ? list.length : arriving) : 0;
    const pace = more.step ? 1 : hurry(list[0].seq);
    const ms = plan.ms > 0 ? Math.max(quickest, plan.ms / pace) : 0;
    flight = { list: list.slice(left), plan, end: p.clock + ms, seq: list.at(-1).seq, ...more };
    motion.launch(plan, p.clock, flight.end, list[left - 1]?.seq ?? 0);
    apply(list.slice(0, left));
    if (ms === 0) land();
  }

  // land folds what has arrived.
  function land() {
    const { list, plan, done } = flight;
    flight = null;
    if (plan) motion.land(plan, p.clock);
    apply(list);
    went = p.clock;
    done?.();
  }

  // ---- a replay

  // advance lets the log's own time pass, and reports whether there is something to be shown.
  function advance(ms) {
    const last = p.head;
    if (!flight && p.cursor >= last) {
      if (p.recording) p.freeze();
      else if (p.speed >= 1) p.live(); // in slow motion there will be more
      return false;
    }
    time += ms * 1e6 * p.speed;
    let next = p.tape.get(ready + 1);
    for (; next?.t <= time; next = p.tape.get(ready + 1)) {
      ready++;
      note(next);
    }
    if (!next && ready < last) fetchMore(ready + 1);
    if (next && !flight && p.cursor >= ready) cutSilence(next.t);
    return flight || p.cursor < ready;
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
