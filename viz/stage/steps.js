// @ts-nocheck
// Steps: where each record takes its change. One entry a point; what is not here does not travel. Points are those of
// the wide stage (layout.go): a way follows the rails.

import { limits } from "../lib/limits.js";
import { laterRV, objectKey } from "../log/fold.js";
import { brief, cellOf, leftward, shortKey } from "./pipe.js";
import { hangsOn } from "./places.js";

// newSteps returns, by point, what moves for a record of it: step(r). All but the scene is motion.js's.
export function newSteps({ scene, go, end, where, queueOf, tokens }) {
  const g = scene.geometry;
  const a = g.anchors;

  // A copy of a change is named by its version, its object and its branch: the whole one, the one for a subject, or the
  // one for the informer that is drawn. A key in a workqueue has no version.
  const copy = (r, branch = "") => `${r.rv ?? ""}|${objectKey(r.key ?? "")}|${branch}`;
  const mine = (r) => copy(r, r.subject);
  const inside = (r) => copy(r, "informer");
  const keyOf = (r) => (scene.plain ? undefined : `key ${brief(shortKey(r.key), 14)}`);
  const work = (r) => `work|${objectKey(r.key ?? "")}|${r.subject}`;

  const laneOf = (kind, r) => scene.places[kind].lanes.get(r.subject);

  // spot is a point of the lane of the record's subject; null: nothing is drawn of it.
  function spot(kind, r, x, y = 26) {
    const lane = laneOf(kind, r);
    const hidden = scene.plain && kind === "workqueues" && lane?.index > 0; // of a client that is not drawn
    return lane?.shown && !hidden ? [lane.at[0] + x, lane.at[1] + y] : null;
  }

  // cell is the place of the n-th token of a queue, inlet and outlet are its ends; of a lane's queue within its lane.
  function cell(r, name, n) {
    const { len = 0, cap = 0 } = queueOf(r, name) ?? {};
    return cellOf(g.pipes[name], n ?? len, cap <= g.maxSlots ? cap : 0, leftward.has(name));
  }
  const ends = (name) => [g.pipes[name].X, g.pipes[name].X + g.pipes[name].W];
  const middle = (name) => g.pipes[name].Y + g.pipes[name].H / 2;
  const inlet = (name) => [ends(name)[leftward.has(name) ? 1 : 0], middle(name)];
  const outlet = (name) => [ends(name)[leftward.has(name) ? 0 : 1], middle(name)];

  // sent goes into a queue of a lane, taken out of it.
  const within = (kind, r, ...places) => places.map((at) => spot(kind, r, ...at));
  const sent = (kind, r, name, from, look) => spot(kind, r, 0)
    && go(look?.copy ?? mine(r), [...from, ...within(kind, r, inlet(name), cell(r, name))], look);
  const taken = (kind, r, name, to, look) => spot(kind, r, 0)
    && go(look?.copy ?? mine(r), within(kind, r, cell(r, name, 0), outlet(name), to), look);

  const drawn = (r) => r.subject === scene.informer; // of several informers one is
  const stored = (r) => r.key && drawn(r);
  const hangs = (r) => hangsOn(scene, laneOf("listeners", r)?.subject);
  const served = () => [...scene.serving][0] ?? ""; // the watcher whose client is the informer that is drawn
  const alarm = { colour: "anomaly", ends: true, slow: true, fresh: true };

  // rim leads along the ring from one point to another, the shorter way around.
  function rim(from, to) {
    const { x, y, out, in: inner } = g.ring;
    const [begin, finish] = [from, to].map((p) => Math.atan2(p[1] - y, p[0] - x));
    let turn = finish - begin;
    if (Math.abs(turn) > Math.PI) turn -= Math.sign(turn) * 2 * Math.PI;
    const n = Math.max(1, Math.ceil(Math.abs(turn) / 0.1));
    const at = (i) => [Math.cos(begin + (turn * i) / n), Math.sin(begin + (turn * i) / n)];
    return Array.from({ length: n + 1 }, (_, i) => [
      x + (at(i)[0] * (out + inner)) / 2, y + (at(i)[1] * (out + inner)) / 2, "straight",
    ]);
  }
  const ringIn = [g.ring.x - g.ring.out - 8, a["etcd3-out"][1]];
  const ringOut = () => [g.ring.x + (scene.tall ? 4 - g.ring.out : g.ring.out), g.ring.y];
  const storeOut = () => (scene.tall ? [a.store[0], 246] : [g.boxes.store.X + g.boxes.store.W, g.serverAxis]);
  const ringDoor = () => (scene.tall ? [g.ring.x + 40, g.ring.y - g.ring.out]
    : [g.ring.x - g.ring.out, g.ring.y + (scene.plain ? 0 : 40)]);

  // slideOff lets a request that asks for what the ring no longer holds fall from its oldest place into the tray.
  function slideOff(r) {
    const tray = [g.boxes.ring.X + 60, 242];
    go(`gone|${r.seq}`, [scene.slotSpot(scene.ring.start), [...tray, "straight"]], { ...alarm, label: "410" });
  }

  // handed is the way of a notification to its listener, whose box is shown, and what it is a copy of.
  function handed(r) {
    const to = spot("listeners", r, 284);
    if (!hangs(r) || where(mine(r))) return [[to]];
    const way = [a.processor, [g.boxes.processor.X, g.clientAxis], spot("listeners", r, 302), to];
    return [where(inside(r)) ? [a.indexer, [742, g.clientAxis], ...way] : way, { takes: inside(r) }];
  }

  // leave ends what stands at stations.
  const leave = (...stations) => tokens.forEach((t) => !t.queue && stations.includes(t.in) && end(t.copy));

  // leaves is where in its lane a copy leaves the server: before the flag, if a story's client has one.
  const leaves = () => (scene.told?.members.length > 0 ? 212 : 231);

  return {
    // What a controller writes goes up the loop, if a worker of its has the key.
    RequestReceived(r) {
      const [method, path] = (r.text ?? "").split(" ", 2);
      if (!limits.writes.includes(method)) return;
      const parts = path.split("/namespaces/")[1]?.split("/") ?? [];
      const key = `${parts[0]}/${parts[2]}`;
      const hand = [...tokens.values()].find((t) => t.copy.startsWith("work|") && !t.queue && t.key === key);
      if (!hand) return;
      const [below, above] = [[g.loopX, g.clientAxis - 14, "straight"], [g.loopX, g.serverAxis + 14]];
      const up = [below, above, [g.loopX + 14, g.serverAxis, "straight"]];
      go(hand.copy, [hand.at, [36, g.clientAxis], ...up, a.http], {
        ends: true, fresh: true, label: hand.label, key,
      });
    },
    // Its writer may tell of it long after etcd's watch did: then it has left etcd.
    TxnCommitted: (r) => laterRV(r.rv, scene.ring.newest ?? "0") && go(copy(r), [a.http, a.etcd]),
    Etcd3IncomingSent: (r) => go(copy(r), [
      a.etcd, [250, g.serverAxis], inlet("etcd3-incoming"), cell(r, "etcd3-incoming"),
    ]),
    Etcd3IncomingReceived: (r) => go(copy(r), [
      cell(r, "etcd3-incoming", 0), outlet("etcd3-incoming"), [416, 102, 416, 153, ...a.decode],
    ], { ends: !r.key }),
    Etcd3ResultSent: (r) => go(copy(r), [
      a.decode, [276, 153, 248, 204, ...inlet("etcd3-result")], cell(r, "etcd3-result"),
    ]),
    ReflectorReceived(r) {
      if (r.subject === "cacher") {
        const look = { as: "Etcd3ResultSent", at: "etcd3", ends: !r.key };
        return go(copy(r), [cell(r, "etcd3-result", 0), outlet("etcd3-result"), ringIn], look);
      }
      const way = [a["wire-client"], [g.wireX - 14, g.clientAxis, "straight"], a.reflector];
      if (drawn(r)) go(inside(r), way, { ends: !r.key }); // "last seen" is what a bookmark is for
    },
    CacheReplaced: () => leave("etcd3"), // by a list: no change of it enters the ring
    RingAppend(r) {
      const slot = scene.slotSpot((r.args?.[1] ?? 1) - 1, { capacity: r.args?.[2] ?? 1 });
      const beside = (r.args?.[2] ?? 0) <= 32 ? [[...slot, "straight"]] : []; // its cell has the version in it
      go(copy(r), [ringIn, ...rim(ringDoor(), slot), ...beside]);
    },
    StoreUpdate(r) {
      const from = where(copy(r)) ?? ringOut();
      go(copy(r), [from, ...rim(from, ringOut()), ringOut(), a.store]);
    },
    IncomingSent: (r) => go(copy(r), [a.store, storeOut(), inlet("incoming"), cell(r, "incoming")]),
    IncomingReceived(r) {
      go(copy(r), [cell(r, "incoming", 0), outlet("incoming"), a.dispatch], { at: "dispatch", ends: !r.key });
    },
    InputSent(r) {
      const from = [a.dispatch, [929, g.serverAxis]];
      const rest = copy(r, "more"); // one for all that have no lane of their own
      if (spot("watchers", r, 0)) sent("watchers", r, "input", from);
      else if (!scene.plain && !where(rest)) go(rest, [...from, [970, 236], [1010, 236]], { ends: true, fresh: true });
    },
    DispatchFinished: (r) => end(copy(r)),
    InputReceived(r) { // what its client has had is passed over, and no record says so
      const { began = "0" } = laneOf("watchers", r)?.subject ?? {};
      taken("watchers", r, "input", [109, 26], { ends: !laterRV(r.rv ?? "0", began) });
    },
    WatcherFiltered: (r) => spot("watchers", r, 0)
      && go(mine(r), [spot("watchers", r, 109), [...spot("watchers", r, 109, 44), "straight"]], { ends: true }),
    ResultSent: (r) => sent("watchers", r, "result", [spot("watchers", r, 109)]),
    ResultReceived: (r) => taken("watchers", r, "result", [leaves(), 26]),
    FrameWritten(r) {
      if (r.type === "ERROR") slideOff(r);
      const from = spot("watchers", r, leaves());
      if (!from) return;
      if (!scene.serving.has(r.subject)) return go(mine(r), [from, [scene.edges.end, from[1]]], { ends: true });
      const flags = g.boxes.watcher.Y + (scene.told?.members.length ?? 0) * g.lane.height; // it stands below them
      const wires = [...tokens.values()].filter((t) => t.in === "wire").length;
      const down = Math.max(from[1], flags) + 12 + 26 * wires;
      go(mine(r), [from, [scene.edges.wireX, down, "straight"]]);
    },
    FrameDecoded(r) { // of another client it left the picture at the edge
      if (!drawn(r)) return;
      const above = where(copy(r, served())) ? [] : [[g.wireX, 120]];
      go(inside(r), [...above, [g.wireX, 266], [g.wireX, g.clientAxis - 34]], { takes: served() && copy(r, served()) });
    },
    FIFOAdded: (r) => (stored(r) ? go(inside(r), [a.reflector, inlet("fifo"), cell(r, "fifo")])
      : drawn(r) && leave("reflector")), // with all that it has received
    FIFOPopped(r) {
      if (!stored(r)) return;
      leave("fifo", "indexer"); // it takes the next one when it is done with the last
      go(inside(r), [cell(r, "fifo", 0), outlet("fifo"), [890, g.clientAxis]]);
    },
    IndexerUpdated: (r) => stored(r) && go(inside(r), [[890, g.clientAxis], a.indexer]),
    Distributed: (r) => drawn(r) && !(r.args?.[0] > 0) && end(inside(r)),
    // Distributed is written down when every listener has it, so the way to the processor is drawn with the first.
    AddReceived(r) { // it is next
      const [way, takes] = spot("listeners", r, 0) ? handed(r) : [];
      if (way) go(mine(r), [...way, spot("listeners", r, 30)], takes);
    },
    PendingPushed: (r) => spot("listeners", r, 0) && sent("listeners", r, "pending", ...handed(r)),
    PendingPopped: (r) => taken("listeners", r, "pending", [30, 26]),
    HandlerCalled(r) {
      const to = spot("listeners", r, 0);
      const beside = to && [g.boxes.handler.X + (scene.tall ? 106 : scene.plain ? -50 : -10), to[1]]; // the words
      if (to) go(mine(r), [spot("listeners", r, 284), spot("listeners", r, 16), beside], { colour: "delivered" });
    },
    HandlerReturned: (r) => end(mine(r)),
    WorkAdded(r) {
      if ((r.args?.[0] ?? 0) <= (queueOf(r, "workqueue")?.len ?? 0)) return; // it was there already
      // Where its owner watches by itself, the key did not come through these handlers.
      const own = laneOf("workqueues", r)?.subject.counts.ReflectorWatching;
      const from = own ? [] : [spot("workqueues", r, 176)];
      sent("workqueues", r, "workqueue", from, { copy: work(r), fresh: true, label: keyOf(r) });
    },
    WorkGot: (r) => taken("workqueues", r, "workqueue", [-8, 26], { copy: work(r), fresh: true, label: keyOf(r) }),
    WorkDone: (r) => end(work(r)),
    WatcherForced(r) {
      const last = [g.boxes.watcher.X, g.boxes.watcher.Y + (g.lane.room - 1) * g.lane.height + 26];
      const from = spot("watchers", r, 0) ?? last; // without a place of its own it is one of those that share the last
      go(`forced|${r.seq}`, [from, [scene.edges.right, from[1]]], { ...alarm, label: "closed" });
    },
    RequestAnswered: (r) => r.args?.[0] === 410 && slideOff(r),
  };
}

// A token in a hurry passes what stands between two bars in one hop; in a great one, between two double bars.
const route = "TxnCommitted | Etcd3IncomingSent Etcd3IncomingReceived | Etcd3ResultSent ReflectorReceived || " +
  "RingAppend StoreUpdate | IncomingSent IncomingReceived || InputReceived ResultSent ResultReceived FrameWritten || " +
  "FrameDecoded ReflectorReceived FIFOAdded | FIFOPopped IndexerUpdated || " +
  "AddReceived PendingPushed PendingPopped HandlerCalled || WorkAdded WorkGot";
const runs = route.split("||");
const phases = route.split("|");
const inOne = (groups, a, b) => groups.some((each) => [a, b].every(({ point }) => each.split(" ").includes(point)));
const hurried = 1.3; // times the reading pace
const greatly = 2;

// changeOf names the change that a record is about: one version of one object, in either half.
export const changeOf = (r) => `${r.rv ?? ""} ${objectKey(r.key ?? "")}`;

// together reports whether two records, the second soon after the first, are one hop: copies that go the same kind of
// way, and, in a hurry, what one copy does next.
export function together(a, b, pace) {
  if (changeOf(a) !== changeOf(b)) return false;
  if (a.point === b.point) return a.subject !== b.subject;
  const one = a.subject === b.subject || inOne(runs.slice(0, 2), a, b); // up to the dispatcher there is one copy
  return one && pace > hurried && inOne(pace > greatly ? runs : phases, a, b);
}

// departs reports whether a record says that something has left a queue, a shelf, the machine: its token sets out when
// it is folded. Every other token has arrived when it is.
export function departs(info, r) {
  if (info.op === "recv" || info.op === "pop") return true;
  if (info.name === "ReflectorReceived") return r.subject === "cacher"; // which takes from resultChan
  return info.name === "WatcherFiltered" || info.name === "FrameWritten";
}
