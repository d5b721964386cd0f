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
  const id = (r, branch = "") => `${r.rv ?? ""}|${r.rv ? "" : objectKey(r.key ?? "")}|${branch}`;

  // spotOf returns a point of a lane's pipe: 0 is where tokens come in, 1 where they go out.
  function spotOf(kind, subject, name, along) {
    const box = g.boxes[boxOf[kind]];
    const size = kind === "watchers" ? g.lane : g.listen;
    const { lane } = scene.lanes[kind].get(subject) ?? {};
    const index = lane ? Math.min(lane.index, size.room - 1) : 0; // those without a place share the last
    const p = g.pipes[name];
    const x = p.X + p.W * (kind === "watchers" ? along : 1 - along);
    return [box.X + x, box.Y + index * size.height + p.Y + p.H / 2];
  }

  // A place is the name of an anchor, a point, or a function of the record. watcher, listener and work are places in
  // the lane of its subject.
  const at = (place, r) => (typeof place === "string" ? a[place] : typeof place === "function" ? place(r) : place);
  const watcher = (name, along) => (r) => spotOf("watchers", r.subject, name, along);
  const listener = (name, along) => (r) => spotOf("listeners", r.subject, name, along);
  const work = (along) => (r) => spotOf("workqueues", r.subject, "workqueue", along);

  // A branch names the copy of the change that moves: whole, the one for the subject, or the one for the informer.
  const whole = () => "";
  const mine = (r) => r.subject;
  const informer = () => "informer";

  // way is a step from one place to another. look.named writes its name beside the token, look.from names the branches
  // of which this copy was made, and look.when says for which records there is a way.
  function way(branch, start, end, { named, from = [], when, ...look } = {}) {
    return (r, now) => {
      if (when && !when(r)) return;
      const parents = from.map((each) => id(r, each(r)));
      const words = named ? { label: label(r) } : {};
      hop(now, id(r, branch(r)), parents, at(start, r), at(end, r), r, { bend: "straight", ...look, ...words });
    };
  }
  const all = (...steps) => (r, now) => steps.forEach((step) => step(r, now));
  const flashAt = (place, colour, radius) => (r, now) => flash(now, "", at(place, r), colour, radius);
  const across = { bend: "across" };
  const named = { named: true };

  const ours = (r) => scene.serving.has(r.subject);
  const drawn = (r) => r.subject === scene.informer; // of several informers one is
  const hangs = (r) => hangsOn(scene, scene.lanes.listeners.get(r.subject)?.lane?.subject);
  const alarm = { colour: "anomaly", always: true };

  // slideOff lets a request that asks for what the ring no longer holds fall from its oldest place into the tray.
  function slideOff(r, now) {
    const look = { ...alarm, label: "410", slow: true, bend: "straight" };
    const tray = [g.boxes.ring.X + 21, 236];
    hop(now, `gone|${r.seq}`, [], scene.slotSpot(scene.ring.start), tray, { type: "ERROR" }, look);
  }

  // onWork moves the key of an object in a workqueue, which has no version.
  const chainOf = (r) => `work|${objectKey(r.key ?? "")}|${r.subject}`;
  const called = (r) => `called|${objectKey(r.key ?? "")}`;
  const onWork = (r, now, start, end, look = { bend: "straight" }, parents = []) =>
    hop(now, chainOf(r), parents, at(start, r), at(end, r), { ...r, type: "Sync" }, look);

  const ringIn = [g.ring.x - g.ring.out, a["etcd3-out"][1]];
  const served = () => [...scene.serving][0] ?? ""; // the watcher whose client is the informer that is drawn
  const toInformer = { when: drawn, from: [served] };
  const wireOut = () => spotOf("watchers", served(), "result", 1);
  const handlerSpot = (r) => [
    g.boxes.handler.X + g.boxes.handler.W / 2, spotOf("listeners", r.subject, "next", 0.5)[1],
  ];

  return {
    RequestReceived(r, now) {
      const [method] = (r.text ?? "").split(" ", 1); // the text is a request line
      if (!limits.writes.includes(method)) return;
      hop(now, `request|${r.seq}`, [], [g.loopX - 22, g.serverAxis], a.http, { type: "" });
    },
    TxnCommitted: all(
      way(
        whole, "http", [a.http[0] + 1, a.http[1]], { ...across, as: "RequestReceived", when: (r) => !chains.has(id(r)) }
      ),
      way(whole, "http", "etcd", { ...across, ...named }),
      flashAt("etcd", "stored"),
    ),
    Etcd3IncomingSent: way(whole, "etcd", "etcd3-incoming", { ...across, ...named, below: true }),
    Etcd3IncomingReceived: all(
      way(whole, "etcd3-incoming", [g.pipes["etcd3-incoming"].X + g.pipes["etcd3-incoming"].W, a["etcd3-incoming"][1]]),
      way(whole, "etcd3-incoming", "decode", across),
    ),
    Etcd3ResultSent: way(whole, "decode", "etcd3-result", across),
    ReflectorReceived(r, now) {
      if (r.subject !== "cacher") return way(informer, "wire-client", "reflector", { ...named, when: drawn })(r, now);
      const look = { as: "Etcd3ResultSent" };
      way(whole, "etcd3-result", "etcd3-out", look)(r, now);
      way(whole, "etcd3-out", [ringIn[0] - 8, ringIn[1]], look)(r, now);
    },
    RingAppend(r, now) {
      const spot = scene.slotSpot((r.args?.[1] ?? 1) - 1);
      way(whole, ringIn, spot)(r, now);
      flash(now, "", spot, "stored", 10);
    },
    StoreUpdate: way(whole, "ring", "store", { ...across, ...named }),
    IncomingSent: way(whole, "store", "incoming", across),
    IncomingReceived: all(way(whole, "incoming", "incoming-out"), way(whole, "incoming-out", "dispatch", named)),
    InputSent: way(mine, "dispatch", watcher("input", 0), { ...across, from: [whole] }),
    InputReceived: way(mine, "dispatch", watcher("input", 1), { from: [whole] }),
    WatcherFiltered(r, now) {
      const [x, y] = spotOf("watchers", r.subject, "input", 1);
      way(mine, [x, y], [x + 4, y + 22], { fades: true })(r, now);
    },
    ResultSent: way(mine, watcher("input", 1), watcher("result", 0), { from: [whole] }),
    ResultReceived: way(mine, watcher("result", 0), watcher("result", 1)),
    FrameWritten(r, now) {
      if (r.type === "ERROR") slideOff(r, now);
      if (ours(r)) return; // drawn when the client has it: one token, one crossing
      const from = spotOf("watchers", r.subject, "result", 1);
      way(mine, from, [scene.edges.right + 4, from[1]], { fades: true })(r, now);
    },
    FrameDecoded: all( // of another client it left the picture at the edge
      way(informer, wireOut, () => [scene.edges.wireX, wireOut()[1]], toInformer),
      way(informer, "wire", "wire", { ...toInformer, ...named }),
      way(informer, "wire", [g.wireX, g.clientAxis], { ...toInformer, ...named }),
    ),
    FIFOAdded: way(informer, "reflector", "fifo", { when: drawn }),
    FIFOPopped: way(informer, "fifo", "fifo-out", { ...named, when: drawn }),
    IndexerUpdated(r, now) {
      if (!drawn(r)) return;
      way(informer, "fifo-out", "indexer", named)(r, now);
      flash(now, "", a.indexer, "stored");
    },
    // Distributed is written down when every listener has it, so the way to the processor is drawn with the first.
    AddReceived: all(
      way(mine, listener("add", 0), listener("add", 0.5), { when: (r) => !hangs(r) }),
      way(informer, "indexer", "processor", { as: "Distributed", when: hangs }),
      way(mine, "processor", listener("add", 0.5), { ...across, from: [informer], when: hangs }),
    ),
    PendingPushed: way(mine, listener("add", 1), listener("pending", 0.2), { from: [informer] }),
    PendingPopped: way(mine, listener("pending", 0.5), listener("pending", 1)),
    HandlerCalled(r, now) {
      way(mine, listener("add", 1), listener("next", 0.5), { from: [informer] })(r, now);
      way(mine, listener("next", 1), handlerSpot, { ...named, from: [informer], colour: "delivered" })(r, now);
      flash(now, "", handlerSpot(r), "delivered", 20);
      keep(called(r));
      chains.set(called(r), chains.get(id(r, r.subject)));
    },
    WorkAdded(r, now) {
      const to = work(0)(r);
      if (scene.lanes.workqueues.get(r.subject)?.lane?.subject.counts.ReflectorWatching) {
        forget(chainOf(r));
        // its owner watches by itself: the key did not come through these handlers
        return flash(now, "", to, "moving", 12);
      }
      onWork(r, now, [g.boxes.handler.X, to[1]], to, { fresh: true }, [called(r)]);
    },
    WorkGot: (r, now) => onWork(r, now, work(0), work(1)),
    Reconciled(r, now) {
      if (!r.args?.[0]) return; // nothing was written: nothing goes up the loop
      onWork(r, now, [g.boxes.workqueue.X, g.clientAxis], [g.loopX, g.clientAxis - 14]);
      onWork(r, now, "loop", [g.loopX, g.serverAxis + 10]);
      onWork(r, now, "loop", "http");
      forget(chainOf(r));
    },
    WatcherForced(r, now) {
      const from = spotOf("watchers", r.subject, "input", 0);
      const look = { ...alarm, label: "closed", fades: true };
      hop(now, `forced|${r.seq}`, [], from, [scene.edges.right, from[1]], { type: "ERROR" }, look);
    },
    ReflectorBackoff: flashAt((r) => (r.subject === "cacher" ? a["etcd3-out"] : a.reflector), "anomaly", 40),
    RingResize(r, now) {
      flash(now, "", a.ring, "anomaly", 96);
      const before = scene.ring; // every event is seated again: same position, another slot
      if (!before.capacity || before.capacity === r.args?.[2]) return;
      const after = { ...before, capacity: r.args[2] };
      const look = { bend: "straight", fresh: true, slow: true, always: true };
      for (const cell of before.cells) {
        const [from, to] = [before, after].map((ring) => scene.slotSpot(cell.pos, ring));
        hop(now, `seat|${cell.pos}`, [], from, to, cell, look);
      }
    },
    RequestAnswered: (r, now) => r.args?.[0] === 410 && slideOff(r, now),
    DispatchBlocked: flashAt("dispatch", "anomaly", 34),
    CacherNotReady: flashAt("incoming", "anomaly", 40),
    WatchChanError: flashAt("decode", "anomaly", 50),
  };
}

// departs reports whether a record says that something has left a queue, a shelf, the machine: its token sets out when
// it is folded. Every other token has arrived when it is.
export function departs(info, r) {
  if (info.op === "recv" || info.op === "pop") return true;
  if (info.name === "ReflectorReceived") return r.subject === "cacher"; // which takes from resultChan
  return info.name === "WatcherFiltered" || info.name === "FrameWritten";
}
