// Routes: where each record takes its change. One entry a point; what is not here does not travel. Points are those of
// the wide stage (layout.go): a way follows the rails. Nothing here knows the document.

import { laterRV, objectKey } from "../log/fold.js";
import { cellOf, leftward, ringSpot } from "./ground.js";
import { hangsOn } from "./places.js";
import { brief, shortKey } from "./tokens.js";

/**
 * @typedef {import("./ground.js").Spot} Spot
 * @typedef {import("./ground.js").Point} Point
 * @typedef {import("./ground.js").Pipe} Pipe
 * @typedef {import("./places.js").Kind} Kind
 * @typedef {import("./plan.js").Ground} Ground
 * @typedef {import("./plan.js").Look} Look
 * @typedef {import("./plan.js").Planner} Planner
 * @typedef {Point | false | null | undefined} Maybe a point of a lane that is not drawn is none
 * @typedef {(s: Router, r: probe.Record) => void} Step
 */

// A copy of a change is named by its version, its object and its branch: the whole one, the one for a subject, or the
// one for the informer that is drawn. A key in a workqueue has no version.
/** @param {probe.Record} r @param {string} [branch] */
const copy = (r, branch = "") => `${r.rv ?? ""}|${objectKey(r.key ?? "")}|${branch}`;
/** @param {probe.Record} r */
const mine = (r) => copy(r, r.subject);
/** @param {probe.Record} r */
const inside = (r) => copy(r, "informer");
/** @param {probe.Record} r */
const work = (r) => `work|${objectKey(r.key ?? "")}|${r.subject}`;

const alarm = { colour: "anomaly", ends: true, slow: true, fresh: true };

// A Router says where things are for a record, and hands its ways to the plan.
export class Router {
  /**
   * @param {Ground} scene @param {Planner} plan
   * @param {string[]} writes the methods of requests that change something
   */
  constructor(scene, plan, writes) {
    this.scene = scene;
    this.plan = plan;
    this.writes = writes;
    this.g = scene.geometry;
    this.a = scene.geometry.anchors;
    this.turns = scene.geometry.turns;
    /** @type {Spot} */
    this.ringIn = [this.g.ring.x - this.g.ring.out - 8, this.a["etcd3-out"][1]];
  }

  // go adds the way of a copy, as far as it is drawn.
  /** @param {string} copy @param {Maybe[]} path @param {Look} [look] */
  go(copy, path, look) {
    this.plan.go(copy, path.filter((point) => point !== null && point !== undefined && point !== false), look);
  }

  /** @param {Kind} kind @param {probe.Record} r */
  laneOf(kind, r) { return this.scene.places[kind].lanes.get(r.subject ?? ""); }

  // spot is a point of the lane of the record's subject; null: nothing is drawn of it.
  /** @param {Kind} kind @param {probe.Record} r @param {number} x @param {number} [y] @returns {Spot | null} */
  spot(kind, r, x, y = this.g.laneAxis) {
    const lane = this.laneOf(kind, r);
    if (!lane?.shown) return null;
    const hidden = this.scene.plain && kind === "workqueues" && lane.index > 0; // of a client that is not drawn
    return hidden ? null : [lane.at[0] + x, lane.at[1] + y];
  }

  // cell is the place of the n-th token of a queue, inlet and outlet are its ends; of a lane's queue within its lane.
  /** @param {probe.Record} r @param {Pipe} name @param {number} [n] */
  cell(r, name, n) {
    const { len = 0, cap = 0 } = this.plan.queueOf(r, name) ?? {};
    return cellOf(this.g.pipes[name], n ?? len, cap <= this.g.maxSlots ? cap : 0, leftward.has(name));
  }

  /** @param {Pipe} name @param {boolean} right @returns {Spot} */
  end(name, right) {
    const { X, Y, W, H } = this.g.pipes[name];
    return [right ? X + W : X, Y + H / 2];
  }

  /** @param {Pipe} name */
  inlet(name) { return this.end(name, leftward.has(name)); }
  /** @param {Pipe} name */
  outlet(name) { return this.end(name, !leftward.has(name)); }

  // sent goes into a queue of a lane, taken out of it.
  /**
   * @param {Kind} kind @param {probe.Record} r @param {Pipe} name @param {Maybe[]} from
   * @param {Look & { copy?: string }} [look]
   */
  sent(kind, r, name, from, look) {
    if (!this.spot(kind, r, 0)) return;
    this.go(look?.copy ?? mine(r), [...from, this.spot(kind, r, ...this.inlet(name)),
      this.spot(kind, r, ...this.cell(r, name))], look);
  }

  /**
   * @param {Kind} kind @param {probe.Record} r @param {Pipe} name @param {Spot} to
   * @param {Look & { copy?: string }} [look]
   */
  taken(kind, r, name, to, look) {
    if (!this.spot(kind, r, 0)) return;
    this.go(look?.copy ?? mine(r), [this.spot(kind, r, ...this.cell(r, name, 0)),
      this.spot(kind, r, ...this.outlet(name)), this.spot(kind, r, ...to)], look);
  }

  /** @param {probe.Record} r */
  keyOf(r) { return this.scene.plain ? undefined : `key ${brief(shortKey(r.key ?? ""), 14)}`; }
  /** @param {probe.Record} r */
  drawn(r) { return r.subject === this.scene.informer; } // of several informers one is
  /** @param {probe.Record} r */
  stored(r) { return Boolean(r.key) && this.drawn(r); }
  get served() { return [...this.scene.serving][0] ?? ""; } // the watcher whose client is the informer that is drawn

  // rim leads along the ring from one point to another, the shorter way around.
  /** @param {Spot} from @param {Spot} to @returns {Point[]} */
  rim(from, to) {
    const { x, y, out, in: inner } = this.g.ring;
    const [begin, finish] = [from, to].map((p) => Math.atan2(p[1] - y, p[0] - x));
    let turn = finish - begin;
    if (Math.abs(turn) > Math.PI) turn -= Math.sign(turn) * 2 * Math.PI;
    const n = Math.max(1, Math.ceil(Math.abs(turn) / 0.1));
    const r = (out + inner) / 2;
    return Array.from({ length: n + 1 }, (_, i) => [
      x + Math.cos(begin + (turn * i) / n) * r, y + Math.sin(begin + (turn * i) / n) * r, "straight",
    ]);
  }

  /** @returns {Spot} */
  get ringOut() { return [this.g.ring.x + (this.scene.tall ? 4 - this.g.ring.out : this.g.ring.out), this.g.ring.y]; }

  /** @returns {Spot} */
  get ringDoor() {
    const { x, y, out } = this.g.ring;
    return this.scene.tall ? [x + 40, y - out] : [x - out, y + (this.scene.plain ? 0 : 40)];
  }

  /** @returns {Spot} */
  get storeOut() {
    const { X, Y, W, H } = this.g.boxes.store;
    return this.scene.tall ? [this.a.store[0], Y + H] : [X + W, this.g.serverAxis];
  }

  // slideOff lets a request that asks for what the ring no longer holds fall from its oldest place into the tray.
  /** @param {probe.Record} r */
  slideOff(r) {
    const { ring } = this.scene;
    const from = ringSpot(this.g.ring, ring, ring.start);
    this.go(`gone|${r.seq}`, [from, [...this.turns.tray, "straight"]], { ...alarm, label: "410" });
  }

  // handed is the way of a notification to its listener, whose box is shown, and what it is a copy of.
  /** @param {probe.Record} r @returns {[way: Maybe[], look?: Look]} */
  handed(r) {
    const to = this.spot("listeners", r, this.g.stops.handed);
    if (!hangsOn(this.scene, this.laneOf("listeners", r)?.subject) || this.plan.where(mine(r))) return [[to]];
    const { a, g } = this;
    /** @type {Maybe[]} */
    const way = [a.processor, [g.boxes.processor.X, g.clientAxis], this.spot("listeners", r, this.g.stops.enters), to];
    const look = { takes: inside(r) };
    return this.plan.where(inside(r)) ? [[a.indexer, this.turns["processor-in"], ...way], look] : [way, look];
  }

  // leave ends what stands at stations.
  /** @param {probe.Station[]} stations */
  leave(...stations) {
    for (const t of this.plan.tokens.values()) {
      if (!t.queue && stations.some((each) => each === t.in)) this.plan.end(t.copy);
    }
  }

  // leaves is where in its lane a copy leaves the server: before the flag, if a story's client has one.
  get leaves() { return this.g.stops[(this.scene.story?.members.length ?? 0) > 0 ? "flagged" : "leaves"]; }
}

/** @type {{ [point in probe.PointName]?: Step }} */
export const routes = {
  // What a controller writes goes up the loop, if a worker of its has the key.
  RequestReceived(s, r) {
    const { method = "", path = "" } = r.texts ?? {};
    if (!s.writes.includes(method)) return;
    const parts = path.split("/namespaces/")[1]?.split("/") ?? [];
    const key = `${parts[0]}/${parts[2]}`;
    const hand = [...s.plan.tokens.values()].find((t) => t.copy.startsWith("work|") && !t.queue && t.key === key);
    if (!hand) return;
    const { loopX, clientAxis, serverAxis } = s.g;
    const up = /** @type {Point[]} */ ([[loopX, clientAxis - 14, "straight"], [loopX, serverAxis + 14],
      [loopX + 14, serverAxis, "straight"]]);
    const look = { ends: true, fresh: true, label: hand.label, key };
    s.go(hand.copy, [hand.at, s.turns["loop-in"], ...up, s.a.http], look);
  },
  // Its writer may tell of it long after etcd's watch did: then it has left etcd.
  TxnCommitted(s, r) {
    if (laterRV(r.rv ?? "0", s.scene.ring.newest ?? "0")) s.go(copy(r), [s.a.http, s.a.etcd]);
  },
  Etcd3IncomingSent: (s, r) => s.go(copy(r), [
    s.a.etcd, s.turns["etcd-out"], s.inlet("etcd3-incoming"), s.cell(r, "etcd3-incoming"),
  ]),
  Etcd3IncomingReceived: (s, r) => s.go(copy(r), [
    s.cell(r, "etcd3-incoming", 0), s.outlet("etcd3-incoming"), [...s.g.bends.decode, ...s.a.decode],
  ], { ends: !r.key }),
  Etcd3ResultSent: (s, r) => s.go(copy(r), [
    s.a.decode, [...s.g.bends.decoded, ...s.inlet("etcd3-result")], s.cell(r, "etcd3-result"),
  ]),
  ReflectorReceived(s, r) {
    if (r.subject === "cacher") {
      const way = [s.cell(r, "etcd3-result", 0), s.outlet("etcd3-result"), s.ringIn];
      return s.go(copy(r), way, { as: "Etcd3ResultSent", at: "etcd3", ends: !r.key });
    }
    const { wireX, clientAxis } = s.g;
    if (!s.drawn(r)) return;
    // "last seen" is what a bookmark is for
    s.go(inside(r), [s.a["wire-client"], [wireX - 14, clientAxis, "straight"], s.a.reflector], { ends: !r.key });
  },
  CacheReplaced: (s) => s.leave("etcd3"), // by a list: no change of it enters the ring
  RingAppend(s, r) {
    const capacity = r.args?.[2] ?? 0;
    const slot = ringSpot(s.g.ring, { capacity: r.args?.[2] ?? 1 }, (r.args?.[1] ?? 1) - 1);
    // its cell has the version in it
    const beside = capacity <= 32 ? /** @type {Point} */ ([...slot, "straight"]) : null;
    s.go(copy(r), [s.ringIn, ...s.rim(s.ringDoor, slot), beside]);
  },
  StoreUpdate(s, r) {
    const from = s.plan.where(copy(r)) ?? s.ringOut;
    s.go(copy(r), [from, ...s.rim(from, s.ringOut), s.ringOut, s.a.store]);
  },
  IncomingSent: (s, r) => s.go(copy(r), [s.a.store, s.storeOut, s.inlet("incoming"), s.cell(r, "incoming")]),
  IncomingReceived: (s, r) => s.go(copy(r), [s.cell(r, "incoming", 0), s.outlet("incoming"), s.a.dispatch],
    { at: "dispatch", ends: !r.key }),
  InputSent(s, r) {
    const from = [s.a.dispatch, s.turns.hub];
    const rest = copy(r, "more"); // one for all that have no lane of their own
    if (s.spot("watchers", r, 0)) s.sent("watchers", r, "input", from);
    else if (!s.scene.plain && !s.plan.where(rest)) {
      s.go(rest, [...from, s.turns.rest, s.turns["rest-end"]], { ends: true, fresh: true });
    }
  },
  DispatchFinished: (s, r) => s.plan.end(copy(r)),
  InputReceived(s, r) { // what its client has had is passed over, and no record says so
    const { began = "0" } = s.laneOf("watchers", r)?.subject ?? {};
    s.taken("watchers", r, "input", [s.g.nodes.process, s.g.laneAxis], { ends: !laterRV(r.rv ?? "0", began) });
  },
  WatcherFiltered(s, r) {
    const [from, to] = [0, 18].map((off) => s.spot("watchers", r, s.g.nodes.process, s.g.laneAxis + off));
    if (from && to) s.go(mine(r), [from, [...to, "straight"]], { ends: true });
  },
  ResultSent: (s, r) => s.sent("watchers", r, "result", [s.spot("watchers", r, s.g.nodes.process)]),
  ResultReceived: (s, r) => s.taken("watchers", r, "result", [s.leaves, s.g.laneAxis]),
  FrameWritten(s, r) {
    if (r.type === "ERROR") s.slideOff(r);
    const { scene, g } = s;
    const from = s.spot("watchers", r, s.leaves);
    if (!from) return;
    if (!scene.serving.has(r.subject ?? "")) return s.go(mine(r), [from, [scene.edges.end, from[1]]], { ends: true });
    const flags = g.boxes.watcher.Y + (scene.story?.members.length ?? 0) * g.lane.height; // it stands below them
    const wires = [...s.plan.tokens.values()].filter((t) => t.in === "wire").length;
    s.go(mine(r), [from, [scene.edges.wireX, Math.max(from[1], flags) + 12 + 26 * wires, "straight"]]);
  },
  FrameDecoded(s, r) { // of another client it left the picture at the edge
    if (!s.drawn(r)) return;
    const takes = s.served && copy(r, s.served);
    const above = !s.plan.where(copy(r, s.served)) && s.turns["wire-above"];
    s.go(inside(r), [above, s.a.wire, s.turns["wire-below"]], { takes });
  },
  FIFOAdded(s, r) {
    if (s.stored(r)) s.go(inside(r), [s.a.reflector, s.inlet("fifo"), s.cell(r, "fifo")]);
    else if (s.drawn(r)) s.leave("reflector"); // with all that it has received
  },
  FIFOPopped(s, r) {
    if (!s.stored(r)) return;
    s.leave("fifo", "indexer"); // it takes the next one when it is done with the last
    s.go(inside(r), [s.cell(r, "fifo", 0), s.outlet("fifo"), s.turns["indexer-in"]]);
  },
  IndexerUpdated(s, r) {
    if (s.stored(r)) s.go(inside(r), [s.turns["indexer-in"], s.a.indexer]);
  },
  Distributed(s, r) {
    if (s.drawn(r) && !((r.args?.[0] ?? 0) > 0)) s.plan.end(inside(r));
  },
  // Distributed is written down when every listener has it, so the way to the processor is drawn with the first.
  AddReceived(s, r) { // it is next
    if (!s.spot("listeners", r, 0)) return;
    const [way, look] = s.handed(r);
    s.go(mine(r), [...way, s.spot("listeners", r, s.g.stops.taken)], look);
  },
  PendingPushed(s, r) {
    if (s.spot("listeners", r, 0)) s.sent("listeners", r, "pending", ...s.handed(r));
  },
  PendingPopped: (s, r) => s.taken("listeners", r, "pending", [s.g.stops.taken, s.g.laneAxis]),
  HandlerCalled(s, r) {
    const to = s.spot("listeners", r, 0);
    if (!to) return;
    const beside = s.scene.tall ? 106 : s.scene.plain ? -50 : -10; // the words
    const way = [s.spot("listeners", r, s.g.stops.handed), s.spot("listeners", r, s.g.stops.called)];
    s.go(mine(r), [...way, [s.g.boxes.handler.X + beside, to[1]]], { colour: "delivered" });
  },
  HandlerReturned: (s, r) => s.plan.end(mine(r)),
  WorkAdded(s, r) {
    if ((r.args?.[0] ?? 0) <= (s.plan.queueOf(r, "workqueue")?.len ?? 0)) return; // it was there already
    // Where its owner watches by itself, the key did not come through these handlers.
    const own = s.laneOf("workqueues", r)?.subject.counts.ReflectorWatching;
    const from = own ? [] : [s.spot("workqueues", r, s.g.stops.keys)];
    s.sent("workqueues", r, "workqueue", from, { copy: work(r), fresh: true, label: s.keyOf(r) });
  },
  WorkGot: (s, r) => s.taken(
    "workqueues", r, "workqueue", [s.g.stops.worked, s.g.laneAxis], { copy: work(r), fresh: true, label: s.keyOf(r) },
  ),
  WorkDone: (s, r) => s.plan.end(work(r)),
  WatcherForced(s, r) {
    const { X, Y } = s.g.boxes.watcher;
    const { room, height } = s.g.lane;
    // without a place of its own it is one of those that share the last
    const from = s.spot("watchers", r, 0) ?? /** @type {Spot} */ ([X, Y + (room - 1) * height + s.g.laneAxis]);
    s.go(`forced|${r.seq}`, [from, [s.scene.edges.right, from[1]]], { ...alarm, label: "closed" });
  },
  RequestAnswered(s, r) {
    if (r.args?.[0] === 410) s.slideOff(r);
  },
};
