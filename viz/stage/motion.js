// Motion paints a plan: a token travels, and rests between two hops. While time is stopped, a dotted way
// leads from each token to its next place. In a stream, the ways have stripes (streams.js).

import { newSheet } from "../dom/canvas.js";
import { isAnomaly } from "../log/fold.js";
import { along } from "./ground.js";
import { Brush, meet } from "./paint.js";
import { Flow, flowPeriod } from "./streams.js";
import { heldIn } from "./pipe.js";
import { near } from "./plan.js";

/**
 * @typedef {import("./ground.js").Spot} Spot
 * @typedef {import("./paint.js").Box} Box
 * @typedef {import("./paint.js").Painting} Painting
 * @typedef {import("./plan.js").Move} Move
 * @typedef {Move & { t0: number, done: number, t1: number, single?: boolean, hop?: boolean }} Trail a way just taken
 * @typedef {Move & { done: number, of?: Move }} Next the way to a token's next place
 * @typedef {object} Own
 * @property {unknown} first the viewer's change on its way
 * @property {(m: { change: string, seq: number }) => boolean} leads
 * @property {(r: probe.Record) => boolean} its
 * @property {Map<string, string>} theirs the agents of others' changes to the same objects, by change
 * @typedef {object} State
 * @property {Own} own
 * @property {boolean} stream
 * @property {() => [list: probe.Record[], res: fold.Resource | undefined]} coming
 * @property {(seq: number) => string} said the short sentence about a record
 * @typedef {import("./paint.js").Caption & { move: Move, since: number, until: number }} Said
 */

const trailLasts = 380; // ms
const hopLasts = 160; // ms of a hop that records draws
const half = 14; // units from a queue to the middle of a token that waits before it
const stays = 250; // the minimum ms between two sentences about one change, unless it is the viewer's
const lingers = 1500; // ms that a sentence stays after its hop if no other follows

export class Motion {
  /**
   * @param {HTMLCanvasElement} canvas @param {import("./scene.js").Scene} scene
   * @param {import("./plan.js").Planner} planner
   */
  constructor(canvas, scene, planner) {
    this.canvas = canvas;
    this.scene = scene;
    this.planner = planner;
    planner.landed = (plan) => this.landed(plan);
    this.sheet = newSheet(canvas);
    this.brush = new Brush(this.sheet.ctx, scene);
    this.flow = new Flow(planner);
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    /** @type {Trail[]} */
    this.trails = []; // the ways of plans that landed moments ago, and those that records draws
    /** @type {Next[]} */
    this.nexts = []; // the dotted ways
    /** @type {Said | null} */
    this.caption = null; // the sentence on stage
    this.painted = false; // whether anything moved in the previous frame
    this.stale = true;
    this.drawnAt = 0;
    this.clock = 0; // the time of the previous frame
    this.stood = false; // whether time was stopped in that frame
    this.since = 0; // when time last stopped or went on
    new ResizeObserver(() => this.restyle()).observe(canvas);
    this.restyle();
  }

  restyle() {
    this.sheet.fit();
    this.brush.restyle();
    this.stale = true;
  }

  clear() {
    this.planner.clear();
    this.trails = [];
    this.caption = null;
    this.flow.clear();
    this.stale = true;
  }

  // landed leaves trails behind the tokens of a plan that has ended.
  /** @param {import("./plan.js").Plan} plan */
  landed({ moves, t0, t1 }) {
    const long = t1 ? moves.filter((move) => move.length >= 1) : [];
    this.trails.push(...long.map((move) => ({ ...move, t0, done: t1, t1: t1 + trailLasts })));
    this.stale = true;
  }

  // records takes records that were folded at once. It removes the resting tokens, and draws trails for anomalies and
  // followed objects, and all hops of the viewer's changes. res is the state after the records; a stream counts by it.
  /** @param {probe.Record[]} list @param {number} now @param {Pick<State, "own" | "stream">} state
   *  @param {fold.Resource} [res] */
  records(list, now, { own, stream }, res) {
    const { planner } = this;
    planner.tokens.clear();
    if (stream && res) this.flow.look(res, now);
    let [leaves, point] = [Math.max(now, ...this.trails.map(({ hop, done }) => (hop ? done : 0))), ""];
    for (const r of list) {
      const hop = own.its(r);
      if (!hop && !isAnomaly(planner.infos.get(r.point), r) && !planner.matches(r)) continue;
      if (hop && r.point !== point) leaves += point ? hopLasts : 0;
      point = hop ? r.point : point;
      const [t0, done] = hop ? [leaves, leaves + hopLasts] : [now, now];
      for (const move of planner.plan([r], res).moves) {
        if (move.length >= 1) this.trails.push({ ...move, t0, done, t1: done + trailLasts, single: true, hop });
      }
    }
  }

  // ---- positions

  /** @param {number} now */
  share(now) {
    const { air } = this.planner;
    if (this.still.matches || !air) return 0;
    return Math.min(1, Math.max(0, (now - air.t0) / Math.max(1, air.t1 - air.t0)));
  }

  // done returns how far a token has moved. While time is stopped, a token for a queue waits before the queue.
  /** @param {Move} move @param {number} now */
  done({ legs, length, queue }, now) {
    const door = this.stood && queue ? Math.max(0, length - (legs.at(-1)?.length ?? 0) - half) : length;
    return Math.min(door, this.share(now) * length);
  }

  /** @param {number} now */
  flying(now) { return this.planner.moves.map((m) => ({ ...m, now: along(m.legs, this.done(m, now)) })); }

  // named returns the queued copies to draw with their names, each at the place where a pipe draws it.
  named() {
    const waiting = [...this.planner.tokens.values()].filter((t) => t.queue);
    return waiting.length === 0 ? [] : heldIn(this.scene).flatMap((held) => {
      if (held.again) return []; // the next token shows the name
      const is = (/** @type {Move} */ t) => t.queue === held.in && t.key === held.key && t.rv === held.rv;
      const t = waiting.find((each) => is(each) && (!held.owner || held.owner === each.owner));
      return t ? [{ ...t, ...held, label: t.label }] : [];
    });
  }

  // concealed returns the tokens in queues of shut stations, whose pipes are not drawn.
  concealed() {
    const { scene } = this;
    const waits = (/** @type {Move} */ t) => t.queue && t.queue !== "pending" && scene.shuts(t.station);
    return [...this.planner.tokens.values()].filter(waits);
  }

  // at returns the spot of the last moving token, or else of a change's newest resting copy, or undefined.
  /** @param {string} change @param {number} now @returns {Spot | undefined} */
  at(change, now) {
    const [flies] = this.flying(now).slice(-1);
    if (flies) return flies.now;
    const stands = [...this.planner.tokens.values()].findLast((t) => t.change === change);
    return stands && [stands.x, stands.y];
  }

  // ---- drawing

  /** @param {number} now @param {State} state */
  draw(now, state) {
    const stands = now === this.clock; // the stage's clock is stopped: moving tokens are shown whole, with names
    const turns = stands !== this.stood;
    if (turns) this.since = performance.now();
    const faded = now + (stands ? performance.now() - this.since : 0); // trails fade even then
    this.trails = this.trails.filter((each) => faded < each.t1);
    const moves = Boolean(this.planner.air || this.trails.length > 0 || state.stream);
    [this.clock, this.stood] = [now, stands];
    if (!moves && !this.stale && !this.painted && !turns) return;
    const single = this.planner.air || this.trails.some(({ hop }) => hop);
    if (state.stream && !single && !this.stale && now - this.drawnAt < flowPeriod) return;
    this.nexts = stands && !state.stream ? this.ahead(...state.coming()) : [];
    [this.drawnAt, this.painted, this.stale] = [now, moves, false];
    this.brush.labels = [];
    const tokens = [...this.speech(now, state), ...this.tokens(now, state)]; // tokens cover the sentence
    const dotted = this.nexts.map((way) => this.stretch(way, way.done, way.length));
    const ways = [...this.tails(now, faded), ...dotted].filter((each) => each !== null);
    this.paint(now, state.stream, ways, tokens);
  }

  /** @param {number} now @param {State} state */
  tokens(now, { own, stream }) {
    const { brush, scene, planner, stood } = this;
    const waiting = stream ? [] : this.named();
    const moved = this.flying(now);
    const bare = this.barely(moved, [...moved, ...planner.standing, ...waiting]);
    // While time is stopped, the viewer reads: no name covers a text or a token, and no name in a pill covers a queue.
    const taken = stood && !stream ? [...scene.words(() => true).map((box) => ({ box, well: false })),
      ...scene.wells().map((box) => ({ box, well: true }))] : [];
    const reads = taken.length > 0;
    const free = (/** @type {Box} */ box, wells = true) => !taken.some((each) =>
      (wells || !each.well) && meet(box, each.box));
    // passed reports whether a copy is still at the dispatcher after the one for the client on stage has left.
    const passed = (/** @type {Move} */ m) => m.in === "dispatch" && [...planner.moves, ...planner.tokens.values()]
      .some((t) => t.change === m.change && scene.serving.has(t.owner));
    const lay = (/** @type {Move} */ m, /** @type {Spot} */ at) => {
      const leads = own.leads(m);
      const by = own.theirs.get(m.change)?.replace(/^(listwatch-)?/, " · ") ?? "";
      const called = { ...m, label: bare(m) ? "" : m.label + by, followed: (m.followed && !by) || leads,
        pale: Boolean(own.first) && (!leads || this.theirs(m) || passed(m)) };
      if (!reads) return [brush.pill(called, at)];
      const made = brush.stand({ ...called, named: m.change === scene.named }, at, free);
      taken.push(...made.map(({ box }) => ({ box, well: false })));
      return made;
    };
    const goes = (/** @type {Trail} */ t) => t.single && (!t.hop || (t.t0 <= now && now <= t.done));
    const at = (/** @type {Trail} */ t) => along(t.legs, t.hop ? (t.length * (now - t.t0)) / hopLasts : t.length);
    const placed = planner.standing.flatMap((t) => lay(t, [t.x, t.y]));
    placed.unshift(...this.trails.filter(goes).flatMap((t) => lay(t, at(t))));
    placed.unshift(...moved.flatMap((m) => lay(m, m.now)));
    placed.push(...waiting.flatMap((t) => (scene.plain ? lay(t, [t.x, t.y]) : brush.beside(t) ?? [])));
    placed.push(...this.concealed().flatMap((t) => lay(t, [t.x, t.y])));
    return placed;
  }

  // theirs reports whether a copy is in the lane of a client other than the one on stage.
  /** @param {Move} m */
  theirs({ owner }) { return this.scene.places.watchers.lanes.has(owner) && !this.scene.serving.has(owner); }

  // speech returns the painting of the sentence about a token's hop, if any. The sentence stays beside the hop's way.
  /** @param {number} now @param {State} state */
  speech(now, { own, said, stream }) {
    const { brush, scene, planner: { moves }, stood } = this;
    const move = moves.findLast((m) => own.leads(m) && scene.serving.has(m.owner)) ?? moves.at(-1);
    const last = this.caption;
    const over = last && now > last.since + lingers;
    const due = (/** @type {Pick<Move, "seq" | "change">} */ { seq, change }) => seq !== last?.move.seq
      && (own.leads({ seq, change }) || change !== last?.move.change || now >= last.until);
    if (over || stood || scene.plain || scene.story || stream) this.caption = null;
    else if (move && due(move)) this.caption = this.captionOf(move, said(move.seq), now);
    const { caption } = this;
    const flies = moves.find(({ seq, copy }) => seq === caption?.move.seq && copy === caption.move.copy);
    if (!caption || (!flies && move)) return []; // the caption is not about the token that moves
    if (flies) caption.since = now;
    return [brush.speech(caption, flies && along(flies.legs, this.done(flies, now)))];
  }

  /** @param {Move} move @param {string} words @param {number} now @returns {Said | null} */
  captionOf(move, words, now) {
    const { scene, planner } = this;
    if (!words) return null;
    const way = Array.from({ length: 9 }, (_, i) => along(move.legs, (move.length * i) / 8));
    const [xs, ys] = [0, 1].map((side) => way.map((spot) => spot[side]));
    /** @type {Box} */
    const area = [Math.min(...xs) - 400, Math.min(...ys) - 200, Math.max(...xs) + 400, Math.max(...ys) + 200];
    const taken = [...scene.words((box) => meet(box, area)), ...scene.wells()];
    const stand = planner.standing.map(({ x, y }) => /** @type {Spot} */ ([x, y]));
    return { ...this.brush.settle(words, way, stand, taken), move, since: now, until: now + stays };
  }

  // barely returns a function that reports whether a token is drawn without its name.
  /** @param {Move[]} moved @param {Move[]} all */
  barely(moved, all) {
    const { scene, stood } = this;
    // One of the dispatcher's copies has the name; the others are bare until they reach their lanes.
    const sent = moved.filter(({ point }) => point === "InputSent");
    const first = sent.find((m) => !this.theirs(m)) ?? sent[0];
    const split = (/** @type {Move} */ m) => sent.includes(m) && m !== first;
    // In the first view only one token has a name.
    const { watchers, listeners } = scene.places;
    const laneOf = (/** @type {string} */ id) => watchers.lanes.get(id) ?? listeners.lanes.get(id);
    const hero = scene.plain && all.find((m) => !((laneOf(m.owner)?.index ?? 0) > 0));
    // In the lane of a story's client, a token that has left the channel result is bare: a name would cover the flag.
    const flagged = (/** @type {Move} */ m) => !stood && m.point === "ResultReceived"
      && scene.story?.members.some(({ subject }) => subject === m.owner);
    return (/** @type {Move} */ m) => split(m) || flagged(m) || (scene.plain && m !== hero);
  }

  /** @param {number} now @param {boolean} stream @param {Painting[]} ways @param {Painting[]} tokens */
  paint(now, stream, ways, tokens) {
    const { ctx } = this.sheet;
    const { view } = this.scene;
    const scale = this.canvas.width / view.w;
    ctx.setTransform(scale, 0, 0, scale, -view.x * scale, -view.y * scale);
    if (stream) this.flow.draw(now, this.brush, this.still.matches);
    for (const each of ways) each.paint(); // the next lines erase what ways draw over texts
    const meets = (/** @type {Box} */ place) => ways.some(({ box }) => meet(box, place));
    for (const [l, t, r, b] of ways.length > 0 && !stream ? this.scene.words(meets) : []) {
      if (meets([l, t, r, b])) ctx.clearRect(l - 1, t + 2, r - l + 2, b - t - 4);
    }
    for (const each of tokens) each.paint();
    this.sheet.show();
  }

  // stretch returns a painting of the part of a way between two lengths, or null if that part is empty.
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

  // ahead returns each token's way to its next place while time is stopped. For a moving token it is the rest of the
  // way; for every other copy it is the way that the next records describe.
  /** @param {probe.Record[]} list @param {fold.Resource} [res] @returns {Next[]} */
  ahead(list, res) {
    const { planner } = this;
    const flies = planner.moves.map((m) => ({ ...m, done: this.done(m, this.clock) }));
    const arrived = flies.filter((m) => m.length - m.done < near);
    for (const m of arrived) planner.tokens.set(m.copy, m); // only for planner.ahead
    const ways = planner.ahead(list, res, new Map(planner.tokens));
    for (const m of arrived) planner.tokens.delete(m.copy);
    return [...flies.filter((m) => m.length - m.done >= 1), ...ways];
  }
}
