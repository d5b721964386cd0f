// Motion: what is painted of a plan. A change is a token that travels, and stands between two hops; one that stands in
// a queue is drawn by its pipe. Where time stands, dotted ways lead to where what stands goes next. Of a stream nothing
// travels: its ways have stripes (streams.js), and singly is drawn only what must not be overlooked.

import { newSheet } from "../dom/canvas.js";
import { mark } from "../dom/dom.js";
import { isAnomaly } from "../log/fold.js";
import { Brush, meet } from "./paint.js";
import { Flow, flowPeriod } from "./streams.js";
import { heldIn } from "./pipe.js";
import { near, spotOn } from "./plan.js";
import { along } from "./path.js";

/**
 * @typedef {import("./ground.js").Spot} Spot
 * @typedef {import("./paint.js").Box} Box
 * @typedef {import("./paint.js").Painting} Painting
 * @typedef {import("./plan.js").Move} Move
 * @typedef {Move & { t0: number, done: number, t1: number, single?: boolean }} Trail of a way, from when till when
 * @typedef {Move & { done: number, of?: Move }} Next way of what stands
 * @typedef {{ pile: number, stream: boolean, coming: () => [list: probe.Record[], res: fold.Resource | undefined] }}
 *   State
 */

const trailLasts = 380; // ms
const half = 14; // units of a token without a name

export class Motion {
  /**
   * @param {HTMLCanvasElement} canvas @param {import("./scene.js").Scene} scene
   * @param {import("./plan.js").Planner} planner
   */
  constructor(canvas, scene, planner) {
    this.canvas = canvas;
    this.scene = scene;
    this.planner = planner;
    this.sheet = newSheet(canvas);
    this.brush = new Brush(this.sheet.ctx, scene);
    this.flow = new Flow(scene);
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    /** @type {Trail[]} */
    this.trails = []; // the plans that have landed a moment ago, and what is drawn singly of a stream
    /** @type {Next[]} */
    this.nexts = []; // what is drawn of the ways on which what stands goes on
    this.painted = false; // the frame before was not empty
    this.stale = true;
    this.drawnAt = 0;
    this.clock = 0; // of the frame before
    this.stood = false; // whether that stood, and since when
    this.since = 0;
    this.pile = 0;
    new ResizeObserver(() => this.resize()).observe(canvas);
    this.resize();
    this.brush.restyle();
  }

  resize() {
    this.sheet.fit();
    this.stale = true;
  }

  restyle() {
    this.brush.restyle();
    this.stale = true;
  }

  touch() { this.stale = true; }

  clear() {
    this.planner.clear();
    this.trails = [];
    this.flow.clear();
    this.stale = true;
  }

  // land leaves trails where the tokens of a plan have come.
  /** @param {import("./plan.js").Plan} plan */
  land(plan) {
    const { moves, t0, t1 } = plan;
    const long = t1 ? moves.filter((move) => move.length >= 1) : [];
    this.trails.push(...long.map((move) => ({ ...move, t0, done: t1, t1: t1 + trailLasts })));
    this.planner.land(plan);
    this.stale = true;
  }

  // records takes notice of what has been folded in a stream. res is the picture after it.
  /** @param {probe.Record[]} list @param {number} now @param {boolean} stream @param {fold.Resource} [res] */
  records(list, now, stream, res) {
    const { planner } = this;
    planner.tokens.clear();
    if (stream && res) this.flow.look(res, now);
    for (const r of list) {
      if (!isAnomaly(planner.infos.get(r.point), r) && !planner.matches(r)) continue;
      for (const move of planner.plan([r], res).moves) {
        if (move.length >= 1) this.trails.push({ ...move, t0: now, done: now, t1: now + trailLasts, single: true });
      }
    }
  }

  get anomalies() { return this.trails.filter((each) => each.single && each.colour === "anomaly").length; }

  // ---- what is where

  /** @param {number} now */
  share(now) {
    const { air } = this.planner;
    if (this.still.matches || !air) return 0;
    return Math.min(1, Math.max(0, (now - air.t0) / Math.max(1, air.t1 - air.t0)));
  }

  // done is how far on its way a token is. Where time stands, one that a queue does not count yet stands before it.
  /** @param {Move} move @param {number} now */
  done({ legs, length, queue }, now) {
    const door = this.stood && queue ? Math.max(0, length - (legs.at(-1)?.length ?? 0) - half) : length;
    return Math.min(door, this.share(now) * length);
  }

  // flying are the tokens that move, with their places.
  /** @param {number} now */
  flying(now) { return this.planner.moves.map((m) => ({ ...m, now: spotOn(m, this.done(m, now)) })); }

  // named are the told changes that wait in queues, as the pipes draw them.
  named() {
    const waiting = [...this.planner.tokens.values()].filter((t) => t.queue);
    return waiting.length === 0 ? [] : heldIn(this.scene).flatMap((held) => {
      if (held.again) return []; // its name stands beside the next one
      const is = (/** @type {Move} */ t) => t.queue === held.in && t.key === held.key && t.rv === held.rv;
      const t = waiting.find((each) => is(each) && (!held.owner || held.owner === each.owner));
      return t ? [{ ...t, ...held, label: t.label }] : [];
    });
  }

  // at is where a change is: its newest copy, in the air or not.
  /** @param {string} change @param {number} now @returns {Spot | undefined} */
  at(change, now) {
    const [flies] = this.flying(now).slice(-1);
    if (flies) return flies.now;
    const stands = [...this.planner.tokens.values()].findLast((t) => t.change === change);
    return stands && [stands.x, stands.y];
  }

  // keyAt returns the object whose token is drawn at a point of the window, "" if none is.
  /** @param {number} x @param {number} y @param {number} now */
  keyAt(x, y, now) {
    const box = this.canvas.getBoundingClientRect();
    const { view } = this.scene;
    const scale = box.width / view.w;
    const [px, py] = [view.x + (x - box.x) / scale, view.y + (y - box.y) / scale];
    const there = [...this.flying(now), ...this.planner.standing.map((t) => ({ ...t, now: [t.x, t.y] }))];
    const near = (/** @type {number} */ x, /** @type {number} */ y, /** @type {string} */ label) => (
      Math.abs(y - py) < 16 && Math.abs(x - px) < 20 + 5 * label.length);
    const hit = there.find(({ now: [tx, ty], label }) => near(tx, ty, label));
    return hit?.key ?? "";
  }

  // ---- drawing

  /** @param {number} now @param {State} state */
  draw(now, state) {
    const stands = now === this.clock; // the stage's clock does: what is in the air is shown whole, with its name
    const turns = stands !== this.stood;
    if (turns) this.since = performance.now();
    const faded = now + (stands ? performance.now() - this.since : 0); // trails do not stand
    this.trails = this.trails.filter((each) => faded < each.t1);
    const moves = Boolean(this.planner.air || this.trails.length > 0 || state.stream);
    [this.clock, this.stood] = [now, stands];
    if (!moves && !this.stale && !this.painted && !turns && state.pile === this.pile) return;
    if (state.stream && !this.planner.air && !this.stale && now - this.drawnAt < flowPeriod) return;
    this.nexts = stands && !state.stream ? this.ahead(...state.coming()) : [];
    [this.drawnAt, this.painted, this.pile, this.stale] = [now, moves, state.pile, false];
    this.brush.clean();
    const { placed, pills } = this.tokens(now, state);
    this.cover([...pills, ...placed]);
    const tails = this.tails(now, faded);
    const dotted = this.nexts.map((way) => this.stretch(way, way.done, way.length));
    const moving = [...tails, ...(stands ? dotted : pills)].filter((each) => each !== null);
    this.paint(now, state.stream, moving, placed);
  }

  // tokens are what is drawn of those that move (pills) and that stand (placed). Where time stands all of them stand.
  /** @param {number} now @param {State} state */
  tokens(now, { pile, stream }) {
    const { brush, scene, planner, stood } = this;
    const waiting = stream ? [] : this.named();
    const moved = this.flying(now);
    const bare = this.barely(moved, [...moved, ...planner.standing, ...waiting]);
    // Where time stands they are read: none is drawn on a word, on another one, or on a queue that does not count it.
    const taken = stood && !stream ? [...scene.words(() => true).map((box) => ({ box, well: false })),
      ...scene.wells().map((box) => ({ box, well: true }))] : [];
    const reads = taken.length > 0;
    const free = (/** @type {Box} */ box, wells = true) => !taken.some((each) =>
      (wells || !each.well) && meet(box, each.box));
    const lay = (/** @type {Move} */ m, /** @type {Spot} */ at) => {
      const called = bare(m, at) ? { ...m, label: "" } : m;
      if (!reads) return [brush.pill(called, at)];
      const made = brush.stand({ ...called, named: m.change === scene.named }, at, free);
      taken.push(...made.map(({ box }) => ({ box, well: false })));
      return made;
    };
    const singles = this.trails.filter((each) => each.single);
    const placed = [...singles, ...planner.standing].flatMap((t) => lay(t, [t.x, t.y]));
    const pills = moved.flatMap((m) => lay(m, m.now));
    if (stood) placed.unshift(...pills);
    const more = { label: `${pile} wait`, shape: "", colour: "moving" };
    if (pile > 0 && !scene.plain) placed.push(brush.pill(more, scene.place(scene.geometry.turns.pile)));
    placed.push(...waiting.flatMap((t) => (scene.plain ? lay(t, [t.x, t.y]) : brush.beside(t) ?? [])));
    return { placed, pills };
  }

  // barely returns which tokens are drawn without their names.
  /** @param {Move[]} moved @param {Move[]} all */
  barely(moved, all) {
    const { scene, stood } = this;
    const { X } = scene.boxOf("watcher");
    // What the dispatcher holds has the name: its copies are marks until they are in their lanes.
    const split = (/** @type {Move} */ m, /** @type {number} */ x) =>
      m.point === "InputSent" && moved.length > 1 && x < X;
    // On the first view one token has a name: other copies are marks, too.
    const { watchers, listeners } = scene.places;
    const laneOf = (/** @type {string} */ id) => watchers.lanes.get(id) ?? listeners.lanes.get(id);
    const hero = scene.plain && all.find((m) => !((laneOf(m.owner)?.index ?? 0) > 0));
    // What has left result stands beside the flag of a story's client, which has to be read.
    const flagged = (/** @type {Move} */ m) => !stood && m.point === "ResultReceived"
      && scene.story?.members.some(({ subject }) => subject === m.owner);
    return (/** @type {Move} */ m, /** @type {Spot} */ [x]) => split(m, x) || flagged(m) || (scene.plain && m !== hero);
  }

  // cover hides the arrow of the dispatcher where it would be drawn over a token.
  /** @param {Painting[]} all */
  cover(all) {
    const { scene } = this;
    const [x, y] = scene.place(scene.geometry.anchors.dispatch);
    mark(scene.station("dispatch"), "covered", all.some(({ box }) => meet(box, [x - 20, y, x + 20, y])));
  }

  /** @param {number} now @param {boolean} stream @param {Painting[]} moving @param {Painting[]} placed */
  paint(now, stream, moving, placed) {
    const { ctx } = this.sheet;
    const { view } = this.scene;
    const scale = this.canvas.width / view.w;
    ctx.setTransform(scale, 0, 0, scale, -view.x * scale, -view.y * scale);
    if (stream) this.flow.draw(now, this.brush, this.still.matches);
    for (const each of moving) each.paint();
    // What moves is behind what is written: there it has a hole.
    const meets = (/** @type {Box} */ place) => moving.some(({ box }) => meet(box, place));
    for (const [l, t, r, b] of moving.length > 0 && !stream ? this.scene.words(meets) : []) {
      if (meets([l, t, r, b])) ctx.clearRect(l - 1, t + 2, r - l + 2, b - t - 4);
    }
    for (const each of placed) each.paint();
    this.sheet.show();
  }

  // stretch is what of a way lies between two of its lengths, as a thing to be painted; null: nothing does.
  /**
   * @param {Move} way @param {number} from @param {number} to @param {{ globalAlpha: number }} [look]
   * @returns {Painting | null}
   */
  stretch({ legs, colour }, from, to, look) {
    if (to <= from) return null;
    const { ctx } = this.sheet;
    const n = Math.ceil((to - from) / 8);
    const points = Array.from({ length: n + 1 }, (_, i) => along(legs, from + ((to - from) * i) / n));
    const [xs, ys] = [0, 1].map((side) => points.map((point) => point[side]));
    return {
      box: [Math.min(...xs) - 3, Math.min(...ys) - 3, Math.max(...xs) + 3, Math.max(...ys) + 3],
      paint: () => {
        ctx.save();
        Object.assign(ctx, { strokeStyle: this.brush.colours[colour], lineWidth: 3, lineCap: "butt", ...look });
        if (!look) ctx.setLineDash([3, 5]);
        ctx.beginPath();
        for (const point of points) ctx.lineTo(...point);
        ctx.stroke();
        ctx.restore();
      },
    };
  }

  // tails are the parts of ways that their tokens have passed in the last moments.
  /** @param {number} now @param {number} faded */
  tails(now, faded) {
    const { air, moves } = this.planner;
    return [
      ...this.trails.map((each) => this.tail(each, each.t0, each.done, faded, each.length)),
      ...(air ? moves.map((m) => this.tail(m, air.t0, air.t1, faded, this.done(m, now))) : []),
    ];
  }

  /** @param {Move} move @param {number} begin @param {number} end @param {number} now @param {number} most */
  tail(move, begin, end, now, most) {
    const lasts = Math.max(1, end - begin);
    const at = (/** @type {number} */ t) => Math.min(most, Math.max(0, (t - begin) / lasts) * move.length);
    return this.still.matches ? null : this.stretch(move, at(now - trailLasts), at(now), { globalAlpha: 0.4 });
  }

  // ahead returns the ways to their next places of what stands with the stage: the rest of one that is in the air, and
  // what the records that come say of every other copy.
  /** @param {probe.Record[]} list @param {fold.Resource} [res] @returns {Next[]} */
  ahead(list, res) {
    const { planner } = this;
    const flies = planner.moves.map((m) => ({ ...m, done: this.done(m, this.clock) }));
    const arrived = flies.filter((m) => m.length - m.done < near);
    for (const m of arrived) planner.tokens.set(m.copy, m); // for as long as it is asked
    const ways = planner.ahead(list, res, new Map(planner.tokens));
    for (const m of arrived) planner.tokens.delete(m.copy);
    return [...flies.filter((m) => m.length - m.done >= 1), ...ways];
  }
}
