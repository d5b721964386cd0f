// The beat player holds the viewer's place in a story and decides what comes next. It uses no document, clock or
// program, so that a test needs no browser. It acts through `on`, and tick passes the time. The phases of a beat:
//	busy    the page fetches the beat's records; for a live story's first beat, the program plays the story
//	ready   the viewer reads, until Next or a guess; briefly if Next led to this beat and it has no question
//	plays   the cursor moves to the beat's end
//	rests   the cursor is at the beat's end
//	away    the viewer has moved the cursor elsewhere, or the records could not be fetched
// Next plays the beat, jumps to its end, or turns to the following beat. Back turns to the end of the previous beat.

/**
 * @typedef {{ lead: number, play: number, rest: number }} Pace ms for which auto-play reads a beat, plays it and rests
 * @typedef {{ pace?: Pace, question?: { answers: string[], right: number } }} Beat
 * @typedef {{ from: number, to: number }} Range
 */

/**
 * @template {Range} R
 * @typedef {object} Hands the actions of a beat player
 * @property {(i: number) => Promise<R>} range returns the place of the i-th beat in the log
 * @property {(range: R, ms: number) => Promise<boolean>} play moves the cursor along, and reports whether it got there
 * @property {(seq: number) => Promise<boolean> | boolean} seek moves it at once
 * @property {() => void} changed called after every change
 * @property {(problem: unknown) => void} trouble
 */

const byHand = 1500; // the maximum ms between Next and the beat's play, and the ms between Auto-play and the next beat

/** @template {Range} R */
export class BeatPlayer {
  /** @param {Beat[]} beats @param {Hands<R>} on */
  constructor(beats, on) {
    this.beats = beats;
    this.on = on;
    this.beat = 0;
    this.phase = "busy";
    this.auto = false;
    this.still = false; // whether beats jump to their ends without motion
    /** @type {(number | undefined)[]} */
    this.guesses = []; // the viewer's guesses, by beat
    /** @type {R | null} */
    this.range = null; // the beat's place in the log
    this.left = Infinity; // ms until the story goes on by itself
    this.ticket = 0; // the number of the newest action, which cancels earlier ones
  }

  get last() { return this.beat === this.beats.length - 1; }
  get resting() { return this.phase === "rests" || (this.phase === "ready" && this.left === Infinity); }
  get over() { return this.last && this.phase === "rests"; }
  get pace() { return this.beats[this.beat].pace ?? { lead: 0, play: 0, rest: 0 }; }

  /** @param {string} phase @param {number} [ms] */
  turn(phase, ms = Infinity) {
    this.phase = phase;
    this.left = ms;
    this.on.changed();
  }

  // doing runs act, which uses current to check for a newer action. A failure leaves the phase at "away".
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

  // come fetches the beat's records, and moves the cursor to one of its ends. It returns null if a newer action came.
  /** @param {() => boolean} current @param {"from" | "to"} end */
  async come(current, end) {
    this.turn("busy");
    const found = await this.on.range(this.beat);
    if (!current()) return null;
    this.range = found;
    await this.on.seek(found[end]);
    return current() ? found : null;
  }

  // open turns to a beat, which begins after ms. Unless played, open fetches no records: the story's run has none yet.
  /** @param {number} i @param {number} [ms] @param {boolean} [played] */
  open(i, ms = Infinity, played = true) {
    return this.doing(async (current) => {
      this.beat = i;
      this.range = null;
      if (!played || await this.come(current, "from")) this.turn("ready", ms);
    });
  }

  begin(atOnce = false) {
    return this.doing(async (current) => {
      const range = (atOnce && this.range) || await this.come(current, "from");
      if (!range) return;
      if (!atOnce) this.turn("plays");
      const reached = await (atOnce ? this.on.seek(range.to) : this.on.play(range, this.pace.play));
      if (!current()) return;
      if (this.last || !reached) this.auto = false;
      this.turn(reached ? "rests" : "away", this.auto ? this.pace.rest : Infinity);
    });
  }

  next() {
    const [{ phase }, i] = [this, this.beat + 1];
    if (["ready", "away", "plays"].includes(phase)) return this.begin(phase === "plays");
    if (phase !== "rests" || this.last) return;
    const { lead = 0 } = this.beats[i].pace ?? {};
    return this.open(i, this.auto ? lead : this.asks(i) ? Infinity : this.still ? 0 : Math.min(byHand, lead));
  }

  back() {
    this.auto = false;
    if (this.beat === 0) return this.open(0, Infinity, Boolean(this.range));
    return this.doing(async (current) => {
      this.beat--;
      if (await this.come(current, "to")) this.turn("rests");
    });
  }

  toggle() {
    this.auto = !this.auto;
    if (!this.auto) this.left = Infinity;
    else if (this.over) return this.open(0, this.beats[0].pace?.lead);
    else if (this.phase === "away" || (this.phase === "ready" && !this.asks(this.beat))) return this.begin();
    else if (this.phase === "ready") this.left = this.pace.lead;
    else if (this.phase === "rests") this.left = byHand;
    this.on.changed();
  }

  /** @param {number} i */
  guess(i) {
    const answers = this.beats[this.beat].question?.answers ?? [];
    if (this.phase !== "ready" || !this.asks(this.beat) || i < 0 || i >= answers.length) return;
    this.guesses[this.beat] = i;
    return this.begin();
  }

  // verdict returns "right", "wrong", or, without a guess, "told". It is "" without a question, and before the end.
  verdict() {
    const { question } = this.beats[this.beat];
    if (!question || this.phase !== "rests") return "";
    const guess = this.guesses[this.beat];
    return guess === undefined ? "told" : guess === question.right ? "right" : "wrong";
  }

  // at updates the phase for the cursor's position, because a beat rests only at its end.
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

  leave() {
    this.ticket++;
    this.left = Infinity;
    this.auto = false;
  }
}
