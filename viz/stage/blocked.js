// What is blocked: the queues at which a goroutine waits are marked. Why it does, the inspector says.

import { mark, put } from "../lib/dom.js";

const grace = 250; // ms that a goroutine waits before it is shown: a hand-over that takes a moment is no stop

export function newBlocked(stage) {
  const { scene, player } = stage;
  const firstSeen = new Map(); // by the seq of a wait: when this page saw it first
  let lasted = new Set(); // the waits that lasting left in, by seq
  let due = Infinity; // when the next wait will have lasted

  let marked = new Set(); // the drawings of queues at which goroutines wait

  // pipeOf finds the drawing of a queue: in a lane, or the one that there is.
  function pipeOf(queue, subject) {
    const { watchers, listeners, workqueues } = scene.lanes;
    const lane = watchers.get(subject) ?? listeners.get(subject) ?? workqueues.get(subject);
    return lane?.querySelector(`[data-queue="${queue}"]`) ?? scene.queues.get(queue) ?? null;
  }

  // lasting leaves out the waits that have only begun, except where the picture stands still.
  function lasting(waits) {
    const now = performance.now();
    const known = new Set(waits.map((w) => w.seq));
    for (const seq of firstSeen.keys()) if (!known.has(seq)) firstSeen.delete(seq);
    const old = waits.filter((w) => {
      if (!firstSeen.has(w.seq)) firstSeen.set(w.seq, now);
      return player.mode === "frozen" || now - firstSeen.get(w.seq) >= grace;
    });
    const young = waits.filter((w) => !old.includes(w)).map((w) => firstSeen.get(w.seq) + grace);
    due = Math.min(...young);
    lasted = new Set(old.map((w) => w.seq));
    return old;
  }

  function shown(res) {
    const waits = lasting(Object.values(res?.waits ?? {}).flat().filter((w) => w.kind !== "work")).filter((w) => w.on);
    const held = new Set(waits.map((w) => pipeOf(w.on, w.subject)).filter(Boolean));
    for (const pipe of marked.union(held)) mark(pipe, "blocked", held.has(pipe));
    marked = held;
    put(document.body, "data-blocked", waits.length);
  }

  return { get lasting() { return lasted; }, shown, draw: (now) => now >= due && stage.touch() };
}
