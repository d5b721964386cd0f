// Waits marks the queues at which a goroutine waits, and names blocked goroutines: four on every event's path, which
// are named even while they run if all machinery is shown (roleGlyph), and three others (postGlyph). While time is
// stopped, a padlock is closed if the point of the record at the cursor is always reported under the lock.

import { label, mark, part, parts, put, say } from "../dom/dom.js";
import { milliseconds } from "../lib/texts.js";

/**
 * @typedef {object} Stage
 * @property {page.Scene} scene
 * @property {page.Infos} infos
 * @property {page.Player} player
 * @property {(r: { resource?: string }) => boolean} here
 */

const grace = 250; // ms that a goroutine waits before its wait is shown, because most hand-overs take less

/** @type {{ [kind: string]: [icon: string, words: string] }} */
const states = {
  room: ["⇥", "waits for room"], taker: ["⇥", "waits for a receiver"],
  client: ["⇥", "writes to its client"], version: ["◔", "waits for a version"],
  return: ["▶", "runs what it calls"], work: ["⇤", "has nothing to do"],
};

export class Waits {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    /** @type {Map<number, number>} */
    this.firstSeen = new Map(); // the times at which waits first appeared, by the wait's seq
    this.due = Infinity; // when the next wait has lasted long enough to be shown
    /** @type {Set<Element>} */
    this.marked = new Set(); // the drawings of queues at which goroutines wait
  }

  get frozen() { return this.stage.player.mode === "frozen"; }

  // lasting returns the waits that have lasted for grace or, while the picture is frozen, all of them.
  /** @param {fold.Wait[]} waits */
  lasting(waits) {
    const now = performance.now();
    this.firstSeen = new Map(waits.map(({ seq }) => [seq, this.firstSeen.get(seq) ?? now]));
    const since = (/** @type {fold.Wait} */ { seq }) => now - (this.firstSeen.get(seq) ?? now);
    const young = this.frozen ? [] : waits.filter((w) => since(w) < grace);
    this.due = now + Math.min(...young.map((w) => grace - since(w)));
    return waits.filter((w) => !young.includes(w));
  }

  // pipeOf returns the drawing of a wait's queue (the one in the subject's lane, or the only one), or null.
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

  // showRole shows the wait of a glyph's goroutine. A wait's lane lists the goroutines that may wait at its point.
  /** @param {HTMLElement} el @param {fold.Wait[]} waits @param {fold.State} state */
  showRole(el, waits, state) {
    const { scene } = this.stage;
    const { role, lane = "", called, subject } = el.dataset;
    const whose = subject === "informer" ? scene.informer : subject;
    const mine = waits.filter((w) => {
      const other = whose && w.on !== "add" && w.subject && w.subject !== whose;
      // a story may stop during a hand-over
      const young = role === "stream" && scene.story && state.t - w.t <= grace * 1e6;
      return w.lane.split(" ").includes(lane) && !other && !young;
    });
    const wait = mine.find((w) => w.kind !== "work") ?? mine[0]; // undefined if no wait has lasted
    const [icon, words] = states[wait?.kind] ?? ["", "waits for no other one"];
    const other = Boolean(wait) && wait.kind !== "work";
    mark(el, "held", other);
    say(part(el, "text"), `${icon} ${called}`.trim());
    const since = other ? `, for ${milliseconds(Math.max(0, state.t - wait.t))}` : "";
    const where = wait?.on ? ` at ${wait.on}${wait.subject ? ` of ${wait.subject}` : ""}` : "";
    label(el, `${lane} ${words}${since}${where}.`);
  }

  /** @param {HTMLElement} el */
  showLock(el) {
    const { player, infos, here } = this.stage;
    const { name, stations = "", writer = "" } = el.dataset;
    const r = this.frozen ? player.tape.get(player.cursor) : null;
    const info = r && here(r) ? infos.get(r.point) : null;
    const under = Boolean(info?.locked && stations.split(" ").includes(info.station));
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
    const { root } = this.stage.scene;
    for (const el of parts(root, "[data-role]")) this.showRole(el, [...held, ...idle], state);
    for (const el of parts(root, "[data-lock]")) this.showLock(el);
  }

  /** @param {number} now */
  draw(now) {
    if (now >= this.due) this.stage.scene.stale = true;
  }
}
