// Targets: in a held world, where the next hop of each goroutine leads is marked before it is taken.

import { $, svg } from "../lib/dom.js";

// after says what the goroutine that has reported a point does next with the object it holds. Where that depends on
// what comes next, or is another goroutine's, there is no row.
export const after = {
  RequestReceived: "TxnCommitted", Etcd3IncomingReceived: "Etcd3ResultSent", RingAppend: "StoreUpdate",
  StoreUpdate: "IncomingSent",
  InputReceived: "ResultSent", ResultReceived: "FrameWritten", FIFOPopped: "IndexerUpdated",
  WorkGot: "Reconciled",
};
const received = { cacher: "RingAppend", informer: "FIFOAdded" }; // of ReflectorReceived, by whose reflector it is

// nextOf returns the point that comes next for one that is held, "" if it cannot be told.
export function nextOf(held) {
  if (held.point === "ReflectorReceived") return received[held.subject] ?? "";
  return after[held.point] ?? "";
}

// targetOf names the mark of one that is held.
export const targetOf = (held) => `${held.seq} ${held.point}`;

export function newTargets(stage) {
  const layer = $("#targets");
  let drawn = "";

  // target marks where a held goroutine's next hop leads.
  function target(held) {
    const point = nextOf(held);
    const r = { ...held, point, rv: held.rv ? String(held.rv) : undefined, args: point === "Reconciled" ? [1] : [] };
    if (point === "RingAppend") r.args = [0, (stage.scene.ring.end ?? 0) + 1];
    const end = point && (held.key || point === "TxnCommitted")
      ? stage.motion.aim(r, stage.state.resources[stage.resource]) : null;
    if (!end) return null;
    const mark = svg("circle", { class: "target", cx: end[0].toFixed(1), cy: end[1].toFixed(1), r: 12 });
    mark.dataset.of = targetOf(held);
    mark.dataset.point = point;
    return mark;
  }

  // draw marks them again when others are held.
  function draw() {
    const held = stage.hold.waiting.filter((w) => stage.here(w));
    const now = held.map((w) => `${w.seq}`).join();
    if (now === drawn) return;
    drawn = now;
    layer.replaceChildren(...held.map(target).filter(Boolean));
  }

  return { draw, resource: () => (drawn = "-") };
}
