// The timeline: when how much happened, what must not be overlooked, and where we are. It is a slider: drag it, or move
// it by keys. What the ring's picture alone does not say stands on the stage, too: that a client was told 410 a moment
// ago, or that the ring has another size.

import { inks, newSheet, widthOf } from "../dom/canvas.js";
import { $, asking, part, put, when } from "../dom/dom.js";
import { get } from "../lib/api.js";
import { limits } from "../dom/limits.js";
import { clockText, marks } from "../lib/times.js";

/**
 * @typedef {object} Stage
 * @property {page.Player} player
 * @property {page.Scene} scene
 * @property {(r: { resource?: string }) => boolean} here
 * @property {(r: probe.Record) => boolean} isFlag must it not be overlooked?
 * @property {(r: probe.Record) => string} says
 */

const width = limits.bucketWidth; // ns
const period = 40; // ms between two drawings, while the viewer moves through the log
const livePeriod = 125; // ms between two drawings of what goes on by itself
const askPeriod = 2000; // ms between two questions for the index
const told = 8e9; // ns of the log's time that what happened is said on the stage
const gone = ["RequestAnswered", "FrameWritten"]; // they are flags when they say 410
const legend = `Records in each ${width / 1e9} s, and above them, darker, the changes; heights by the logarithm. ▲ ` +
  "is an anomaly. Click or drag to go there. It goes back ";
const font = "12px system-ui, sans-serif";

export class Timeline {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.player = stage.player;
    this.slider = $("#timeline");
    this.sheet = newSheet(part(this.slider, "canvas", HTMLCanvasElement));
    this.ctx = this.sheet.ctx;
    this.select = $("#span", HTMLSelectElement);
    /** @type {number[][]} */
    this.buckets = []; // [number, first seq, records, changes], oldest first
    /** @type {timeline.Flag[]} */
    this.flags = [];
    this.counted = 0; // records up to here are in the buckets
    this.passed = false; // there are records that did not come one by one
    this.headT = 0;
    this.headAt = 0;
    this.end = 0; // right edge, ns
    this.dragging = false;
    this.drawnAt = 0;
    this.ask = asking(async () => {
      this.passed = false;
      this.index(await get("/viz/timeline"));
    });
    this.colours = inks();
    when(this.slider, "pointerdown", (event) => this.press(event));
    when(this.slider, "pointermove", (event) => this.point(event));
    when(this.slider, "lostpointercapture", () => (this.dragging = false));
    when(this.slider, "keydown", (event) => this.strike(event));
    new ResizeObserver(() => this.sheet.fit()).observe(this.slider);
    this.sheet.fit();
    this.restyle();
  }

  clear() {
    [this.buckets, this.flags, this.counted, this.headT, this.passed] = [[], [], 0, 0, false];
  }

  // index takes the server's index, and adds what has come since.
  /** @param {timeline.Span} line */
  index(line) {
    [this.buckets, this.flags, this.counted] = [line.buckets, line.flags, line.last];
    this.reached(line.t);
    this.arrived(this.player.tape.between(line.last + 1, this.player.head + 1));
  }

  // reached notes how far time has come.
  /** @param {number} t */
  reached(t) {
    if (t < this.headT) return;
    this.headT = t;
    this.headAt = performance.now();
  }

  /** @param {probe.Record[]} list */
  arrived(list) {
    if (list.length === 0) return;
    const { isFlag, says } = this.stage;
    this.reached(list[list.length - 1].t);
    for (const r of list) {
      if (r.seq <= this.counted) continue;
      this.counted = r.seq;
      const bucket = this.bucketOf(r);
      bucket[2]++;
      if (r.point === "RingAppend") bucket[3]++;
      const { seq, t, point, resource } = r;
      if (isFlag(r)) this.flags.push({ seq, t, point, resource, says: says(r) });
    }
    const { buckets, player: { oldest } } = this;
    let left = Math.max(0, buckets.length - limits.buckets); // or what has left the log, as the program forgets it
    while (buckets[left + 1]?.[1] <= oldest) left++;
    buckets.splice(0, left);
    this.flags = this.flags.filter((each) => each.seq >= oldest).slice(-limits.flags);
  }

  /** @param {probe.Record} r */
  bucketOf(r) {
    const number = Math.floor(r.t / width);
    const last = this.buckets.at(-1);
    if (last && last[0] >= number) return last;
    const bucket = [number, r.seq, 0, 0];
    this.buckets.push(bucket);
    return bucket;
  }

  // skip is told of a sum: the server has counted what is in it.
  /** @param {{ state: fold.State }} sum */
  skip({ state }) {
    this.reached(state.t);
    this.passed = true;
  }

  // edges returns the time at the left and the right edge.
  /** @param {number} now */
  edges(now) {
    const { player, headT } = this;
    const since = Math.min(2000, Math.max(0, now - this.headAt)) * 1e6 * player.worldPace;
    const newest = player.recording ? headT : headT + since;
    const first = Math.max(0, (this.buckets[0]?.[0] ?? 0) * width);
    const whole = Math.max(1e9, newest - first);
    const shown = Math.min(Number(this.select.value) * 1e9 || whole, whole); // or "all"
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

  // ---- drawing

  /** @param {fold.Resource | undefined} _res @param {fold.State} state */
  shown(_res, state) {
    const { scene, here } = this.stage;
    const lately = (/** @type {string[]} */ points) => {
      const last = this.flags.findLast((f) => f.seq <= this.player.cursor && points.includes(f.point) && here(f));
      return last && state.t - last.t < told ? last : null;
    };
    const last = lately(gone);
    const { story } = scene; // which is about its own clients, and in this beat
    const mine = last && story && last.seq > story.from && story.members.some(({ word }) => word === "410");
    put($("#ring-tray"), "visibility", last && (!story || mine) ? "visible" : "hidden");
    scene.text("ring.resized", lately(["RingResize"]) ? "new size:" : "");
  }

  restyle() { this.colours = inks("moving", "stored", "anomaly", "ink", "soft", "line", "panel"); }

  /** @param {number} now */
  draw(now) {
    const { player, ctx } = this;
    const live = player.mode === "live";
    if (this.passed && live) this.ask(now, askPeriod);
    if (now - this.drawnAt < (live ? livePeriod : period) && !this.dragging) return;
    this.drawnAt = now;
    const scale = window.devicePixelRatio || 1;
    const [w, h] = [ctx.canvas.width / scale, ctx.canvas.height / scale];
    const [from, to] = this.edges(now);
    const x = (/** @type {number} */ t) => ((t - from) / (to - from)) * w;
    const newest = live && player.behind() === 0;
    ctx.setTransform(scale, 0, 0, scale, 0, 0);
    this.drawBars(x, h, { from, to, w, later: newest ? Infinity : player.state.t });
    this.drawTicks(x, h, from, to);
    for (const f of this.flags) if (f.t >= from && f.t <= to) this.drawFlag(x(f.t));
    this.drawCursor(Math.min(w - 1.5, Math.max(1.5, x(newest ? to : player.state.t))), h);
    this.sheet.show();
    this.tell();
  }

  /**
   * @param {(t: number) => number} x @param {number} h
   * @param {{ [name in "from" | "to" | "w" | "later"]: number }} span
   */
  drawBars(x, h, { from, to, w, later }) {
    const { ctx, colours } = this;
    const shown = this.buckets.filter((b) => (b[0] + 1) * width > from && b[0] * width < to);
    const most = shown.reduce((m, b) => Math.max(m, b[2]), 20);
    const height = (/** @type {number} */ n) => (n > 0 ? Math.max(2,
      ((h - 14) * Math.log1p(n)) / Math.log1p(most)) : 0);
    const pitch = (width / (to - from)) * w;
    for (const b of shown) {
      ctx.globalAlpha = b[0] * width > later ? 0.4 : 1;
      for (const { n, ink } of [{ n: b[2], ink: colours.stored }, { n: b[3], ink: colours.moving }]) {
        ctx.fillStyle = ink;
        ctx.fillRect(x(b[0] * width), h - height(n), Math.max(1, pitch > 3 ? pitch - 1 : pitch), height(n));
      }
    }
    ctx.globalAlpha = 1;
  }

  /** @param {(t: number) => number} x @param {number} h @param {number} from @param {number} to */
  drawTicks(x, h, from, to) {
    const { ctx, colours } = this;
    Object.assign(ctx, { font, textBaseline: "middle" });
    for (const t of marks(from, to)) {
      ctx.fillStyle = colours.line;
      ctx.fillRect(x(t), 0, 1, h);
      ctx.fillStyle = colours.soft;
      const text = clockText(t);
      const left = Math.round(x(t)) + 3;
      if (left + widthOf(text, font) <= x(to)) ctx.fillText(text, left, 8); // and not half of it
    }
  }

  /** @param {number} x */
  drawFlag(x) {
    const path = new Path2D(`M${x} 2L${x + 6} 13L${x - 6} 13Z`);
    Object.assign(this.ctx, { fillStyle: this.colours.anomaly, strokeStyle: this.colours.panel, lineWidth: 1.5 });
    this.ctx.stroke(path);
    this.ctx.fill(path);
  }

  /** @param {number} x @param {number} h */
  drawCursor(x, h) {
    this.ctx.fillStyle = this.colours.ink;
    this.ctx.fillRect(x - 1, 0, 2, h);
    this.ctx.fill(new Path2D(`M${x - 5} ${h}L${x + 5} ${h}L${x} ${h - 8}Z`));
  }

  tell() {
    const { slider, player } = this;
    put(slider, "aria-valuemin", player.oldest);
    put(slider, "aria-valuemax", player.head);
    put(slider, "aria-valuenow", player.cursor);
    const where = player.mode === "live"
      ? "live" : `${clockText(player.state.t, 3)}, ${player.behind()} records behind`;
    put(slider, "aria-valuetext", `record ${player.cursor}, ${where}`);
  }

  // ---- hands

  // under returns what a pointer is at: a time, and an anomaly if it is at its flag; else null.
  /** @param {PointerEvent} event */
  under(event) {
    const box = this.slider.getBoundingClientRect();
    const [from, to] = this.edges(performance.now());
    const t = from + (Math.min(box.width, Math.max(0, event.clientX - box.left)) / box.width) * (to - from);
    const near = (/** @type {timeline.Flag} */ f) => Math.abs(f.t - t) <= (7 / box.width) * (to - from);
    return { t, flag: event.clientY - box.top > 16 ? null : this.flags.findLast(near) ?? null };
  }

  /** @param {PointerEvent} event */
  press(event) {
    if (event.button !== 0) return;
    this.slider.setPointerCapture(event.pointerId);
    this.slider.focus({ preventScroll: true });
    this.dragging = true;
    const { t, flag } = this.under(event);
    this.player.seek(flag?.seq ?? this.seqAt(t)); // a viewer who points at a flag means it
  }

  /** @param {PointerEvent} event */
  point(event) {
    const { player } = this;
    const { t, flag } = this.under(event);
    const all = player.recording ? "to the recording's beginning" : `${player.tape.room} records, as many as are kept`;
    put(this.slider, "title", flag ? flag.says : `${legend}${all}.`);
    if (this.dragging) player.seek(this.seqAt(t));
  }

  /** @param {KeyboardEvent} event */
  strike(event) {
    const { player } = this;
    const [from, to] = this.edges(performance.now());
    /** @type {{ [key: string]: number }} */
    const small = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -20, PageUp: 20 };
    const share = 0.005 * small[event.key];
    if (!share || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const seq = this.seqAt(Math.max(0, player.state.t + share * (to - from)));
    player.seek(seq === player.target() ? seq + Math.sign(share) : seq); // never stuck between two records
  }
}
