// Routes, by probe point: the path on which a record's change moves. A record whose point has no route moves nothing.

import { agentOf, laterRV, objectKey } from "../log/fold.js";
import { cellOf, leftward, ringSpot, stepOf } from "./ground.js";
import { hangsOn, nameOf, programs } from "./places.js";
import { brief, shortKey } from "./tokens.js";

/**
 * @typedef {import("./ground.js").Spot} Spot
 * @typedef {import("./ground.js").Point} Point
 * @typedef {import("./ground.js").Pipe} Pipe
 * @typedef {import("./places.js").Kind} Kind
 * @typedef {import("./plan.js").Ground} Ground
 * @typedef {import("./plan.js").Look} Look
 * @typedef {import("./plan.js").Planner} Planner
 * @typedef {Point | false | null | undefined} Maybe null, undefined or false for a point to leave out
 * @typedef {(s: Router, r: probe.Record) => void} Step
 */

// copy returns a copy's name: the change's version, its object and a branch, which is "" for the original, a subject,
// "informer" for the informer on stage, or "more" for all watchers without a lane. work names a workqueue's key.
/** @param {probe.Record} r @param {string} [branch] */
const copy = (r, branch = "") => `${r.rv ?? ""}|${objectKey(r.key ?? "")}|${branch}`;
/** @param {probe.Record} r */
const mine = (r) => copy(r, r.subject);
/** @param {probe.Record} r */
const inside = (r) => copy(r, "informer");
/** @param {probe.Record} r */
const work = (r) => `work|${objectKey(r.key ?? "")}|${r.subject}`;

// ask returns the name of a request's token. The response removes the token.
/** @param {probe.Record} r */
const ask = (r) => `ask|${r.texts?.method} ${r.texts?.path}?${r.texts?.query ?? ""}`;
// begins reports whether a request is about an object. A request that creates an object may lack the name.
/** @param {string} asked @param {string} key */
const begins = (asked, key) => asked === key || (asked.endsWith("/") && key.startsWith(asked));

/** @param {Spot} at @returns {Point} */
const straight = (at) => [...at, "straight"];

const alarm = { colour: "anomaly", ends: true, slow: true, fresh: true };

// A Router has what routes need: the places of a record's way, and go, which adds the way to the plan.
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
  }

  // go adds a copy's way to the plan, without the points that are not drawn.
  /** @param {string} copy @param {Maybe[]} path @param {Look} [look] */
  go(copy, path, look) {
    this.plan.go(copy, path.filter((point) => point !== null && point !== undefined && point !== false), look);
  }

  /** @param {Kind} kind @param {probe.Record} r */
  laneOf(kind, r) { return this.scene.places[kind].lanes.get(r.subject ?? ""); }

  // spot returns a point in the lane of the record's subject, or null if the lane is not drawn.
  /** @param {Kind} kind @param {probe.Record} r @param {number} x @param {number} [y] @returns {Spot | null} */
  spot(kind, r, x, y = this.g.laneAxis) {
    const lane = this.laneOf(kind, r);
    if (!lane?.shown) return null;
    const hidden = this.scene.plain && kind === "workqueues" && lane.index > 0; // its client is not drawn
    return hidden ? null : [lane.at[0] + x, lane.at[1] + y];
  }

  // cell returns the spot of a queue's n-th token, by default of the next to enter. It is relative to the lane, if any.
  /** @param {probe.Record} r @param {Pipe} name @param {number} [n] */
  cell(r, name, n) {
    const { len = 0, cap = 0 } = this.plan.queueOf(r, name) ?? {};
    const pipe = this.g.pipes[name];
    return cellOf(pipe, n ?? len, leftward.has(name), stepOf(pipe, len + 1, cap <= this.g.maxSlots ? cap : 0));
  }

  /** @param {Pipe} name @param {boolean} right @returns {Spot} */
  end(name, right) {
    const { X, Y, W, H } = this.g.pipes[name];
    return [right ? X + W : X, Y + H / 2];
  }

  /** @param {Pipe} name */
  inlet(name) { return this.end(name, leftward.has(name)); } // where tokens enter
  /** @param {Pipe} name */
  outlet(name) { return this.end(name, !leftward.has(name)); } // where tokens leave

  // sent moves a copy into a queue of a drawn lane. taken moves a copy out of one.
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
  drawn(r) { return r.subject === this.scene.informer; } // only one of several informers is drawn
  /** @param {probe.Record} r */
  stored(r) { return Boolean(r.key) && this.drawn(r); }
  get served() { return [...this.scene.serving][0] ?? ""; } // the first watcher of the informer on stage

  // rim returns the way along the ring between two points, in the shorter direction.
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
  get ringOut() { return [this.g.ring.x + this.g.ring.out, this.g.ring.y]; }

  /** @returns {Spot} */
  get ringDoor() {
    const { x, y, out } = this.g.ring;
    return this.scene.tall ? [x + 31, y + 6 - out] : [x - out, y];
  }

  // begets reports whether to draw a write to another resource: if namespaced, not in programs, and from a drawn lane.
  /** @param {string} agent @param {string} path */
  begets(agent, path) {
    const { lanes } = this.scene.places.watchers;
    return path.includes("/namespaces/") && !programs.test(path)
      && [...lanes.values()].some(({ shown, subject }) => shown && nameOf(subject) === agent);
  }

  // asks returns the way of a client's request to the server, and the workqueue key that caused it, if any.
  /** @param {string} agent @param {string} key @returns {[way: Point[], takes?: string]} */
  asks(agent, key) {
    const { turns: t, g, scene: { places: { watchers: { lanes } }, serving } } = this;
    const hand = [...this.plan.tokens.values()].find((each) =>
      each.copy.startsWith("work|") && !each.queue && each.key === key);
    const lane = [...lanes.values()].find((each) => each.shown && nameOf(each.subject) === agent);
    if (hand || (lane && serving.has(lane.id))) {
      /** @type {Spot[]} */
      const up = [t["loop-in"], t["loop-low"], t["loop-high"], t["loop-out"], t["http-in"]];
      return [[hand?.at ?? this.a.workqueue, ...up.map(straight)], hand?.copy];
    }
    /** @type {Spot} */
    const from = lane ? [lane.at[0] + g.guest.X + g.guest.W, lane.at[1] + g.laneAxis] : this.a.visitor;
    /** @type {Spot[]} */
    const around = [[g.askX, from[1]], t["ask-up"], t["ask-top"], t["ask-end"], t["ask-down"], t["http-top"]];
    return [[from, ...around.map(straight)]];
  }

  get toEtcd() { return [this.a.http, this.turns["http-door"], this.turns["etcd-door"], this.a.etcd]; }

  /** @param {probe.Record} r */
  asked(r) {
    const key = objectKey(r.key ?? "");
    return [...this.plan.tokens.values()].findLast((t) => t.copy.startsWith("ask|") && begins(t.key, key));
  }

  // slideOff moves a 410 from the oldest slot into #ring-tray: the version that the client asked for has left the ring.
  /** @param {probe.Record} r */
  slideOff(r) {
    const { ring } = this.scene;
    const from = ringSpot(this.g.ring, ring, ring.start);
    this.go(`gone|${r.seq}`, [from, [...this.turns.tray, "straight"]], { ...alarm, label: "410" });
  }

  // handed returns the way of a notification to its listener, and a look with the copy that the notification replaces.
  /** @param {probe.Record} r @returns {[way: Maybe[], look?: Look]} */
  handed(r) {
    const to = this.spot("listeners", r, this.g.stops.handed);
    if (!hangsOn(this.scene, this.laneOf("listeners", r)?.subject) || this.plan.where(mine(r))) return [[to]];
    const { a, g } = this;
    /** @type {Maybe[]} */
    const way = [a.processor, this.turns["processor-out"], this.spot("listeners", r, g.stops.enters), to];
    const look = { takes: inside(r) };
    return this.plan.where(inside(r)) ? [[a.indexer, this.turns["processor-in"], ...way], look] : [way, look];
  }

  /** @param {probe.Station[]} stations */
  leave(...stations) {
    for (const t of this.plan.tokens.values()) {
      if (!t.queue && stations.some((each) => each === t.in)) this.plan.end(t.copy);
    }
  }
}

/** @type {{ [point in probe.PointName]?: Step }} */
export const routes = {
  // The token of a write shows its method; that of a resumed watch shows its version.
  RequestReceived(s, r) {
    const { method = "", path = "", version = "", query = "", agent } = r.texts ?? {};
    const writes = s.writes.includes(method);
    const resumes = /\bwatch=true/.test(query) && Number(version) > 0;
    const own = path.split("/").includes(s.scene.resource);
    if (own ? !writes && !resumes : !writes || !s.begets(agentOf(agent), path)) return;
    const [namespace, kind, name = ""] = path.split("/namespaces/")[1]?.split("/") ?? [];
    const key = own && writes ? `${namespace}/${name}` : "";
    const label = !own ? `${method} ${kind}` : writes ? `${method} ${brief(shortKey(key), 14)}`.replace(/ \w+\/$/, "")
      : `from ${version}`;
    const [way, takes] = s.asks(agentOf(agent), key);
    s.go(ask(r), [...way, s.a.http], { fresh: true, label, key, takes });
  },
  // A resumed watch enters the ring at its version.
  WatcherAdded(s, r) {
    const asked = [...s.plan.tokens.values()].findLast((t) => t.copy.startsWith("ask|") && t.label === `from ${r.rv}`);
    const cell = s.scene.ring.cells?.findLast(({ rv }) => !laterRV(rv, r.rv ?? "0"));
    if (!asked) return;
    const to = cell ? [ringSpot(s.g.ring, s.scene.ring, cell.pos)] : [];
    s.go(asked.copy, [s.a.http, ...to], { ends: true, fresh: true, label: asked.label });
  },
  RequestAnswered(s, r) {
    if (r.args?.[0] === 410) s.slideOff(r);
    s.plan.end(ask(r));
  },
  // The writer may report a change after etcd's watch delivered it. If the ring has the change, no token goes to etcd.
  TxnCommitted(s, r) {
    const takes = s.asked(r)?.copy;
    if (laterRV(r.rv ?? "0", s.scene.ring.newest ?? "0")) s.go(copy(r), s.toEtcd, { takes });
    else if (takes) s.plan.end(takes);
  },
  // A write with an old version is refused: its token moves back and forth before etcd, and waits for the response.
  WriteRefused(s, r) {
    const { a, turns: t } = s;
    const asked = s.asked(r)?.copy ?? `ask|${r.seq}`;
    const label = `names ${r.texts?.version}: 409`;
    const knocks = [t["http-door"], t["etcd-door"], t["http-door"], t["etcd-door"]];
    s.go(asked, [a.http, ...knocks], { ...alarm, ends: false, label });
  },
  Etcd3IncomingSent(s, r) {
    const takes = s.plan.where(copy(r)) ? undefined : s.asked(r)?.copy;
    const way = [...(takes ? s.toEtcd : [s.a.etcd]), s.inlet("etcd3-incoming"), s.cell(r, "etcd3-incoming")];
    s.go(copy(r), way, { takes });
  },
  Etcd3IncomingReceived: (s, r) => s.go(copy(r), [
    s.cell(r, "etcd3-incoming", 0), s.outlet("etcd3-incoming"), s.a.decode,
  ], { ends: !r.key }),
  Etcd3ResultSent: (s, r) => s.go(copy(r), [
    s.a.decode, s.inlet("etcd3-result"), s.cell(r, "etcd3-result"),
  ]),
  ReflectorReceived(s, r) {
    if (r.subject === "cacher") {
      const way = [s.cell(r, "etcd3-result", 0), s.outlet("etcd3-result"), s.a["server-reflector"]];
      return s.go(copy(r), way, { as: "Etcd3ResultSent", at: "etcd3", ends: !r.key });
    }
    // a bookmark only updates the reflector's "last seen"
    if (s.drawn(r)) s.go(inside(r), [s.turns["wire-below"], s.a.reflector], { ends: !r.key });
  },
  CacheReplaced: (s) => s.leave("etcd3"), // a list's objects do not enter the ring
  RingAppend(s, r) {
    const capacity = r.args?.[2] ?? 0;
    const slot = ringSpot(s.g.ring, { capacity: r.args?.[2] ?? 1 }, (r.args?.[1] ?? 1) - 1);
    // a cell of a small ring shows its version, so the token stops beside the cell
    const beside = capacity <= 32 ? /** @type {Point} */ ([...slot, "straight"]) : null;
    const near = [s.a["server-reflector"], s.turns["ring-in"], s.turns["ring-near"]];
    s.go(copy(r), [...near, ...s.rim(s.ringDoor, slot), beside]);
  },
  StoreUpdate(s, r) {
    const from = s.plan.where(copy(r)) ?? s.ringOut;
    s.go(copy(r), [from, ...s.rim(from, s.ringOut), s.ringOut, s.a.store]);
  },
  IncomingSent: (s, r) => s.go(copy(r), [s.a.store, s.turns["store-out"], s.inlet("incoming"), s.cell(r, "incoming")]),
  IncomingReceived: (s, r) => s.go(copy(r), [s.cell(r, "incoming", 0), s.outlet("incoming"), s.a.dispatch],
    { at: "dispatch", ends: !r.key }),
  InputSent(s, r) {
    const around = s.scene.tall ? [s.turns["hub-low"], s.turns["hub-left"]] : [];
    const from = [s.a.dispatch, s.turns.hub, ...around];
    const rest = copy(r, "more"); // one copy for all watchers without a lane
    if (s.spot("watchers", r, 0)) s.sent("watchers", r, "input", from);
    else if (!s.scene.plain && !s.plan.where(rest)) {
      s.go(rest, [...from, s.turns["crowd-in"]], { ends: true, fresh: true });
    }
  },
  DispatchFinished: (s, r) => s.plan.end(copy(r)),
  InputReceived(s, r) { // the watcher skips events that its client already has, and reports nothing
    const { began = "0" } = s.laneOf("watchers", r)?.subject ?? {};
    s.taken("watchers", r, "input", [s.g.stops.process, s.g.laneAxis], { ends: !laterRV(r.rv ?? "0", began) });
  },
  WatcherFiltered(s, r) {
    const [from, to] = [0, 18].map((off) => s.spot("watchers", r, s.g.stops.process, s.g.laneAxis + off));
    if (from && to) s.go(mine(r), [from, [...to, "straight"]], { ends: true });
  },
  ResultSent: (s, r) => s.sent("watchers", r, "result", [s.spot("watchers", r, s.g.stops.process)]),
  ResultReceived: (s, r) => s.taken("watchers", r, "result", [s.g.stops.leaves, s.g.laneAxis]),
  FrameWritten(s, r) {
    if (r.type === "ERROR") s.slideOff(r);
    const { scene, g } = s;
    const from = s.spot("watchers", r, g.stops.leaves);
    if (!from) return;
    const yours = scene.serving.has(r.subject ?? "");
    if (!yours) return s.go(mine(r), [from, s.spot("watchers", r, g.stops.guest)], { ends: true });
    const wires = [...s.plan.tokens.values()].filter((t) => t.in === "wire").length;
    s.go(mine(r), [from, [g.wireX, from[1], "straight"], [g.wireX, from[1] + 36 + 26 * wires]]);
  },
  FrameDecoded(s, r) { // other clients are only boxes at the ends of their lanes
    if (!s.drawn(r)) return;
    const takes = s.served && copy(r, s.served);
    const above = !s.plan.where(copy(r, s.served)) && s.turns["wire-above"];
    s.go(inside(r), [above, s.a.wire], { takes });
  },
  FIFOAdded(s, r) {
    if (s.stored(r)) s.go(inside(r), [s.a.reflector, s.inlet("fifo"), s.cell(r, "fifo")]);
    else if (s.drawn(r)) s.leave("reflector"); // takes away all tokens that the reflector has received
  },
  FIFOPopped(s, r) {
    if (!s.stored(r)) return;
    s.leave("fifo", "indexer"); // a pop means that the previous item is done
    s.go(inside(r), [s.cell(r, "fifo", 0), s.outlet("fifo"), s.turns["indexer-in"]]);
  },
  IndexerUpdated(s, r) {
    if (s.stored(r)) s.go(inside(r), [s.turns["indexer-in"], s.a.indexer]);
  },
  Distributed(s, r) {
    if (s.drawn(r) && !((r.args?.[0] ?? 0) > 0)) s.plan.end(inside(r));
  },
  // Distributed is reported after all hand-overs, so the first listener's record draws the way to the processor, too.
  AddReceived(s, r) {
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
    const { X, W } = s.g.boxes.handler;
    const way = [s.spot("listeners", r, s.g.stops.handed), s.spot("listeners", r, s.g.stops.called)];
    const several = [...s.scene.places.listeners.lanes.values()].some(({ index, shown }) => shown && index > 0);
    // The token stops below the only handler, or 10 units beside the box of several: left, or right if tall.
    s.go(mine(r), [...way, several ? [s.scene.tall ? X + W + 10 : X - 10, to[1]] : [X + W / 2, to[1] + 28]],
      { colour: "delivered" });
  },
  HandlerReturned: (s, r) => s.plan.end(mine(r)),
  WorkAdded(s, r) {
    if ((r.args?.[0] ?? 0) <= (s.plan.queueOf(r, "workqueue")?.len ?? 0)) return; // the key was already queued
    // If the queue's owner has its own reflector, the key did not come through these handlers.
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
    // watchers without a lane share the place of the last lane
    const from = s.spot("watchers", r, 0) ?? /** @type {Spot} */ ([X, Y + s.g.laneAxis]);
    s.go(`forced|${r.seq}`, [from, [X + s.g.guest.X, from[1]]], { ...alarm, label: "closed" });
  },
};
