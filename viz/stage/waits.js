// @ts-nocheck
// Who waits, and where. The queues at which a goroutine waits are marked; why it does, the inspector says. Goroutines
// are drawn where they stand: the four that every event has to pass by name (roles), those of each lane between the
// channels they take from and send to, and, while it is held up, one beside the etcd3 watch or the reflector (posts).
// A padlock stands on the border of each station that has a lock. The log says who had to wait for a lock and got it,
// and of every record whether a lock was held there: so it is closed when a goroutine waits for it, and, where time
// stands, when the record at the cursor was reported under it. How long it is held in between is not written down.

import { $, label, mark, put, say } from "../dom/dom.js";
import { milliseconds } from "../lib/times.js";

const grace = 250; // ms that a goroutine waits before it is shown: a hand-over that takes a moment is no stop

// roles and posts by the name of the glyph: the goroutine, of which subject, and what it is called there. What it waits
// for is in the waits of the picture, by the points that stand under its name in the table.
const roles = {
  caching: { lane: "cacher.startCaching", subject: () => "cacher", called: "startCaching" },
  dispatch: { lane: "cacher.dispatchEvents", called: "dispatchEvents" },
  reflect: { lane: "reflector.Run", subject: (scene) => scene.informer, called: "reflector.Run" },
  process: { lane: "informer", subject: (scene) => scene.informer, called: "informer" },
  "etcd3-incoming": { lane: "watchChan.startWatching", called: "startWatching" },
  "etcd3-result": { lane: "watchChan.collectEventProcessing", called: "collectEvent…" },
  stream: { lane: "StreamWatcher.receive", subject: (scene) => scene.informer, called: "receive", hands: true },
};
// states of a goroutine by the kind of its wait: an icon, and the words.
export const states = {
  room: ["⇥", "waits for room"], taker: ["⇥", "waits for a receiver"], lock: ["⌛", "waits for a lock"],
  client: ["⇥", "writes to its client"], version: ["⌛", "waits for a version"],
  return: ["▶", "runs what it calls"], work: ["⇤", "has nothing to do"],
};
// signs of a lane's goroutines by state: a path around the origin, and the words.
const signs = {
  send: ["M-3.6 0H1.6M-0.8 -2.4L1.8 0L-0.8 2.4M3.8 -3.4V3.4", "waits to send"],
  receive: ["M3.6 0H-1.6M0.8 -2.4L-1.8 0L0.8 2.4M-3.8 -3.4V3.4", "waits to receive"],
  run: ["M-2.2 -3.6L3.6 0L-2.2 3.6Z", "runs"],
};
// padlocks: the station on which each stands, its name, where what is done under it is reported, the points of those
// who had to wait, and who holds it for writing.
const padlocks = [
  ["store", "WatchCache.mu", ["ring", "store"], "CacheLockWaited", "cacher.startCaching"],
  ["dispatch", "Cacher.mu", ["dispatch", "watcher", "incoming"], "CacherLockWaited", "cacher.dispatchEvents"],
  ["fifo", "the queue's lock", ["fifo"], "FIFOLockWaited", "reflector.Run"],
];

export function newWaits(stage) {
  const { scene, infos, player } = stage;
  const cast = Object.entries(roles).map(([name, role]) => ({ ...role, el: $(`[data-role="${name}"]`) }));
  let firstSeen = new Map(); // by the seq of a wait: when this page saw it first
  let due = Infinity; // when the next wait will have lasted
  let marked = new Set(); // the drawings of queues at which goroutines wait

  // lasting leaves out the waits that have only begun, except where the picture stands still.
  function lasting(waits) {
    const now = performance.now();
    firstSeen = new Map(waits.map(({ seq }) => [seq, firstSeen.get(seq) ?? now]));
    const since = ({ seq }) => now - firstSeen.get(seq);
    const young = player.mode === "frozen" ? [] : waits.filter((w) => since(w) < grace);
    due = now + Math.min(...young.map((w) => grace - since(w)));
    return waits.filter((w) => !young.includes(w));
  }

  // pipeOf finds the drawing of a queue: in a lane, or the one that there is.
  function pipeOf(queue, subject) {
    const { watchers, listeners, workqueues } = scene.lanes;
    const lane = watchers.get(subject) ?? listeners.get(subject) ?? workqueues.get(subject);
    return lane?.querySelector(`[data-queue="${queue}"]`) ?? scene.queues.get(queue) ?? null;
  }

  function showBlocked(waits) {
    const held = new Set(waits.map((w) => pipeOf(w.on, w.subject)).filter(Boolean));
    for (const pipe of marked.union(held)) mark(pipe, "blocked", held.has(pipe));
    marked = held;
    put(document.body, "data-blocked", waits.length);
  }

  function showRole(one, waits, state) {
    const mine = waits.filter((w) => {
      const other = one.subject && w.on !== "add" && w.subject && w.subject !== one.subject(scene);
      const young = one.hands && scene.told && state.t - w.t <= grace * 1e6; // a story stands also in a hand-over
      return w.lane.split(" ").includes(one.lane) && !other && !young;
    });
    const wait = mine.find((w) => w.kind !== "work") ?? mine[0]; // undefined if it hardly waits
    const [icon, words] = states[wait?.kind] ?? ["", "waits for no other one"];
    const other = Boolean(wait) && wait.kind !== "work";
    mark(one.el, "held", other);
    say(one.el.querySelector("text"), `${icon} ${one.called}`.trim());
    const since = other ? `, for ${milliseconds(Math.max(0, state.t - wait.t))}` : "";
    const where = wait?.on ? ` at ${wait.on}${wait.subject ? ` of ${wait.subject}` : ""}` : "";
    label(one.el, `${one.lane} ${words}${since}${where}.`);
  }

  function stand(el, name, does, who, why = "") {
    const node = el.querySelector(`[data-goroutine="${name}"]`);
    const [path, words] = signs[does] ?? ["", "has nothing to do"];
    put(node, "data-does", does);
    put(node.querySelector("path"), "d", path);
    label(node, `${who} ${words}${why}`);
  }

  function showWatcher(id, el, blocked) {
    const [full, deaf] = [blocked("ResultBlocked", id), blocked("ResultReceived", id)];
    stand(el, "process", full ? "send" : "receive", `${id} processInterval`, full ? ": result is full" : " from input");
    const client = deaf ? ": its client does not read" : " from result";
    stand(el, "serve", deaf ? "send" : "receive", `${id} WatchServer`, client);
  }

  function showListener(id, el, blocked, { counts, queues }) {
    const calls = (counts.HandlerCalled ?? 0) > (counts.HandlerReturned ?? 0);
    const pending = queues.pending?.len ?? 0;
    const full = blocked("AddBlocked", id);
    stand(el, "distribute", full ? "send" : "", "the informer's goroutine", full ? ` ${id} a notification` : "");
    stand(el, "pop", "receive", `${id} pop`, " from add");
    stand(el, "offer", pending > 0 ? "send" : "", `${id} pop`, pending > 0 ? ` to next; ${pending} are pending` : "");
    stand(el, "run", calls ? "run" : "receive", `${id} run`, calls ? " the handler" : " from next");
  }

  function showLock([station, name, stations, waited, writer], all, n) {
    const el = $(`[data-lock="${station}"]`);
    const r = player.mode === "frozen" ? player.tape.get(player.cursor) : null;
    const info = r && stage.here(r) ? infos.get(r.point) : null;
    const under = Boolean(info?.locked) && stations.includes(info.station);
    const waits = all.filter((w) => w.point === waited);
    put(el, "data-state", waits.length > 0 ? "waited" : under ? "held" : "free");
    mark(el, "closed", under || waits.length > 0);
    say(el.querySelector(".lock-word"), waits.length > 0 ? `${waits.length} wait` : under ? "W" : "");
    const holder = (info?.lane ?? writer).split(" ")[0];
    const now = waits.length > 0 ? `${waits[0].lane.split(" ")[0]} waits for it`
      : under ? `held for writing by ${holder}, at this record` : "no goroutine waits for it";
    label(el, `${name}: ${now}. So far goroutines have waited for it ${n === 1 ? "once" : `${n} times`}.`);
  }

  function shown(res, state) {
    const all = Object.values(res?.waits ?? {}).flat();
    const held = lasting(all.filter((w) => w.kind !== "work"));
    showBlocked(held.filter((w) => w.on));
    if (!res) return;
    const idle = all.filter((w) => w.kind === "work");
    const lasted = new Set(held.map((w) => w.seq));
    const blocked = (point, id) => lasted.has(res.waits[`${point} ${id}`]?.[0].seq);
    for (const one of cast) showRole(one, [...held, ...idle], state);
    const lanes = (kind, show) => scene.lanes[kind].forEach((el, id) => (
      el.lane?.shown && res.subjects[id] && show(id, el, blocked, res.subjects[id])
    ));
    lanes("watchers", showWatcher);
    lanes("listeners", showListener);
    for (const lock of padlocks) showLock(lock, held, res.points[lock[3]] ?? 0);
  }

  return { shown, draw: (now) => now >= due && stage.touch() };
}
