// Steps: where each record takes its event. One entry a point; what is not here does not travel.

import { limits } from "../lib/limits.js";
import { objectKey } from "../log/fold.js";
import { hangsOn } from "./lanes.js";

const boxOf = { watchers: "watcher", listeners: "listener", handlers: "handler", workqueues: "workqueue" };

// newSteps returns, by point, what moves for a record of it: step(r, now). m has hop, flash, label, chains, keep and
// forget of motion.js.
export function newSteps(m) {
  const { scene, hop, flash, chains, forget, keep, label } = m;
  const g = scene.geometry;
  const a = g.anchors;
  const pipe = (name) => g.pipes[name];
  const id = (r, branch = "") => `${r.rv ?? ""}|${r.rv ? "" : objectKey(r.key ?? "")}|${branch}`;

  // spotOf returns a point of a lane's pipe: 0 is where tokens come in, 1 where they go out.
  function spotOf(kind, subject, name, along) {
    const el = scene.lanes[kind].get(subject);
    const box = g.boxes[boxOf[kind]];
    const size = kind === "watchers" ? g.lane : g.listen;
    const index = el?.lane ? Math.min(el.lane.index, size.room - 1) : 0; // those without a place share the last
    const p = pipe(name);
    const left = kind !== "watchers";
    const x = left ? p.X + p.W * (1 - along) : p.X + p.W * along;
    return [box.X + x, box.Y + index * size.height + p.Y + p.H / 2];
  }

  const ours = (r) => scene.serving.has(r.subject);

  // slideOff lets a request that asks for what the ring no longer holds fall from its oldest place into the tray.
  function slideOff(r, now) {
    const from = scene.slotSpot(scene.ring.start);
    hop(
      now, `gone|${r.seq}`, [], from, [g.boxes.ring.X + 21, 236], { type: "ERROR" },
      { colour: "anomaly", always: true, label: "410", slow: true, bend: "straight" }
    );
  }

  return {
    RequestReceived(r, now) {
      const [method] = (r.text ?? "").split(" ", 1); // the text is a request line
      if (!limits.writes.includes(method)) return;
      hop(now, `request|${r.seq}`, [], [g.loopX - 22, g.serverAxis], a.http, { type: "" });
    },
    TxnCommitted(r, now) {
      if (!chains.has(id(r))) hop(now, id(r), [], a.http, [a.http[0] + 1, a.http[1]], r, { as: "RequestReceived" });
      hop(now, id(r), [], a.http, a.etcd, r, { label: label(r) });
      flash(now, id(r), a.etcd, "stored");
    },
    Etcd3IncomingSent: (r, now) =>
      hop(now, id(r), [], a.etcd, a["etcd3-incoming"], r, { label: label(r), below: true }),
    Etcd3IncomingReceived(r, now) {
      hop(
        now, id(r), [], a["etcd3-incoming"],
        [pipe("etcd3-incoming").X + pipe("etcd3-incoming").W, a["etcd3-incoming"][1]], r, { bend: "straight" }
      );
      hop(now, id(r), [], a["etcd3-incoming"], a.decode, r);
    },
    Etcd3ResultSent: (r, now) => hop(now, id(r), [], a.decode, a["etcd3-result"], r),
    ReflectorReceived(r, now) {
      if (r.subject === "cacher") {
        const look = { bend: "straight", as: "Etcd3ResultSent" };
        hop(now, id(r), [], a["etcd3-result"], a["etcd3-out"], r, look);
        hop(now, id(r), [], a["etcd3-out"], [g.ring.x - g.ring.out - 8, a["etcd3-out"][1]], r, look);
        return;
      }
      if (r.subject !== scene.informer) return;
      hop(now, id(r, "informer"), [], a["wire-client"], a.reflector, r, { label: label(r), bend: "straight" });
    },
    RingAppend(r, now) {
      const spot = scene.slotSpot((r.args?.[1] ?? 1) - 1);
      hop(now, id(r), [], [g.ring.x - g.ring.out, a["etcd3-out"][1]], spot, r, { bend: "straight" });
      flash(now, id(r), spot, "stored", 10);
    },
    StoreUpdate: (r, now) => hop(now, id(r), [], a.ring, a.store, r, { label: label(r) }),
    IncomingSent: (r, now) => hop(now, id(r), [], a.store, a.incoming, r),
    IncomingReceived(r, now) {
      hop(now, id(r), [], a.incoming, a["incoming-out"], r, { bend: "straight" });
      hop(now, id(r), [], a["incoming-out"], a.dispatch, r, { bend: "straight", label: label(r) });
    },
    InputSent: (r, now) =>
      hop(now, id(r, r.subject), [id(r)], a.dispatch, spotOf("watchers", r.subject, "input", 0), r),
    InputReceived: (r, now) => hop(
      now, id(r, r.subject), [id(r)], a.dispatch, spotOf("watchers", r.subject, "input", 1), r, { bend: "straight" }
    ),
    WatcherFiltered(r, now) {
      const [x, y] = spotOf("watchers", r.subject, "input", 1);
      hop(now, id(r, r.subject), [], [x, y], [x + 4, y + 22], r, { bend: "straight", fades: true });
    },
    ResultSent: (r, now) =>
      hop(
        now, id(r, r.subject), [id(r)], spotOf("watchers", r.subject, "input", 1),
        spotOf("watchers", r.subject, "result", 0), r, { bend: "straight" }
      ),
    ResultReceived: (r, now) =>
      hop(
        now, id(r, r.subject), [], spotOf("watchers", r.subject, "result", 0),
        spotOf("watchers", r.subject, "result", 1), r, { bend: "straight" }
      ),
    FrameWritten(r, now) {
      if (r.type === "ERROR") slideOff(r, now);
      if (ours(r)) return; // drawn when the client has it: one token, one crossing
      const from = spotOf("watchers", r.subject, "result", 1);
      hop(now, id(r, r.subject), [], from, [scene.edges.right + 4, from[1]], r, { bend: "straight", fades: true });
    },
    FrameDecoded(r, now) {
      if (r.subject !== scene.informer) return; // another client's: it left the picture at the edge
      const [watcher = ""] = scene.serving;
      const from = spotOf("watchers", watcher, "result", 1);
      const parents = [id(r, watcher)];
      hop(now, id(r, "informer"), parents, from, [scene.edges.wireX, from[1]], r, { bend: "straight" });
      hop(now, id(r, "informer"), parents, a.wire, a.wire, r, { bend: "straight", label: label(r) });
      hop(now, id(r, "informer"), parents, a.wire, [g.wireX, g.clientAxis], r, { bend: "straight", label: label(r) });
    },
    FIFOAdded(r, now) {
      if (r.subject === scene.informer) hop(now, id(r, "informer"), [], a.reflector, a.fifo, r, { bend: "straight" });
    },
    FIFOPopped(r, now) {
      if (r.subject === scene.informer) {
        hop(now, id(r, "informer"), [], a.fifo, a["fifo-out"], r, { bend: "straight", label: label(r) });
      }
    },
    IndexerUpdated(r, now) {
      if (r.subject !== scene.informer) return;
      hop(now, id(r, "informer"), [], a["fifo-out"], a.indexer, r, { bend: "straight", label: label(r) });
      flash(now, id(r, "informer"), a.indexer, "stored");
    },
    AddReceived(r, now) {
      if (!hangsOn(scene, scene.lanes.listeners.get(r.subject)?.lane?.subject)) {
        hop(
          now, id(r, r.subject), [], spotOf("listeners", r.subject, "add", 0),
          spotOf("listeners", r.subject, "add", 0.5), r, { bend: "straight" }
        );
        return;
      }
      // Distributed is written down when every listener has it, so the way to the processor is drawn with the first.
      hop(now, id(r, "informer"), [], a.indexer, a.processor, r, { bend: "straight", as: "Distributed" });
      hop(now, id(r, r.subject), [id(r, "informer")], a.processor, spotOf("listeners", r.subject, "add", 0.5), r);
    },
    PendingPushed: (r, now) =>
      hop(
        now, id(r, r.subject), [id(r, "informer")], spotOf("listeners", r.subject, "add", 1),
        spotOf("listeners", r.subject, "pending", 0.2), r, { bend: "straight" }
      ),
    PendingPopped: (r, now) =>
      hop(
        now, id(r, r.subject), [], spotOf("listeners", r.subject, "pending", 0.5),
        spotOf("listeners", r.subject, "pending", 1), r, { bend: "straight" }
      ),
    HandlerCalled(r, now) {
      const next = spotOf("listeners", r.subject, "next", 0.5);
      const spot = [g.boxes.handler.X + g.boxes.handler.W / 2, next[1]];
      hop(
        now, id(r, r.subject), [id(r, "informer")], spotOf("listeners", r.subject, "add", 1), next, r,
        { bend: "straight" }
      );
      hop(
        now, id(r, r.subject), [id(r, "informer")], spotOf("listeners", r.subject, "next", 1), spot, r,
        { bend: "straight", colour: "delivered", label: label(r) }
      );
      flash(now, id(r, r.subject), spot, "delivered", 20);
      const called = `called|${objectKey(r.key ?? "")}`;
      keep(called);
      chains.set(called, chains.get(id(r, r.subject)));
    },
    WorkAdded(r, now) {
      const key = objectKey(r.key ?? "");
      const to = spotOf("workqueues", r.subject, "workqueue", 0);
      if (scene.lanes.workqueues.get(r.subject)?.lane?.subject.counts.ReflectorWatching) {
        forget(`work|${key}|${r.subject}`);
        flash(now, "", to, "moving", 12); // its owner watches by itself: the key did not come through these handlers
        return;
      }
      hop(
        now, `work|${key}|${r.subject}`, [`called|${key}`], [g.boxes.handler.X, to[1]], to, { ...r, type: "Sync" },
        { fresh: true }
      );
    },
    WorkGot: (r, now) => {
      const key = objectKey(r.key ?? "");
      hop(
        now, `work|${key}|${r.subject}`, [], spotOf("workqueues", r.subject, "workqueue", 0),
        spotOf("workqueues", r.subject, "workqueue", 1), { ...r, type: "Sync" }, { bend: "straight" }
      );
    },
    Reconciled(r, now) {
      if (!r.args?.[0]) return; // nothing was written: nothing goes up the loop
      const chain = `work|${objectKey(r.key ?? "")}|${r.subject}`;
      hop(
        now, chain, [], [g.boxes.workqueue.X, g.clientAxis], [g.loopX, g.clientAxis - 14], { ...r, type: "Sync" },
        { bend: "straight" }
      );
      hop(now, chain, [], a.loop, [g.loopX, g.serverAxis + 10], { ...r, type: "Sync" }, { bend: "straight" });
      hop(now, chain, [], a.loop, a.http, { ...r, type: "Sync" }, { bend: "straight" });
      forget(chain);
    },
    WatcherForced(r, now) {
      hop(
        now, `forced|${r.seq}`, [], spotOf("watchers", r.subject, "input", 0),
        [scene.edges.right, spotOf("watchers", r.subject, "input", 0)[1]], { type: "ERROR" },
        { colour: "anomaly", always: true, label: "closed", fades: true }
      );
    },
    ReflectorBackoff: (r, now) => flash(now, "", r.subject === "cacher" ? a["etcd3-out"] : a.reflector, "anomaly", 40),
    RingResize(r, now) {
      flash(now, "", a.ring, "anomaly", 96);
      const before = scene.ring; // every event is seated again: same position, another slot
      if (!before.capacity || before.capacity === r.args?.[2]) return;
      const after = { ...before, capacity: r.args[2] };
      for (const cell of before.cells) {
        hop(
          now, `seat|${cell.pos}`, [], scene.slotSpot(cell.pos, before), scene.slotSpot(cell.pos, after), cell,
          { bend: "straight", fresh: true, slow: true, always: true }
        );
      }
    },
    RequestAnswered: (r, now) => r.args?.[0] === 410 && slideOff(r, now),
    DispatchBlocked: (r, now) => flash(now, "", a.dispatch, "anomaly", 34),
    CacherNotReady: (r, now) => flash(now, "", a.incoming, "anomaly", 40),
    WatchChanError: (r, now) => flash(now, "", a.decode, "anomaly", 50),
  };
}

// departs reports whether a record says that something has left a queue, a shelf, the machine: its token sets out when
// it is folded. Every other token has arrived when it is.
export function departs(info, r) {
  if (info.op === "recv" || info.op === "pop") return true;
  if (info.name === "ReflectorReceived") return r.subject === "cacher"; // which takes from resultChan
  return info.name === "WatcherFiltered" || info.name === "FrameWritten";
}
