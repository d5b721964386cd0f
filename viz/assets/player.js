// The player: which moment is on stage. Live it is the newest one; frozen it stays; in a replay it moves through what has
// been, as fast or as slowly as people like. In every case the picture is the fold of the records up to the cursor.

const longestWait = 1500; // ms: where longer nothing would happen, the replay moves on
const rest = 400; // ms that are left of such a wait
const folded = 4000; // records a frame may fold while replaying

// newPlayer calls on.applied(list) when records have been folded one after the other, on.summed(before, kept) when the newest
// picture came instead of the records between, of which kept matter one by one, on.jumped() when the picture is another one,
// on.froze() when what moved stands, on.skipped(ns) when silence was cut short, and on.trouble(error).
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
    moved: false, // somebody went to another moment since the freeze
  };
  let time = 0; // while playing: where in the log's time, ns
  let ticket = 0; // of the newest seek
  let wanted = 0; // where that seek goes; 0: nobody seeks
  let loading = false;
  let lent = false; // the tape keeps the picture that is on stage: it must not be folded on

  // reset begins with another log.
  p.reset = (tape, state, recording) => {
    ticket++;
    wanted = 0;
    Object.assign(p, { tape, state, cursor: state.seq, head: state.seq, recording, loop: null, moved: false });
    p.mode = recording ? "frozen" : "live";
    tape.keep(state, true);
    lent = false;
    on.jumped();
  };

  // arrived takes records from the feed.
  p.arrived = (list) => {
    p.tape.put(list);
    p.head = Math.max(p.head, list.at(-1).seq);
    if (p.mode === "live" && !wanted) apply(list);
  };

  // replaced takes a newer picture from the feed, and of the records between those that matter one by one; null: it is not
  // known what was between.
  p.replaced = (state, kept) => {
    p.tape.put(kept ?? []);
    p.tape.keep(state, true, true);
    p.head = Math.max(p.head, state.seq);
    if (p.mode !== "live") return;
    ticket++;
    wanted = 0;
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
  p.target = () => wanted || p.cursor;

  p.freeze = () => {
    if (p.mode === "frozen") return;
    p.moved = p.mode === "playing";
    p.mode = "frozen";
    on.froze();
  };

  // seek shows the picture at a cursor, and stays there. It returns whether nobody has gone elsewhere meanwhile.
  p.seek = async (seq, mode = "frozen") => {
    const mine = ++ticket;
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
      p.cursor = state.seq;
      time = state.t;
      on.jumped();
      return true;
    } catch (problem) {
      if (mine === ticket) wanted = 0;
      on.trouble(problem);
      return false;
    }
  };

  // step goes n records on or back.
  p.step = async (n) => {
    const seq = p.target() + n;
    if (seq > p.head || seq < p.oldest) return;
    const next = p.tape.get(seq);
    if (n !== 1 || wanted || !next) return p.seek(seq);
    p.mode = "frozen";
    p.moved = true;
    apply([next]);
  };

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
    on.jumped();
  };

  p.play = async () => {
    if (p.cursor >= p.head && p.recording) await p.seek(p.loop?.from ?? p.oldest);
    time = p.state.t;
    p.mode = "playing";
  };

  // toggle freezes what moves. What was only frozen returns to the end; who has gone elsewhere plays from there.
  p.toggle = () => {
    if (p.mode !== "frozen") return p.freeze();
    return p.moved || p.recording || p.speed !== 1 ? p.play() : p.live();
  };

  // tick moves a replay on by so many ms.
  p.tick = (ms) => {
    if (p.mode !== "playing" || wanted || loading) return;
    if (p.loop && p.cursor >= p.loop.to) return p.seek(p.loop.from, "playing");
    if (p.cursor >= p.head) return p.recording ? p.freeze() : p.speed < 1 || p.live(); // in slow motion there will be more
    time += ms * 1e6 * p.speed;
    const list = [];
    for (let seq = p.cursor + 1; list.length < folded && seq <= Math.min(p.head, p.loop?.to ?? p.head); seq++) {
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
    apply(list);
  };

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
