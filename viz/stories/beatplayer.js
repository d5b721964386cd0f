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

/**
 * @typedef {{ lead: number, play: number, rest: number }} Pace ms for which auto-play reads a beat, plays it and rests
 * @typedef {{ pace?: Pace, question?: { answers: string[], right: number } }} Beat
 * @typedef {{ from: number, to: number }} Range
 */

/**
 * @template {Range} R
 * @typedef {object} Hands what a teller needs done
 * @property {(i: number) => Promise<R>} range returns where the i-th beat stands
 * @property {(range: R, ms: number) => Promise<boolean>} play moves the cursor there, and returns whether it came there
 * @property {(seq: number) => Promise<boolean> | boolean} seek moves it at once
 * @property {() => void} changed is told of every change
 * @property {(problem: unknown) => void} trouble
 */

const byHand = 1500; // ms at most that words stand before the beat plays, when a hand pressed Next
const none = { lead: 0, play: 0, rest: 0 };

// A BeatPlayer tells beats.
/** @template {Range} R */
export class BeatPlayer {
  /** @param {Beat[]} beats @param {Hands<R>} on */
  constructor(beats, on) {
    this.beats = beats;
    this.on = on;
    this.beat = 0;
    this.phase = "busy";
    this.auto = false;
    this.still = false; // nothing is to move: a beat is at its end at once
    /** @type {(number | undefined)[]} */
    this.guesses = []; // by beat
    /** @type {Set<number>} */
    this.shown = new Set(); // beats whose end was seen
    /** @type {R | null} */
    this.range = null; // of the beat
    this.left = Infinity; // ms until auto-play, or a lead, goes on
    this.ticket = 0; // of what was asked last: what was asked before comes too late
  }

  get last() { return this.beat === this.beats.length - 1; }
  get resting() { return this.phase === "ready" || this.phase === "rests"; }
  get over() { return this.last && this.phase === "rests"; }
  get pace() { return this.beats[this.beat].pace ?? none; }

  /** @param {string} phase @param {number} [ms] */
  turn(phase, ms = Infinity) {
    this.phase = phase;
    this.left = ms;
    if (phase === "rests") this.shown.add(this.beat);
    this.on.changed();
  }

  // doing runs act unless something else is asked meanwhile. What fails leaves the viewer away from the beat.
  /** @param {(current: () => boolean) => Promise<void>} act */
  async doing(act) {
    const mine = ++this.ticket;
    const current = () => mine === this.ticket;
    try {
      await act(current);
    } catch (problem) {
      if (!current()) return;
      this.auto = false;
      this.turn("away");
      this.on.trouble(problem);
    }
  }

  /** @param {number} i */
  asks(i) { return Boolean(this.beats[i].question) && this.guesses[i] === undefined; }

  // come fetches the records of the beat, and moves the cursor to one of its ends. It returns its range if that is
  // still wanted.
  /** @param {() => boolean} current @param {"from" | "to"} end */
  async come(current, end) {
    this.turn("busy");
    const found = await this.on.range(this.beat);
    if (!current()) return null;
    this.range = found;
    await this.on.seek(found[end]);
    return current() ? found : null;
  }

  // open turns to a beat and waits there for the viewer. The first one of a story that is to be played has no records
  // yet.
  /** @param {number} i @param {boolean} [played] */
  open(i, played = true) {
    return this.doing(async (current) => {
      this.beat = i;
      this.range = null;
      if (played && !(await this.come(current, "from"))) return;
      this.turn("ready", this.auto ? this.lead(this.asks(i)) : Infinity);
    });
  }

  // lead is for how long the words of the beat stand: whole, or for one who has just pressed Next.
  /** @param {boolean} whole */
  lead(whole) { return whole ? this.pace.lead : Math.min(byHand, this.pace.lead); }

  // begin plays the beat; what it says has been read already if it was waited for.
  /** @param {boolean} read */
  begin(read) {
    return this.doing(async (current) => {
      const range = await this.come(current, "from");
      if (!range) return;
      if (!read && !this.still) return this.turn("lead", this.lead(this.auto));
      await this.run(current, range);
    });
  }

  /** @param {() => boolean} current @param {R} range */
  async run(current, range) {
    this.turn("plays");
    const reached = await this.on.play(range, this.pace.play);
    if (current()) this.settle(reached);
  }

  /** @param {boolean} reached */
  settle(reached) {
    if (this.last || !reached) this.auto = false;
    this.turn(reached ? "rests" : "away", this.auto ? this.pace.rest : Infinity);
  }

  // finish shows the beat's end at once.
  /** @param {R} range */
  finish(range) {
    return this.doing(async (current) => {
      const reached = await this.on.seek(range.to);
      if (current()) this.settle(reached !== false);
    });
  }

  // turnTo plays a beat, or waits there for an answer.
  /** @param {number} i */
  turnTo(i) {
    this.beat = i;
    return this.asks(i) ? this.open(i) : this.begin(false);
  }

  // restAt shows the end of a beat.
  /** @param {number} i */
  restAt(i) {
    return this.doing(async (current) => {
      this.beat = i;
      if (await this.come(current, "to")) this.turn("rests");
    });
  }

  next() {
    const { phase, range } = this;
    if (phase === "ready" || phase === "away") return this.begin(true);
    if (phase === "lead" && range) return this.doing((current) => this.run(current, range));
    if (phase === "plays" && range) return this.finish(range);
    if (phase === "rests" && !this.last) return this.turnTo(this.beat + 1);
  }

  back() {
    this.auto = false;
    return this.beat === 0 ? this.open(0, Boolean(this.range)) : this.restAt(this.beat - 1);
  }

  toggle() {
    this.auto = !this.auto;
    if (!this.auto) {
      if (this.phase !== "lead") this.left = Infinity;
      return this.on.changed();
    }
    if (this.over) return this.open(0);
    if (this.phase === "away" || (this.phase === "ready" && !this.asks(this.beat))) return this.begin(true);
    if (this.phase === "ready") this.left = this.lead(true);
    if (this.phase === "rests") this.left = Math.min(byHand, this.pace.rest);
    this.on.changed();
  }

  // guess answers the question of the beat, which the beat itself then answers.
  /** @param {number} i */
  guess(i) {
    const answers = this.beats[this.beat].question?.answers ?? [];
    if (this.phase !== "ready" || !this.asks(this.beat) || i < 0 || i >= answers.length) return;
    this.guesses[this.beat] = i;
    return this.begin(true);
  }

  // verdict is "right", "wrong" or "told", if nothing was guessed; "" as long as the beat has not shown it.
  verdict() {
    const { question } = this.beats[this.beat];
    if (!question || this.phase !== "rests") return "";
    const guess = this.guesses[this.beat];
    return guess === undefined ? "told" : guess === question.right ? "right" : "wrong";
  }

  // at is told where the cursor is: a beat rests only where it ends.
  /** @param {number} cursor */
  at(cursor) {
    if (this.phase === "rests" && cursor !== this.range?.to) {
      this.auto = false;
      this.turn("away");
    } else if (this.phase === "away" && this.range && cursor === this.range.to) this.turn("rests");
  }

  /** @param {number} ms */
  tick(ms) {
    if (this.left === Infinity) return;
    this.left -= ms;
    if (this.left > 0) return;
    this.left = Infinity;
    this.next();
  }

  // leave ends the telling: nothing that is under way comes to anything.
  leave() {
    this.ticket++;
    this.left = Infinity;
    this.auto = false;
  }
}
