// The plan: records in, hops out. A hop is a few records of one change: planned, launched and landed. A token is on its
// way before its record is folded, or sets out with it (departs). Between two hops it stands where its last record left
// it: in a queue, or at a station. Nothing here knows the document, or a clock.

import { objectKey } from "../log/fold.js";
import { placed } from "./ground.js";
import { changeOf, departs } from "./hops.js";
import { Router, routes } from "./routes.js";
import { brief, shapeOf, shortKey } from "./tokens.js";
import { along, endOf, legsOf, lengthOf } from "./path.js";

/**
 * @typedef {import("./ground.js").Spot} Spot
 * @typedef {import("./ground.js").Point} Point
 * @typedef {import("./path.js").Leg} Leg
 * @typedef {import("./ground.js").Layout & Scenery} Ground what a plan has to know of the stage
 * @typedef {object} Scenery
 * @property {stage.Geometry} geometry
 * @property {boolean} plain it is the first view: of several copies one is drawn
 * @property {{ capacity: number, start: number, newest?: string }} ring
 * @property {import("./places.js").Places} places
 * @property {string} informer
 * @property {Set<string>} serving
 * @property {{ members: { subject: string }[] } | null} story
 * @typedef {object} Look of a way
 * @property {string} [colour]
 * @property {string} [label] instead of the object's name
 * @property {string} [key]
 * @property {string} [takes] the copy of which this one is made
 * @property {probe.PointName} [as] the point whose place in the order of points it has
 * @property {string} [at] the station where it stands then
 * @property {boolean} [ends] it leaves the stage at its end
 * @property {boolean} [slow] it must not be overlooked
 * @property {boolean} [fresh] it may go where it has been
 * @typedef {object} Move of a copy: its way, and how it stands at its end
 * @property {string} copy
 * @property {Point[]} points
 * @property {Leg[]} legs
 * @property {number} length
 * @property {string} key
 * @property {string} rv
 * @property {string} owner
 * @property {probe.PointName} point
 * @property {probe.Station} station
 * @property {number} seq
 * @property {number} order
 * @property {number} x
 * @property {number} y
 * @property {Spot} at on the wide stage
 * @property {string} queue in which it stands; "": at a station
 * @property {string} in the queue or the station
 * @property {boolean} ends
 * @property {string} [takes]
 * @property {string} colour
 * @property {string} [type]
 * @property {string} shape
 * @property {boolean} followed
 * @property {boolean} departs
 * @property {string} change
 * @property {string} label
 * @typedef {object} Plan
 * @property {Move[]} moves
 * @property {string[]} ends copies that leave the stage
 * @property {number} seq of its last record
 * @property {number} length
 * @property {number} ms at reading pace
 * @property {number} t0 when it runs; launch says it
 * @property {number} t1
 * @typedef {{ moves: Map<string, Move>, ends: string[], slow: boolean, r: probe.Record, res?: fold.Resource }} Making
 */

const pace = 2.4; // units a millisecond, at reading pace
const shortest = 58; // ms of one hop
const longest = 330;
const slow = 800; // ms of what must not be overlooked: a watcher that is closed, a request that falls
const kept = 48; // copies that stand, at most
const remembered = 400; // copies that have gone: what is reported late does not bring them back
/** @type {{ [type: string]: string }} */
const unnamed = { BOOKMARK: "bookmark", ERROR: "error" }; // what is not about an object

/** @template K @param {Map<K, unknown>} map */
const first = (map) => /** @type {K} */ (map.keys().next().value);

export class Planner {
  /**
   * @param {Ground} scene
   * @param {object} on
   * @param {import("../log/fold.js").Infos} on.infos
   * @param {(r: { resource?: string }) => boolean} on.here is a record about what is on stage?
   * @param {(r: probe.Record) => boolean} on.matches is it about what is followed?
   * @param {string[]} on.writes
   */
  constructor(scene, { infos, here, matches, writes }) {
    this.scene = scene;
    this.infos = infos;
    this.here = here;
    this.matches = matches;
    this.router = new Router(scene, this, writes);
    this.orders = new Map([...infos.keys()].map((name, i) => [name, i])); // the table is in path order
    /** @type {Map<string, Move>} */
    this.tokens = new Map(); // by copy: where each copy of a change is
    /** @type {Map<string, number>} */
    this.gone = new Map(); // by copy: how far it had come
    /** @type {Plan | null} */
    this.air = null; // what is on its way
    /** @type {Making | null} */
    this.making = null;
  }

  /** @param {probe.Record} r */
  travels(r) { return this.here(r) && routes[r.point] !== undefined; }

  // ---- for routes

  // go adds to the plan at hand the way of a copy. Path is in points of the wide stage, and begins where the copy is if
  // it is not known. The two sides of a channel write down their moments in either order; on the path there is only
  // one, so a way to before where the copy has been adds none.
  /** @param {string} copy @param {Point[]} path @param {Look} [look] */
  go(copy, path, look = {}) {
    if (!this.making) return;
    const { r, moves } = this.making;
    if (this.scene.plain && !r.key) return; // a bookmark
    const order = this.orders.get(look.as ?? r.point) ?? 0;
    const before = moves.get(copy) ?? this.tokens.get(copy);
    if (r.key && !look.fresh && order < (before?.order ?? this.gone.get(copy) ?? 0)) return;
    const parent = before ?? moves.get(look.takes ?? "") ?? this.tokens.get(look.takes ?? "");
    const places = path.map((point) => placed(this.scene, point));
    const known = moves.get(copy);
    const points = known?.points ?? [parent && !parent.queue ? /** @type {Spot} */ ([parent.x, parent.y]) : places[0]];
    if (parent && parent !== known && !parent.queue) places.shift();
    points.push(...places);
    const [x, y] = endOf(points[points.length - 1]);
    const stands = { copy, points, order, x, y, at: endOf(path[path.length - 1]), takes: look.takes ?? known?.takes };
    moves.delete(copy);
    moves.set(copy, { ...this.looksOf(r, look, (before ?? parent)?.type), ...stands });
    this.making.slow ||= look.slow ?? false;
  }

  // looksOf is how the copy of a record looks, and where it stands when it has come.
  /** @param {probe.Record} r @param {Look} look @param {string | undefined} was */
  looksOf(r, look, was) {
    const info = this.infos.get(r.point);
    const type = r.type ?? was;
    const queue = info.op === "send" || info.op === "push" ? info.queue ?? "" : "";
    return {
      key: look.key ?? objectKey(r.key ?? ""), rv: r.rv ?? "0", owner: r.subject ?? "", point: r.point, seq: r.seq,
      queue, in: queue || (look.at ?? info.station), station: info.station, ends: look.ends ?? false,
      colour: look.colour ?? "moving", type, shape: shapeOf(type), followed: this.matches(r),
      departs: departs(info, r), change: changeOf(r), legs: [], length: 0,
      label: look.label ?? (r.key ? brief(shortKey(r.key), 18) : unnamed[r.type ?? ""] ?? ""),
    };
  }

  // end takes a copy off the stage: what it was made for is done.
  /** @param {string} copy */
  end(copy) { this.making?.ends.push(copy); }

  /** @param {string} copy @returns {Spot | undefined} */
  where(copy) { return (this.making?.moves.get(copy) ?? this.tokens.get(copy))?.at; }

  /** @param {probe.Record} r @param {string} queue @returns {fold.Queue | undefined} */
  queueOf(r, queue) { return this.making?.res?.subjects[r.subject ?? ""]?.queues[queue]; }

  // ---- hops

  // plan returns the ways of records, oldest first, as one hop. Res is the picture before them, if it matters where in
  // its queue a token is.
  /** @param {probe.Record[]} list @param {fold.Resource} [res] @returns {Plan} */
  plan(list, res) {
    const ours = list.filter(this.here);
    /** @type {Making} */
    const making = { moves: new Map(), ends: [], slow: false, r: list[0], res };
    this.making = making;
    for (const r of ours) {
      making.r = r;
      routes[r.point]?.(this.router, r);
    }
    this.making = null;
    const moves = [...making.moves.values()];
    for (const move of moves) {
      move.legs = legsOf(move.points);
      move.length = lengthOf(move.legs);
    }
    const length = Math.max(0, ...moves.map((move) => move.length));
    const ms = making.slow ? slow : length < 1 ? 0 : Math.min(longest, Math.max(shortest, length / pace));
    return { moves, ends: making.ends, seq: ours.at(-1)?.seq ?? 0, length, ms, t0: 0, t1: 0 };
  }

  // launch lets a plan run from t0 to t1: at its end, and not before, its tokens are where its records say. Up to the
  // record folded, they are folded already.
  /** @param {Plan} plan @param {number} t0 @param {number} t1 @param {number} folded */
  launch(plan, t0, t1, folded) {
    this.air = Object.assign(plan, { t0, t1 });
    for (const move of plan.moves) {
      move.departs &&= move.seq <= folded;
      this.tokens.delete(move.copy);
      if (move.takes) this.tokens.delete(move.takes);
    }
  }

  /** @param {string} copy @param {number} [upTo] */
  drop(copy, upTo = 0) {
    const order = Math.max(upTo, this.tokens.get(copy)?.order ?? this.gone.get(copy) ?? 0);
    this.tokens.delete(copy);
    this.gone.delete(copy);
    this.gone.set(copy, order);
    if (this.gone.size > remembered) this.gone.delete(first(this.gone));
  }

  // land brings a plan to its end: its tokens stand, or leave the stage.
  /** @param {Plan} plan */
  land(plan) {
    if (plan === this.air) this.air = null;
    for (const move of plan.moves) {
      if (move.takes) this.drop(move.takes, move.order); // what led there may be reported later
      this.tokens.delete(move.copy);
      this.tokens.set(move.copy, move);
      if (move.ends) this.drop(move.copy);
    }
    for (const copy of plan.ends) this.drop(copy);
    while (this.tokens.size > kept) this.drop(first(this.tokens));
  }

  // closed takes off the stage what was in the hands of those who have gone.
  /** @param {probe.Record[]} list */
  closed(list) {
    for (const r of list) {
      if (this.infos.get(r.point).op !== "close" && r.point !== "StreamEnded") continue;
      for (const t of [...this.tokens.values()]) if (t.owner === r.subject) this.drop(t.copy);
    }
  }

  // stand puts on the stage what records had in their hands, and nothing of their ways.
  /** @param {probe.Record[]} list */
  stand(list) {
    for (const r of list) this.land(this.plan([r]));
  }

  // pass lets what is on the stage go on at once: its change is not told any more.
  /** @param {probe.Record[]} list */
  pass(list) {
    const there = new Set([...this.tokens.values()].map((t) => t.change));
    if (there.size > 0) this.stand(list.filter((r) => there.has(changeOf(r))));
  }

  clear() {
    this.air = null;
    this.tokens.clear();
    this.gone.clear();
  }

  // ---- what is where

  // under reports whether a copy of a change has yet to go on by itself: it is not in a queue, and has not come to its
  // end.
  /** @param {string} change */
  under(change) { return [...this.tokens.values()].some((t) => t.change === change && !t.queue); }

  // standing is every token that no pipe draws and that does not move.
  get standing() { return [...this.tokens.values()].filter((t) => !t.queue); }

  get moves() { return this.air?.moves ?? []; } // that are on their way

  // travelling is what is on its way, in whole units.
  travelling() {
    const whole = (/** @type {Spot} */ at) => at.map(Math.round);
    return this.moves.map((m) => ({
      key: m.key, rv: m.rv, owner: m.owner, from: whole(endOf(m.points[0])), to: whole([m.x, m.y]),
      station: m.station, point: m.point, seq: m.seq, departs: m.departs,
    }));
  }

  // ahead returns the ways to their next places of what stands with the stage: of from, that is, every copy by its
  // name, what the records that come say of it. From one place copies may go several ways.
  /** @param {probe.Record[]} list @param {fold.Resource | undefined} res @param {Map<string, Move>} from */
  ahead(list, res, from) {
    const ways = [];
    const known = new Set();
    for (const r of from.size > 0 ? list.filter(({ seq }) => !this.air || seq > this.air.seq) : []) {
      if (!routes[r.point]) continue;
      for (const m of this.plan([r], res).moves) {
        const of = from.get(m.copy) ?? from.get(m.takes ?? "") ?? [...from.values()].find((t) => splits(t, m));
        if (!of || known.has(m.copy)) continue;
        const legs = legsOf([[of.x, of.y], ...m.points.filter((_, i) => i > 0 || of.queue)]);
        if (lengthOf(legs) < 1) continue;
        ways.push({ ...m, legs, length: lengthOf(legs), done: 0, of });
        known.add(m.copy);
        from.delete(m.copy);
      }
    }
    return ways;
  }
}

export const near = 26; // units: a copy that is so near to its next place is there

// splits reports whether a way begins where a copy of its change stands, of which it takes a copy.
/** @param {Move} t @param {Move} m */
function splits(t, m) {
  const [x, y] = endOf(m.points[0]);
  return (t.change === m.change && Math.abs(t.x - x) < near && Math.abs(t.y - y) < near)
    || (t.point === "HandlerCalled" && m.point === "WorkAdded" && t.key === m.key && t.owner.startsWith(m.owner));
}

// spotOn is where a token is that has come so far on its way.
/** @param {Move} move @param {number} done */
export const spotOn = (move, done) => along(move.legs, done);
