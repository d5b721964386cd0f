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

const perWord = 210; // ms that a reader needs
const atLeast = 900; // ms between words and picture
const byHand = 1500; // ms at most that words stand before the beat plays, when a hand pressed Next
const thinking = 2500; // ms for a guess, besides the reading
const looking = 1900; // ms at rest
const perRecord = 22; // ms that a record takes at reading pace, about
const playing = [1200, 5500]; // ms that a beat plays, at least and at most
const whole = [21_000, 84_000]; // ms that auto-play takes for a story

const words = (text) => (text ?? "").split(/\s+/).filter(Boolean).length;

// plan returns for each beat how long auto-play reads it, plays it and rests at its end: {lead, play, rest} in ms.
// counts are the numbers of their records.
export function plan(beats, counts) {
  const steps = beats.map(({ say, question }, i) => {
    const asked = question ? thinking + perWord * words([question.ask, ...question.answers].join(" ")) : 0;
    const verdict = question ? perWord * words(question.why) : 0;
    return {
      lead: atLeast + perWord * words(say) + asked,
      play: Math.min(playing[1], Math.max(playing[0], perRecord * (counts[i] ?? 0))),
      rest: looking + verdict,
    };
  });
  const sum = steps.reduce((ms, step) => ms + step.lead + step.play + step.rest, 0);
  const scale = Math.min(whole[1], Math.max(whole[0], sum)) / sum;
  return steps.map((step) => ({ lead: step.lead * scale, play: step.play * scale, rest: step.rest * scale }));
}

// newTeller tells beats. on.range(i) returns, perhaps later, where the i-th beat stands, {from, to}; on.play(range, ms)
// moves the cursor there within ms and returns whether it came there; on.seek(seq) moves it at once; on.changed() is
// told of every change.
export function newTeller(beats, on) {
  let range = null; // of the beat
  let left = Infinity; // ms until auto-play, or a lead, goes on
  let ticket = 0; // of what was asked last: what was asked before comes too late
  let steps = plan(beats, []);

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
    get range() { return range; },
  };

  function turn(phase, ms = Infinity) {
    t.phase = phase;
    left = ms;
    if (phase === "rests") t.shown.add(t.beat);
    on.changed();
  }

  // time takes the numbers of records, once they are known.
  t.time = (counts) => (steps = plan(beats, counts));

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
      if (!played || (await come(current, "from"))) turn("ready", pause());
    });

  const pause = () => (t.auto ? (asks(t.beat) ? steps[t.beat].lead : Math.min(byHand, steps[t.beat].lead)) : Infinity);

  // begin plays the beat; what it says has been read already if it was waited for.
  const begin = (read) =>
    doing(async (current) => {
      if (!(await come(current, "from"))) return;
      const lead = t.auto ? steps[t.beat].lead : Math.min(byHand, steps[t.beat].lead);
      if (!read && !t.still) return turn("lead", lead);
      await run(current);
    });

  async function run(current) {
    turn("plays");
    const reached = await on.play(range, steps[t.beat].play);
    if (current()) settle(reached);
  }

  function settle(reached) {
    if (t.last || !reached) t.auto = false;
    turn(reached ? "rests" : "away", t.auto ? steps[t.beat].rest : Infinity);
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
        return begin(true);
      case "lead":
        return doing(run);
      case "plays":
        return finish();
      case "away":
        return begin(true);
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
    if (t.phase === "ready" && !asks(t.beat)) return begin(true);
    if (t.phase === "away") return begin(true);
    if (t.phase === "ready") left = steps[t.beat].lead;
    if (t.phase === "rests") left = Math.min(byHand, steps[t.beat].rest);
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
