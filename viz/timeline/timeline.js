// The timeline shows activity over time, anomalies and the cursor. On the stage, it marks a client's recent 410.

import { $, asking, limits, part, pool, put, say, svg, when } from "../dom/dom.js";
import { get } from "../lib/api.js";
import { clockText, marks } from "../lib/texts.js";

/**
 * @typedef {object} Stage
 * @property {page.Player} player
 * @property {page.Scene} scene
 * @property {(r: { resource?: string }) => boolean} here
 * @property {(r: probe.Record) => boolean} isFlag whether a record is an anomaly
 */

const width = limits.bucketWidth; // ns
const period = 100; // ms between two drawings
const askPeriod = 2000; // ms between two requests for the index
const least = 200; // ms; a shorter lag is not shown
const told = 8e9; // ns of log time for which the stage shows a client's 410
const gone = ["RequestAnswered", "FrameWritten"]; // points whose flags are 410s

export class Timeline {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.player = stage.player;
    this.slider = $("#timeline input", HTMLInputElement); // its value is in percent of the shown time
    this.drawing = $("#timeline svg");
    this.size = this.drawing.getBoundingClientRect();
    this.select = $("#span", HTMLSelectElement);
    /** @type {number[][]} */
    this.buckets = []; // [number, first seq, records, changes], oldest first
    /** @type {timeline.Flag[]} */
    this.flags = [];
    this.counted = 0; // the last record in the buckets
    this.passed = false; // whether a picture has replaced some records
    this.headT = 0;
    this.headAt = 0;
    this.end = 0; // the time at the right edge, in ns
    this.drawnAt = 0;
    this.ask = asking(async () => {
      this.passed = false;
      this.index(await get("/viz/timeline"));
    });
    when(this.slider, "input", () => this.scrub());
    new ResizeObserver(() => (this.size = this.drawing.getBoundingClientRect())).observe(this.slider);
  }

  get dragging() { return this.slider.matches(":active"); }

  clear() {
    [this.buckets, this.flags, this.counted, this.headT, this.passed] = [[], [], 0, 0, false];
  }

  // index takes the server's index, and adds the records that have come since.
  /** @param {timeline.Span} line */
  index(line) {
    [this.buckets, this.flags, this.counted] = [line.buckets, line.flags, line.last];
    this.reached(line.t);
    this.arrived(this.player.tape.between(line.last + 1, this.player.head + 1));
  }

  /** @param {number} t */
  reached(t) {
    if (t >= this.headT) [this.headT, this.headAt] = [t, performance.now()];
  }

  /** @param {probe.Record[]} list */
  arrived(list) {
    const { buckets, player: { oldest } } = this;
    for (const r of list) {
      this.reached(r.t);
      if (r.seq <= this.counted) continue;
      this.counted = r.seq;
      const number = Math.floor(r.t / width);
      if (!(buckets.length > 0 && buckets[buckets.length - 1][0] >= number)) buckets.push([number, r.seq, 0, 0]);
      const bucket = buckets[buckets.length - 1];
      bucket[2]++;
      if (r.point === "RingAppend") bucket[3]++;
      if (this.stage.isFlag(r)) this.flags.push({ seq: r.seq, t: r.t, point: r.point, resource: r.resource });
    }
    let left = Math.max(0, buckets.length - limits.buckets); // the program drops the same ones
    while (buckets[left + 1]?.[1] <= oldest) left++;
    buckets.splice(0, left);
    this.flags = this.flags.filter((each) => each.seq >= oldest).slice(-limits.flags);
  }

  // skip takes a picture that replaces records (a sum). Their counts come with the server's next index.
  /** @param {{ state: fold.State }} sum */
  skip({ state }) {
    this.reached(state.t);
    this.passed = true;
  }

  /** @param {number} now */
  edges(now) {
    const { player, headT } = this;
    const newest = player.recording ? headT : headT + Math.min(2000, Math.max(0, now - this.headAt)) * 1e6;
    const first = Math.max(0, (this.buckets[0]?.[0] ?? 0) * width);
    const whole = Math.max(1e9, newest - first);
    const shown = Math.min(Number(this.select.value) * 1e9 || whole, whole); // "all" gives NaN
    if (player.mode === "live" || this.end === 0 || shown === whole) this.end = newest;
    else if (!this.dragging) {
      const { t } = player.state;
      if (t > this.end) this.end = Math.min(newest, t + shown * 0.25);
      if (t < this.end - shown) this.end = Math.max(first + shown, t + shown * 0.75);
    }
    return [this.end - shown, this.end];
  }

  /** @param {number} t */
  seqAt(t) {
    const { head, oldest, tape } = this.player;
    const number = Math.floor(t / width);
    const b = this.buckets.findLast((each) => each[0] <= number);
    if (!b) return oldest;
    const share = b[0] === number ? t / width - number : 1;
    const at = (/** @type {number} */ seq) => tape.get(seq)?.t ?? NaN;
    let seq = Math.min(head, Math.max(oldest, Math.round(b[1] - 1 + share * b[2])));
    for (let i = 0; i < 4000 && seq > oldest && at(seq) > t; i++) seq--;
    for (let i = 0; i < 4000 && seq < head && at(seq + 1) <= t; i++) seq++;
    return seq;
  }

  scrub() {
    const { player, slider } = this;
    const [from, to] = this.edges(performance.now());
    const t = from + (Number(slider.value) / 100) * (to - from);
    const seq = this.seqAt(t);
    const stuck = !this.dragging && seq === player.target(); // a key moves by at least one record
    player.seek(stuck ? seq + Math.sign(t - player.state.t) : seq);
  }

  /** @param {fold.Resource | undefined} _res @param {fold.State} state */
  shown(_res, state) {
    const { player, scene: { story }, here } = this.stage;
    const last = this.flags.findLast((f) => f.seq <= player.cursor && gone.includes(f.point) && here(f));
    const lately = last && state.t - last.t < told;
    // in a story, a 410 counts in its own beat, and if a client of the story got one
    const counts = !story || (last && last.seq > story.from && story.members.some(({ word }) => word === "410"));
    put($("#ring-tray"), "visibility", lately && counts ? "visible" : "hidden");
  }

  /** @param {number} now */
  draw(now) {
    const { player, size: { width: w, height: h } } = this;
    const live = player.mode === "live";
    if (this.passed && live) this.ask(now, askPeriod);
    const where = `record ${document.body.dataset.seq}, ${live ? "live" : clockText(player.state.t, 3)}`;
    put(this.slider, "aria-valuetext", where);
    if (now - this.drawnAt < period && !this.dragging) return;
    this.drawnAt = now;
    const [from, to] = this.edges(now);
    const x = (/** @type {number} */ t) => ((t - from) / (to - from)) * w;
    const newest = live && player.behind() === 0;
    const at = x(newest ? to : player.state.t);
    const head = Math.min(w - 1.5, Math.max(1.5, at));
    this.drawBars(x, h, from, to);
    const flags = this.flags.filter(({ t }) => t >= from && t <= to);
    this.path(".flags", flags.map(({ t }) => `M${x(t)} 2l6 11h-12Z`));
    this.path(".later", newest ? [] : [`M${head} 0H${w}V${h}H${head}Z`]);
    this.path(".head", [`M${head} 0V${h}m-5 0h10l-5 -8Z`]);
    // the stage's lag: from the cursor to the newest record
    const lag = newest ? 0 : player.lag();
    this.path(".gap", lag > least ? [`M${head} 0H${Math.min(w, x(this.headT))}V${h}H${head}Z`] : []);
    const words = part(this.drawing, ".lag");
    put(words, "x", Math.max(90, head - 6));
    say(words, lag > least ? `${(lag / 1000).toFixed(1)} s behind` : "");
    if (!this.dragging) this.slider.value = String((at / Math.max(1, w)) * 100);
  }

  /** @param {string} name @param {string[]} pieces */
  path(name, pieces) { put(part(this.drawing, name), "d", pieces.join("")); }

  /** @param {(t: number) => number} x @param {number} h @param {number} from @param {number} to */
  drawBars(x, h, from, to) {
    const shown = this.buckets.filter((b) => (b[0] + 1) * width > from && b[0] * width < to);
    const most = Math.log1p(shown.reduce((m, b) => Math.max(m, b[2]), 20));
    const pitch = x(width) - x(0);
    const wide = Math.max(1, pitch > 3 ? pitch - 1 : pitch);
    for (const { name, i } of [{ name: ".events", i: 2 }, { name: ".changes", i: 3 }]) {
      this.path(name, shown.filter((b) => b[i] > 0).map((b) =>
        `M${x(b[0] * width)} ${h}v${-Math.max(2, ((h - 14) * Math.log1p(b[i])) / most)}h${wide}V${h}Z`));
    }
    const times = marks(from, to);
    this.path(".ticks", times.map((t) => `M${x(t)} 0V${h}`));
    const texts = pool(part(this.drawing, ".clock"), times.length, () => svg("text", { y: 12 }));
    times.forEach((t, i) => {
      put(texts[i], "x", x(t) + 3);
      say(texts[i], clockText(t));
    });
  }
}
