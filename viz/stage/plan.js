// The planner turns records into hops: a hop shows a few records of one change. A token's record is folded when the
// token arrives or, if the record is a departure, when the token sets out.

import { objectKey } from "../log/fold.js";
import { keep } from "../log/tape.js";
import { endOf, legsOf, lengthOf, placed } from "./ground.js";
import { changeOf, departs } from "./hops.js";
import { Router, routes } from "./routes.js";
import { brief, shapeOf, shortKey } from "./tokens.js";

/**
 * @typedef {import("./ground.js").Spot} Spot
 * @typedef {import("./ground.js").Point} Point
 * @typedef {import("./ground.js").Leg} Leg
 * @typedef {import("./ground.js").Layout & Scenery} Ground the part of the stage that a plan uses
 * @typedef {object} Scenery
 * @property {stage.Geometry} geometry
 * @property {boolean} [stale] whether it has to be drawn again
 * @property {boolean} plain whether this is the first view, which draws only one of several copies
 * @property {string} resource the resource on stage
 * @property {{ capacity: number, start: number, newest?: string, cells?: { rv: string, pos: number }[] }} ring
 * @property {import("./places.js").Places} places
 * @property {string} informer
 * @property {Set<string>} serving
 * @property {{ members: { subject: string }[], names?: Map<string, string> } | null} story
 * @typedef {object} Look how a way is planned and drawn
 * @property {string} [colour]
 * @property {string} [label] instead of the object's name
 * @property {string} [key]
 * @property {string} [takes] the copy from which this one is made
 * @property {probe.PointName} [as] the point whose rank in the path's order applies
 * @property {string} [at] the station at its end
 * @property {boolean} [ends] the copy leaves the stage at its end
 * @property {boolean} [slow] the viewer must not overlook it
 * @property {boolean} [fresh] the copy may take the way again
 * @typedef {object} Move the way of a copy, and its state at the end
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
 * @property {Spot} at its end, on the wide stage
 * @property {string} queue the queue at the end, "" at a station
 * @property {string} in the queue or the station at the end
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
 * @property {number} seq the seq of its last record
 * @property {number} length
 * @property {number} ms its duration at reading pace
 * @property {number} t0 the start; launch sets it
 * @property {number} t1
 * @typedef {{ moves: Map<string, Move>, ends: string[], slow: boolean, r: probe.Record, res?: fold.Resource }} Making
 */

const pace = 2.4; // units a millisecond, at reading pace
const shortest = 58; // the minimum ms of a hop with a length
const longest = 330;
const slow = 800; // ms of a hop that the viewer must not overlook, such as a closed watcher or a refused request
const kept = 48; // the maximum number of copies at rest
const remembered = 400; // the maximum number of remembered departed copies, which a late record must not bring back
/** @type {{ [type: string]: string }} */
const unnamed = { BOOKMARK: "bookmark", ERROR: "error" }; // events that are not about an object

export class Planner {
  /**
   * @param {Ground} scene
   * @param {object} on
   * @param {import("../log/fold.js").Infos} on.infos
   * @param {(r: { resource?: string }) => boolean} on.here whether a record is about the resource on stage
   * @param {(r: probe.Record) => boolean} on.matches whether a record is about the followed object
   * @param {string[]} on.writes
   */
  constructor(scene, { infos, here, matches, writes }) {
    this.scene = scene;
    this.infos = infos;
    this.here = here;
    this.matches = matches;
    this.router = new Router(scene, this, writes);
    this.orders = new Map([...infos.keys()].map((name, i) => [name, i])); // each point's index on the path
    /** @type {Map<string, Move>} */
    this.tokens = new Map(); // the copies at rest, each with the move that brought it there
    /** @type {Map<string, number>} */
    this.gone = new Map(); // by departed copy: the index on the path that it had reached
    /** @type {Plan | null} */
    this.air = null; // the running plan
    /** @type {Making | null} */
    this.making = null;
    /** @type {(plan: Plan) => void} */
    this.landed = () => {}; // called when a plan has ended
  }

  /** @param {probe.Record} r */
  travels(r) { return this.here(r) && routes[r.point] !== undefined; }

  // ---- called by routes.js

  // go adds a copy's way. A copy at rest at a station sets out there, not at the first point. Unless fresh, go ignores
  // a way to a point before the one that the copy has reached: the two sides of a channel may report in either order.
  /** @param {string} copy @param {Point[]} path @param {Look} [look] */
  go(copy, path, look = {}) {
    if (!this.making) return;
    const { r, moves } = this.making;
    if (this.scene.plain && !r.key) return; // the first view has no bookmarks
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

  // looksOf returns the look of a record's copy, and the copy's place at the end of its way.
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
      label: look.label ?? this.scene.story?.names?.get(r.rv ?? "") // a story's name for the version
        ?? (r.key ? brief(shortKey(r.key), this.scene.tall ? 12 : 18) : unnamed[r.type ?? ""] ?? ""),
    };
  }

  /** @param {string} copy */
  end(copy) { this.making?.ends.push(copy); }

  /** @param {string} copy @returns {Spot | undefined} */
  where(copy) { return (this.making?.moves.get(copy) ?? this.tokens.get(copy))?.at; }

  /** @param {probe.Record} r @param {string} queue @returns {fold.Queue | undefined} */
  queueOf(r, queue) { return this.making?.res?.subjects[r.subject ?? ""]?.queues[queue]; }

  // ---- hops

  // plan returns the ways of records, oldest first, as one hop. res is the state for the tokens' places in queues.
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

  // launch runs a plan from t0 to t1, when its tokens arrive. folded is the seq of the last record to fold at t0.
  /** @param {Plan} plan @param {number} t0 @param {number} t1 @param {number} folded */
  launch(plan, t0, t1, folded) {
    this.air = Object.assign(plan, { t0, t1 });
    this.scene.stale = true; // etcd's revision may have grown
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
    keep(this.gone, copy, order, remembered);
  }

  // land ends a plan: its tokens rest, or leave the stage.
  /** @param {Plan} plan */
  land(plan) {
    if (plan === this.air) this.air = null;
    this.landed(plan);
    for (const move of plan.moves) {
      if (move.takes) this.drop(move.takes, move.order); // an earlier step may be reported later
      this.tokens.delete(move.copy);
      this.tokens.set(move.copy, move);
      if (move.ends) this.drop(move.copy);
    }
    for (const copy of plan.ends) this.drop(copy);
    for (const copy of [...this.tokens.keys()].slice(0, -kept)) this.drop(copy);
  }

  // closed takes the copies of closed subjects and of ended streams off the stage.
  /** @param {probe.Record[]} list */
  closed(list) {
    for (const r of list) {
      if (this.infos.get(r.point).op !== "close" && r.point !== "StreamEnded") continue;
      for (const t of [...this.tokens.values()]) if (t.owner === r.subject) this.drop(t.copy);
    }
  }

  // stand puts the tokens of records on the stage at once, without their ways.
  /** @param {probe.Record[]} list */
  stand(list) {
    for (const r of list) this.land(this.plan([r]));
  }

  // pass moves the tokens on stage at once to their places after records that are not shown hop by hop.
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

  // ---- positions

  // under reports whether a change is under way: one of its copies rests at a station, and not in a queue.
  /** @param {string} change */
  under(change) { return [...this.tokens.values()].some((t) => t.change === change && !t.queue); }

  // standing returns the resting tokens that are in no queue.
  get standing() { return [...this.tokens.values()].filter((t) => !t.queue); }

  get moves() { return this.air?.moves ?? []; }

  travelling() {
    const whole = (/** @type {Spot} */ at) => at.map(Math.round);
    return this.moves.map((m) => ({
      key: m.key, rv: m.rv, owner: m.owner, from: whole(endOf(m.points[0])), to: whole([m.x, m.y]),
      station: m.station, point: m.point, seq: m.seq, departs: m.departs,
    }));
  }

  // ahead returns the ways of the tokens in from that list's records move, and deletes these tokens from the map.
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

export const near = 26; // units; a copy this near to its next place counts as arrived

// splits reports whether way m begins where token t of its change rests, or leads from t's handler to the workqueue.
/** @param {Move} t @param {Move} m */
function splits(t, m) {
  const [x, y] = endOf(m.points[0]);
  return (t.change === m.change && Math.abs(t.x - x) < near && Math.abs(t.y - y) < near)
    || (t.point === "HandlerCalled" && m.point === "WorkAdded" && t.key === m.key && t.owner.startsWith(m.owner));
}
