// Waits marks the queues at which a goroutine waits; the inspector shows why it waits. Goroutines are named at their
// places: the ones that every event passes (roles) and, only while it is blocked, one beside the etcd3 watch or the
// reflector (posts). Each station with a lock has a padlock on its border. The log records for each record whether the
// lock was held: while time is stopped, the padlock is closed if the record at the cursor was reported under the
// lock.

import { $, label, mark, part, put, say } from "../dom/dom.js";
import { milliseconds } from "../lib/times.js";

/**
 * @typedef {object} Stage
 * @property {page.Scene} scene
 * @property {page.Infos} infos
 * @property {page.Player} player
 * @property {(r: { resource?: string }) => boolean} here
 * @typedef {{ lane: string, subject?: (scene: page.Scene) => string, called: string, hands?: boolean }} Role
 * @typedef {[string, name: string, stations: string[], writer: string]} Padlock
 */

const grace = 250; // ms that a goroutine waits before its wait is shown: a short hand-over is not a stop

// roles and posts have, by glyph name, a goroutine's lane, its subject, and its label. The goroutine's wait is among
// the folded waits, under the points that the table lists for that lane.
/** @type {{ [name: string]: Role }} */
const roles = {
  caching: { lane: "cacher.startCaching", subject: () => "cacher", called: "startCaching" },
  dispatch: { lane: "cacher.dispatchEvents", called: "dispatchEvents" },
  reflect: { lane: "reflector.Run", subject: (scene) => scene.informer, called: "reflector.Run" },
  process: { lane: "informer", subject: (scene) => scene.informer, called: "informer" },
  "etcd3-incoming": { lane: "watchChan.startWatching", called: "startWatching" },
  "etcd3-result": { lane: "watchChan.collectEventProcessing", called: "collectEvent…" },
  stream: { lane: "StreamWatcher.receive", subject: (scene) => scene.informer, called: "receive", hands: true },
};
// states has the icon and the words for a goroutine, by the kind of its wait.
/** @type {{ [kind: string]: [icon: string, words: string] }} */
const states = {
  room: ["⇥", "waits for room"], taker: ["⇥", "waits for a receiver"],
  client: ["⇥", "writes to its client"], version: ["◔", "waits for a version"],
  return: ["▶", "runs what it calls"], work: ["⇤", "has nothing to do"],
};
// padlocks maps each lock: the station that shows it, the lock's name, the stations whose records may be under it, and
// the goroutine that takes it for writing.
/** @type {Padlock[]} */
const padlocks = [
  ["store", "WatchCache.mu", ["ring", "store"], "cacher.startCaching"],
  ["dispatch", "Cacher.mu", ["dispatch", "watcher", "incoming"], "cacher.dispatchEvents"],
  ["fifo", "the queue's lock", ["fifo"], "reflector.Run"],
];

export class Waits {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.cast = Object.entries(roles).map(([name, role]) => ({ ...role, el: $(`[data-role="${name}"]`) }));
    /** @type {Map<number, number>} */
    this.firstSeen = new Map(); // when this page first saw a wait, by the wait's seq
    this.due = Infinity; // when the next wait has lasted long enough to be shown
    /** @type {Set<Element>} */
    this.marked = new Set(); // the drawings of queues at which goroutines wait
  }

  get frozen() { return this.stage.player.mode === "frozen"; }

  // lasting leaves out waits shorter than grace, except while the picture is frozen.
  /** @param {fold.Wait[]} waits */
  lasting(waits) {
    const now = performance.now();
    this.firstSeen = new Map(waits.map(({ seq }) => [seq, this.firstSeen.get(seq) ?? now]));
    const since = (/** @type {fold.Wait} */ { seq }) => now - (this.firstSeen.get(seq) ?? now);
    const young = this.frozen ? [] : waits.filter((w) => since(w) < grace);
    this.due = now + Math.min(...young.map((w) => grace - since(w)));
    return waits.filter((w) => !young.includes(w));
  }

  // pipeOf returns the drawing of a wait's queue: the one in the subject's lane, or the only one.
  /** @param {fold.Wait} wait */
  pipeOf({ on, subject }) {
    const { scene } = this.stage;
    const { watchers, listeners, workqueues } = scene.lanes;
    const lane = watchers.get(subject) ?? listeners.get(subject) ?? workqueues.get(subject);
    return lane?.querySelector(`[data-queue="${on}"]`) ?? scene.queues.get(on) ?? null;
  }

  /** @param {fold.Wait[]} waits */
  showBlocked(waits) {
    const held = new Set(waits.map((w) => this.pipeOf(w)).filter((pipe) => pipe !== null));
    for (const pipe of this.marked.union(held)) mark(pipe, "blocked", held.has(pipe));
    this.marked = held;
  }

  /** @param {Role & { el: Element }} one @param {fold.Wait[]} waits @param {fold.State} state */
  showRole(one, waits, state) {
    const { scene } = this.stage;
    const mine = waits.filter((w) => {
      const other = one.subject && w.on !== "add" && w.subject && w.subject !== one.subject(scene);
      const young = one.hands && scene.story && state.t - w.t <= grace * 1e6; // a story may stop during a hand-over
      return w.lane.split(" ").includes(one.lane) && !other && !young;
    });
    const wait = mine.find((w) => w.kind !== "work") ?? mine[0]; // undefined if no wait has lasted
    const [icon, words] = states[wait?.kind] ?? ["", "waits for no other one"];
    const other = Boolean(wait) && wait.kind !== "work";
    mark(one.el, "held", other);
    say(part(one.el, "text"), `${icon} ${one.called}`.trim());
    const since = other ? `, for ${milliseconds(Math.max(0, state.t - wait.t))}` : "";
    const where = wait?.on ? ` at ${wait.on}${wait.subject ? ` of ${wait.subject}` : ""}` : "";
    label(one.el, `${one.lane} ${words}${since}${where}.`);
  }

  /** @param {Padlock} padlock */
  showLock([station, name, stations, writer]) {
    const { player, infos, here } = this.stage;
    const el = $(`[data-lock="${station}"]`);
    const r = this.frozen ? player.tape.get(player.cursor) : null;
    const info = r && here(r) ? infos.get(r.point) : null;
    const under = Boolean(info?.locked && stations.includes(info.station));
    put(el, "data-state", under ? "held" : "free");
    mark(el, "closed", under);
    say(part(el, ".lock-word"), under ? "W" : "");
    const holder = (info?.lane ?? writer).split(" ")[0];
    label(el, under ? `${name}: held for writing by ${holder}, at this record.` : `${name}.`);
  }

  /** @param {fold.Resource | undefined} res @param {fold.State} state */
  shown(res, state) {
    const all = Object.values(res?.waits ?? {}).flat();
    const held = this.lasting(all.filter((w) => w.kind !== "work"));
    this.showBlocked(held.filter((w) => w.on));
    if (!res) return;
    const idle = all.filter((w) => w.kind === "work");
    for (const one of this.cast) this.showRole(one, [...held, ...idle], state);
    for (const lock of padlocks) this.showLock(lock);
  }

  /** @param {number} now */
  draw(now) {
    if (now >= this.due) this.stage.scene.stale = true;
  }
}
