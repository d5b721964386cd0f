// Who waits, and where. The queues at which a goroutine waits are marked; why it does, the inspector says. Goroutines
// are drawn where they stand: the four that every event has to pass by name (roles), those of each lane between the
// channels they take from and send to, and, while it is held up, one beside the etcd3 watch or the reflector (posts).
// A padlock stands on the border of each station that has a lock. The log says of every record whether a lock was held
// there: where time stands, the padlock is closed if the record at the cursor was reported under it.

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
 * @typedef {(point: probe.PointName, id: string) => boolean} Blocked
 */

const grace = 250; // ms that a goroutine waits before it is shown: a hand-over that takes a moment is no stop

// roles and posts by the name of the glyph: the goroutine, of which subject, and what it is called there. What it waits
// for is in the waits of the picture, by the points that stand under its name in the table.
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
// states of a goroutine by the kind of its wait: an icon, and the words.
/** @type {{ [kind: string]: [icon: string, words: string] }} */
export const states = {
  room: ["⇥", "waits for room"], taker: ["⇥", "waits for a receiver"],
  client: ["⇥", "writes to its client"], version: ["⌛", "waits for a version"],
  return: ["▶", "runs what it calls"], work: ["⇤", "has nothing to do"],
};
// signs of a lane's goroutines by state: a path around the origin, and the words.
/** @type {{ [does: string]: [path: string, words: string] }} */
const signs = {
  send: ["M-3.6 0H1.6M-0.8 -2.4L1.8 0L-0.8 2.4M3.8 -3.4V3.4", "waits to send"],
  receive: ["M3.6 0H-1.6M0.8 -2.4L-1.8 0L0.8 2.4M-3.8 -3.4V3.4", "waits to receive"],
  run: ["M-2.2 -3.6L3.6 0L-2.2 3.6Z", "runs"],
};
// padlocks: the station on which each stands, its name, where what is done under it is reported, and who holds it for
// writing.
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
    this.firstSeen = new Map(); // by the seq of a wait: when this page saw it first
    this.due = Infinity; // when the next wait will have lasted
    /** @type {Set<Element>} */
    this.marked = new Set(); // the drawings of queues at which goroutines wait
  }

  get frozen() { return this.stage.player.mode === "frozen"; }

  // lasting leaves out the waits that have only begun, except where the picture stands still.
  /** @param {fold.Wait[]} waits */
  lasting(waits) {
    const now = performance.now();
    this.firstSeen = new Map(waits.map(({ seq }) => [seq, this.firstSeen.get(seq) ?? now]));
    const since = (/** @type {fold.Wait} */ { seq }) => now - (this.firstSeen.get(seq) ?? now);
    const young = this.frozen ? [] : waits.filter((w) => since(w) < grace);
    this.due = now + Math.min(...young.map((w) => grace - since(w)));
    return waits.filter((w) => !young.includes(w));
  }

  // pipeOf finds the drawing of a queue: in a lane, or the one that there is.
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
    put(document.body, "data-blocked", waits.length);
  }

  /** @param {Role & { el: Element }} one @param {fold.Wait[]} waits @param {fold.State} state */
  showRole(one, waits, state) {
    const { scene } = this.stage;
    const mine = waits.filter((w) => {
      const other = one.subject && w.on !== "add" && w.subject && w.subject !== one.subject(scene);
      const young = one.hands && scene.story && state.t - w.t <= grace * 1e6; // a story stands also in a hand-over
      return w.lane.split(" ").includes(one.lane) && !other && !young;
    });
    const wait = mine.find((w) => w.kind !== "work") ?? mine[0]; // undefined if it hardly waits
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
    const lasted = new Set(held.map((w) => w.seq));
    /** @type {Blocked} */
    const blocked = (point, id) => lasted.has(res.waits[`${point} ${id}`]?.[0].seq);
    for (const one of this.cast) this.showRole(one, [...held, ...idle], state);
    const { watchers, listeners } = this.stage.scene.lanes;
    for (const [id, el] of watchers) if (el.lane?.shown && res.subjects[id]) showWatcher(id, el, blocked);
    for (const [id, el] of listeners) {
      if (el.lane?.shown && res.subjects[id]) showListener(id, el, blocked, res.subjects[id]);
    }
    for (const lock of padlocks) this.showLock(lock);
  }

  /** @param {number} now */
  draw(now) {
    if (now >= this.due) this.stage.scene.stale = true;
  }
}

/** @param {Element} el @param {string} name @param {string} does @param {string} who @param {string} [why] */
function stand(el, name, does, who, why = "") {
  const node = part(el, `[data-goroutine="${name}"]`);
  const [path, words] = signs[does] ?? ["", "has nothing to do"];
  put(node, "data-does", does);
  put(part(node, "path"), "d", path);
  label(node, `${who} ${words}${why}`);
}

/** @param {string} id @param {Element} el @param {Blocked} blocked */
function showWatcher(id, el, blocked) {
  const [full, deaf] = [blocked("ResultBlocked", id), blocked("ResultReceived", id)];
  stand(el, "process", full ? "send" : "receive", `${id} processInterval`, full ? ": result is full" : " from input");
  const client = deaf ? ": its client does not read" : " from result";
  stand(el, "serve", deaf ? "send" : "receive", `${id} WatchServer`, client);
}

/** @param {string} id @param {Element} el @param {Blocked} blocked @param {fold.Subject} subject */
function showListener(id, el, blocked, { counts, queues }) {
  const calls = (counts.HandlerCalled ?? 0) > (counts.HandlerReturned ?? 0);
  const pending = queues.pending?.len ?? 0;
  const full = blocked("AddBlocked", id);
  stand(el, "distribute", full ? "send" : "", "the informer's goroutine", full ? ` ${id} a notification` : "");
  stand(el, "pop", "receive", `${id} pop`, " from add");
  stand(el, "offer", pending > 0 ? "send" : "", `${id} pop`, pending > 0 ? ` to next; ${pending} are pending` : "");
  stand(el, "run", calls ? "run" : "receive", `${id} run`, calls ? " the handler" : " from next");
}
