// @ts-nocheck
// The teller: at which beat of a story the viewer is, and what comes next. It knows no document, no clock and no
// program: what it needs done it asks of `on`, and time comes by tick. So it can be tested without a browser.
//
// A beat goes through these phases:
//
//	ready   its words are read, and nothing moves: the first beat of a story, and one that asks a question
//	busy    its records are fetched; for the first beat of a live story the machine plays
//	lead    its words are read, and it begins by itself in a moment
//	plays   the cursor moves to where the beat rests
//	rests   the cursor is there
//	away    the viewer has moved the cursor elsewhere, or the records could not be had
//
// Next goes on: it begins, hurries, or turns to the beat that follows. Back turns to where the beat before rests.
// Auto-play presses Next in time.

const byHand = 1500; // ms at most that words stand before the beat plays, when a hand pressed Next
const none = { lead: 0, play: 0, rest: 0 };

// newTeller tells beats; each may have a pace {lead, play, rest} (viz/stories/pace.go), for how many ms auto-play reads
// it, plays it and rests. on.range(i) returns, perhaps later, where the i-th beat stands, {from, to}; on.play(range, ms)
// moves the cursor there within ms and returns whether it came there; on.seek(seq) moves it at once; on.changed() is
// told of every change.
export function newTeller(beats, on) {
  let range = null; // of the beat
  let left = Infinity; // ms until auto-play, or a lead, goes on
  let ticket = 0; // of what was asked last: what was asked before comes too late
  const pace = () => beats[t.beat].pace ?? none;

  const t = {
    beat: 0,
    phase: "busy",
    auto: false,
    still: false, // nothing is to move: a beat is at its end at once
    guesses: [], // by beat
    shown: new Set(), // beats whose end was seen
    get last() { return t.beat === beats.length - 1; },
    get resting() { return t.phase === "ready" || t.phase === "rests"; },
    get over() { return t.last && t.phase === "rests"; },
  };

  function turn(phase, ms = Infinity) {
    t.phase = phase;
    left = ms;
    if (phase === "rests") t.shown.add(t.beat);
    on.changed();
  }

  // doing runs act unless something else is asked meanwhile. What fails leaves the viewer away from the beat.
  async function doing(act) {
    const mine = ++ticket;
    const current = () => mine === ticket;
    try {
      await act(current);
    } catch (problem) {
      if (!current()) return;
      t.auto = false;
      turn("away");
      on.trouble(problem);
    }
  }

  const asks = (i) => Boolean(beats[i].question) && t.guesses[i] === undefined;

  // come fetches the records of the beat, and moves the cursor to one of its ends. It returns whether that is still
  // wanted.
  async function come(current, end) {
    turn("busy");
    const found = await on.range(t.beat);
    if (!current()) return false;
    range = found;
    await on.seek(range[end]);
    return current();
  }

  // open turns to a beat and waits there for the viewer. The first one of a story that is to be played has no records
  // yet.
  t.open = (i, played = true) =>
    doing(async (current) => {
      t.beat = i;
      range = null;
      if (!played || (await come(current, "from"))) turn("ready", t.auto ? lead(asks(i)) : Infinity);
    });

  // lead is for how long the words of the beat stand: whole, or for one who has just pressed Next.
  const lead = (whole) => (whole ? pace().lead : Math.min(byHand, pace().lead));

  // begin plays the beat; what it says has been read already if it was waited for.
  const begin = (read) =>
    doing(async (current) => {
      if (!(await come(current, "from"))) return;
      if (!read && !t.still) return turn("lead", lead(t.auto));
      await run(current);
    });

  async function run(current) {
    turn("plays");
    const reached = await on.play(range, pace().play);
    if (current()) settle(reached);
  }

  function settle(reached) {
    if (t.last || !reached) t.auto = false;
    turn(reached ? "rests" : "away", t.auto ? pace().rest : Infinity);
  }

  // finish shows the beat's end at once.
  const finish = () =>
    doing(async (current) => {
      const reached = await on.seek(range.to);
      if (current()) settle(reached !== false);
    });

  // turnTo plays a beat, or waits there for an answer.
  t.turnTo = (i) => {
    t.beat = i;
    return asks(i) ? t.open(i) : begin(false);
  };

  // restAt shows the end of a beat.
  t.restAt = (i) => doing(async (current) => {
    t.beat = i;
    if (await come(current, "to")) turn("rests");
  });

  t.next = () => {
    switch (t.phase) {
      case "ready":
      case "away":
        return begin(true);
      case "lead":
        return doing(run);
      case "plays":
        return finish();
      case "rests":
        if (!t.last) return t.turnTo(t.beat + 1);
    }
  };

  t.back = () => {
    t.auto = false;
    return t.beat === 0 ? t.open(0, Boolean(range)) : t.restAt(t.beat - 1);
  };

  t.toggle = () => {
    t.auto = !t.auto;
    if (!t.auto) {
      if (t.phase !== "lead") left = Infinity;
      return on.changed();
    }
    if (t.over) return t.open(0);
    if (t.phase === "away" || (t.phase === "ready" && !asks(t.beat))) return begin(true);
    if (t.phase === "ready") left = lead(true);
    if (t.phase === "rests") left = Math.min(byHand, pace().rest);
    on.changed();
  };

  // guess answers the question of the beat, which the beat itself then answers.
  t.guess = (i) => {
    if (t.phase !== "ready" || !asks(t.beat) || i < 0 || i >= beats[t.beat].question.answers.length) return;
    t.guesses[t.beat] = i;
    return begin(true);
  };

  // verdict is "right", "wrong" or "told", if nothing was guessed; "" as long as the beat has not shown it.
  t.verdict = () => {
    const question = beats[t.beat].question;
    if (!question || t.phase !== "rests") return "";
    const guess = t.guesses[t.beat];
    return guess === undefined ? "told" : guess === question.right ? "right" : "wrong";
  };

  // at is told where the cursor is: a beat rests only where it ends.
  t.at = (cursor) => {
    if (t.phase === "rests" && cursor !== range.to) {
      t.auto = false;
      turn("away");
    } else if (t.phase === "away" && range && cursor === range.to) turn("rests");
  };

  t.tick = (ms) => {
    if (left === Infinity) return;
    left -= ms;
    if (left > 0) return;
    left = Infinity;
    t.next();
  };

  // leave ends the telling: nothing that is under way comes to anything.
  t.leave = () => {
    ticket++;
    left = Infinity;
    t.auto = false;
  };

  return t;
}
