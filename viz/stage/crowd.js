// The crowd: if there are more than five watchers, each client is a dot. The fuller its watcher's channels, the higher
// the dot. Lit dots are the clients that the dispatcher's last change went to. If a watcher does not report each event,
// its dot is lit if the change's key has the watcher's prefix, and the watcher has no field selector.

import { $, label, mark, part, put, when } from "../dom/dom.js";
import { counted } from "../lib/texts.js";
import { newSubject } from "../log/fold.js";

/**
 * @typedef {import("./scene.js").Scene} Scene
 * @typedef {import("./places.js").Entry} Entry
 * @typedef {{ t: number, since: number, at: number, subject: fold.Subject }} Closed an evicted watcher's last state;
 *   t, since: log times, in ns, of its eviction and of the beginning of its blocked write; at: t by the stage's clock
 * @typedef {"waiting" | "some" | "full" | "closed" | "again"} Look of a dot; again: its client listed after a 410
 * @typedef {{ columns: number, rows: number, w: number, h: number }} Grid
 * @typedef {{ n: number, full: number, closed: number, waiting: number, dots: Entry[] }} Crowd
 */

const most = 5000; // the maximum number of dots, and of watchers whose fill the log has
const widest = 8; // the maximum width of a dot, in units
const lasts = 4e9; // the minimum time that a closed watcher stays, in ns of log time
const stays = 8000; // the same, in ms of the stage's clock
const lately = 600; // the number of records that are searched, after a jump, for closed watchers
/** @type {Look[]} */
const looks = ["waiting", "some", "full", "closed", "again"];

// gridOf returns the grid of n dots, each about twice as high as wide.
/** @param {number} n @param {{ W: number, H: number }} box @returns {Grid} */
function gridOf(n, { W, H }) {
  const rows = Math.max(1, Math.round(Math.sqrt((n * H) / (W * 2))));
  const columns = Math.ceil(n / rows);
  return { columns, rows, w: Math.min(widest, W / columns), h: H / rows };
}

// dotAt returns the index of the dot at a point of the crowd's box (0 to 1 in both directions), or -1.
/** @param {number} n @param {{ W: number, H: number }} box @param {number} x @param {number} y */
function dotAt(n, box, x, y) {
  const { columns, rows, w } = gridOf(n, box);
  const column = Math.floor((x * box.W) / w);
  const at = Math.floor(y * rows) * columns + column;
  return x < 0 || y < 0 || y >= 1 || column >= columns || at >= n ? -1 : at;
}

// fillOf returns the level of a watcher's fuller channel, from 0 to 1. fill, if not 0, is 1 plus this level in percent.
/** @param {fold.Subject} subject */
const fillOf = ({ fill = 0, queues }) => (fill > 0 ? (fill - 1) / 100
  : Math.max(0, ...["input", "result"].map((name) => (queues[name]?.cap ? queues[name].len / queues[name].cap : 0))));

/** @param {fold.Subject} subject @param {number} fill @returns {Look} */
const lookOf = ({ counts }, fill) => (counts.WatcherForced ? "closed" : !counts.WatcherInterval ? "waiting"
  : fill >= 1 ? "full" : "some");

// got reports whether the dispatcher's last change went to a watcher.
/** @param {fold.Subject} subject @param {fold.Last | undefined} last */
function got({ fill, opened, rv, counts, texts }, last) {
  if (!last?.key || opened > last.seq) return false;
  const { prefix = "", fields } = texts.WatcherAdded ?? {};
  return fill ? !fields && last.key.startsWith(prefix) : counts.InputSent !== undefined && rv === last.rv;
}

// showCrowd draws the crowd in its box, with one path for each look. It counts the crowd even if no dot is visible.
/** @param {Scene} scene @param {fold.Resource} res */
export function showCrowd(scene, res) {
  const { geometry: { crowd: box, lane: { room } } } = scene;
  const el = part(scene.root, "#crowd");
  const { crowd: all, n } = scene.places;
  const visible = all.length > room;
  const shown = all.slice(0, most);
  const { columns, w, h } = gridOf(shown.length, box);
  const gap = Math.min(1, w / 4);
  /** @type {{ [look in Look | "pulse"]: string }} */
  const paths = { waiting: "", some: "", full: "", closed: "", again: "", pulse: "" };
  const count = { waiting: 0, some: 0, full: 0, closed: 0, again: 0, picked: 0 };
  const { cast = [], now: { gone } = { gone: new Set() } } = scene.story ?? {};
  const nodes = cast.some(({ is }) => is.fields); // whether the story is about clients with field selectors
  const last = res.stations.dispatch?.last;
  const cell = (/** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ high) =>
    `M${x.toFixed(1)} ${y.toFixed(1)}h${(w - gap).toFixed(1)}v${high.toFixed(1)}h${(gap - w).toFixed(1)}z`;
  shown.forEach(([, subject], i) => {
    const fill = fillOf(subject);
    const fields = subject.texts.WatcherAdded?.fields ?? "";
    const look = gone.has(fields) ? "again" : lookOf(subject, fill);
    count[look]++;
    const [x, y] = [box.X + (i % columns) * w, box.Y + Math.floor(i / columns) * h];
    const high = look === "some" ? Math.max(h * 0.3, (h - gap) * fill) : h - gap;
    paths[look] += cell(x, y + h - gap - high, high);
    const node = fields.includes("nodeName=story") && subject.counts.InputSent;
    if (nodes ? !node : look === "closed" || !got(subject, last)) return;
    count.picked++;
    paths.pulse += nodes ? `M${x - 3} ${y - 2}h8v${h + 4}h-8z` : cell(x, y, h - gap);
  });
  put(el, "visibility", visible ? "visible" : "hidden");
  for (const name of looks) put(part(el, `.${name}`), "d", visible ? paths[name] : "");
  const pulse = part(el, ".pulse"); // flashes once for each change
  put(pulse, "d", visible ? paths.pulse : "");
  mark(pulse, "picked", nodes);
  if (visible && pulse.dataset.rv !== last?.rv) pulse.animate([{ opacity: 1 }, { opacity: 0.35 }], { duration: 700 });
  put(pulse, "data-rv", last?.rv ?? null);
  const { full, closed, waiting, again, picked } = count;
  const others = (res.stations.dispatch?.vars.watchers ?? 0) - picked;
  if (nodes && picked) scene.text("dispatch.to", `to ${picked} nodes + ${others}`);
  scene.crowd = { n, full, closed, waiting, dots: all };
  const found = nodes && picked ? `${picked} of ${all.length} picked by node` : "";
  tell(scene, el, visible, again ? `${all.length - again} resumed, ${again} listed` : found);
}

/** @param {Scene} scene @param {HTMLElement} el @param {boolean} visible @param {string} more a story's words */
function tell(scene, el, visible, more) {
  const { n, dots, full, closed, waiting } = scene.crowd;
  const parts = [closed && `${closed} closed`, full && `${full} full`, waiting && `${waiting} wait`].filter(Boolean);
  if (n > most) parts.push(`${most} drawn`);
  const others = full || closed ? "go on, ≤ 0.1 s late" : "keep up";
  const all = parts.length > 0 ? `${parts.join(", ")} · ${dots.length - full - closed - waiting} ${others}` : "";
  const words = more || all || `${counted(n, "client")}: all keep up`;
  scene.text("crowd.says", visible ? words : "", words.length > 28 ? 190 : 0);
  label(el, words);
}

// newCrowd returns the crowd's hooks. A click on a dot opens its client. Closed watchers stay for some seconds.
/**
 * @param {Scene} scene
 * @param {{
 *   player: page.Player, here: (r: probe.Record) => boolean, open: (id: string) => void, look: (id: string) => void,
 * }} on
 */
export function newCrowd(scene, { player, here, open, look }) {
  const el = part(scene.root, "#crowd");
  when(el, "click", (event) => {
    const { x, y, width, height } = part(el, ".wall").getBoundingClientRect();
    const { dots } = scene.crowd;
    const n = Math.min(most, dots.length);
    const at = dotAt(n, scene.geometry.crowd, (event.clientX - x) / width, (event.clientY - y) / height);
    event.stopPropagation();
    if (dots[at]) open(dots[at][0]);
  });
  /** @type {Set<string>} */
  const asked = new Set();
  /** @type {Entry[]} */
  let last = []; // the crowd as drawn
  /** @type {Map<string, number | undefined>} */
  let writes = new Map(); // the time at which the server's current write to a client began, by watcher
  const note = (/** @type {probe.Record[]} */ list) => {
    for (const r of list) {
      if (r.point !== "WatcherForced" || !here(r)) continue;
      const { subject: id = "", t } = r;
      const was = player.state.resources[scene.resource]?.subjects[id] ?? last.find(([each]) => each === id)?.[1];
      const subject = { ...(was ?? newSubject("watcher", 0)), counts: { ...was?.counts, WatcherForced: 1 } };
      scene.closed.set(id, { t, since: writes.get(id) ?? t, at: player.clock, subject });
    }
  };
  /** @param {(each: Closed) => boolean} over */
  const forget = (over) => {
    for (const [id, each] of scene.closed) if (over(each) && scene.closed.delete(id)) scene.unsettle();
  };
  when($("#stage"), "click", ({ target }) => scene.story || target.closest(".lane, #crowd") || forget(() => true));
  return {
    applied: note,
    draw() { forget(({ t, at }) => player.state.t - t > lasts && player.clock - at > stays); },
    /** @param {fold.Resource | undefined} res */
    shown(res) { // asks the program to report each event of a watcher whose lane is drawn
      last = scene.places.crowd;
      const { lanes } = scene.places.watchers;
      writes = new Map([...lanes.keys()].map((id) => [id, res?.waits[`ResultReceived ${id}`]?.[0]?.t]));
      for (const { id, subject, shown } of lanes.values()) {
        if (!shown || !subject.fill) asked.delete(id);
        else if (!asked.has(id)) look(id);
        if (shown && subject.fill) asked.add(id);
      }
    },
    jumped() {
      scene.closed.clear();
      note(player.tape.between(Math.max(1, player.cursor - lately), player.cursor + 1)
        .filter(({ t }) => player.state.t - t <= lasts));
    },
  };
}
