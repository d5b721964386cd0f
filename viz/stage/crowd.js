// The crowd: from the sixth watcher on, a strip of dots, one for each client, in order of arrival. The dot is at the
// bottom of its cell if the client's channels are empty, and at the top if one is full. A mark behind the dot shows
// that the client got the dispatcher's last change. If a watcher does not report every event, the page derives this
// from the dispatcher's record and the watcher's selectors.

import { label, mark, part, put, when } from "../dom/dom.js";
import { counted } from "../lib/texts.js";

/**
 * @typedef {import("./scene.js").Scene} Scene
 * @typedef {import("./places.js").Entry} Entry
 * @typedef {[id: string, subject: fold.Subject | null]} Dot null if closed
 * @typedef {"waiting" | "some" | "full" | "closed" | "again"} Look of a dot; again: its client listed after a 410
 * @typedef {{ columns: number, rows: number, w: number, h: number }} Grid
 * @typedef {{ n: number, full: number, closed: number, waiting: number, dots: Dot[] }} Crowd
 */

const most = 5000; // clients; the log has the fill of at most this many
const widest = 8; // the most units of a dot's width
const lasts = 4e9; // ns of log time that the dot of a closed watcher stays
const lately = 600; // the number of records searched for closed watchers
/** @type {Look[]} */
const looks = ["waiting", "some", "full", "closed", "again"];

// gridOf returns the grid of n dots, each about twice as high as wide.
/** @param {number} n @param {{ W: number, H: number }} box @returns {Grid} */
function gridOf(n, { W, H }) {
  const rows = Math.max(1, Math.round(Math.sqrt((n * H) / (W * 2))));
  const columns = Math.ceil(n / rows);
  return { columns, rows, w: Math.min(widest, W / columns), h: H / rows };
}

// dotAt returns the index of the dot at a point of the strip (0 to 1 in both directions), or -1.
/** @param {number} n @param {{ W: number, H: number }} box @param {number} x @param {number} y */
function dotAt(n, box, x, y) {
  const { columns, rows, w } = gridOf(n, box);
  const column = Math.floor((x * box.W) / w);
  const at = Math.floor(y * rows) * columns + column;
  return x < 0 || y < 0 || y >= 1 || column >= columns || at >= n ? -1 : at;
}

// fillOf returns the fill of a watcher's fuller channel, from 0 to 1. A fill is fillLocked's byte (probe/lane.go).
/** @param {fold.Subject} subject */
const fillOf = ({ fill = 0, queues }) => (fill > 0 ? (fill - 1) / 100
  : Math.max(0, ...["input", "result"].map((name) => (queues[name]?.cap ? queues[name].len / queues[name].cap : 0))));

/** @param {fold.Subject} subject @param {number} fill @returns {Look} */
const lookOf = ({ counts }, fill) => (counts.WatcherForced ? "closed" : !counts.WatcherInterval ? "waiting"
  : fill >= 1 ? "full" : "some");

// got reports whether a watcher got the dispatcher's last change.
/** @param {fold.Subject} subject @param {fold.Last | undefined} last */
function got({ fill, opened, rv, counts, texts }, last) {
  if (!last?.key || opened > last.seq) return false;
  const { prefix = "", fields } = texts.WatcherAdded ?? {};
  return fill ? !fields && last.key.startsWith(prefix) : counts.InputSent !== undefined && rv === last.rv;
}

/** @param {string} id */
const numberOf = (id) => Number(id.replace(/\D/g, ""));

// withClosed returns the crowd with recently closed watchers in their old places, because watchers' numbers only grow.
/** @param {Scene} scene @returns {Dot[]} */
function withClosed({ places: { crowd }, closed, now }) {
  /** @type {Dot[]} */
  const all = crowd.map(([id, subject]) => [id, subject]);
  for (const [id, t] of closed) {
    if (t <= now && now - t <= lasts && !crowd.some(([each]) => each === id)) all.push([id, null]);
  }
  return all.length > crowd.length ? all.sort(([a], [b]) => numberOf(a) - numberOf(b)) : all;
}

// showCrowd draws the strip, one path for each look of dots.
/** @param {Scene} scene @param {fold.Resource} res */
export function showCrowd(scene, res) {
  const { geometry: { crowd: box, lane: { room } } } = scene;
  const el = part(scene.root, "#crowd");
  const all = withClosed(scene);
  const visible = all.length > room;
  const shown = all.slice(0, most); // even a small crowd is counted
  const { columns, w, h } = gridOf(shown.length, box);
  const gap = Math.min(1, w / 4);
  /** @type {{ [look in Look | "pulse"]: string }} */
  const paths = { waiting: "", some: "", full: "", closed: "", again: "", pulse: "" };
  const count = { waiting: 0, some: 0, full: 0, closed: 0, again: 0, picked: 0 };
  const { cast = [], now: { gone } = { gone: new Set() } } = scene.story ?? {};
  const nodes = cast.some(({ is }) => is.fields); // a story about watchers that an index finds
  const last = res.stations.dispatch?.last;
  const cell = (/** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ high) =>
    `M${x.toFixed(1)} ${y.toFixed(1)}h${(w - gap).toFixed(1)}v${high.toFixed(1)}h${(gap - w).toFixed(1)}z`;
  shown.forEach(([, subject], i) => {
    const fill = subject ? fillOf(subject) : 1;
    const fields = subject?.texts.WatcherAdded?.fields ?? "";
    const look = !subject ? "closed" : gone.has(fields) ? "again" : lookOf(subject, fill);
    count[look]++;
    const [x, y] = [box.X + (i % columns) * w, box.Y + Math.floor(i / columns) * h];
    const high = look === "some" ? Math.max(h * 0.3, (h - gap) * fill) : h - gap;
    paths[look] += cell(x, y + h - gap - high, high);
    const node = fields.includes("nodeName=story") && subject?.counts.InputSent;
    if (nodes ? !node : !subject || !got(subject, last)) return;
    count.picked++;
    paths.pulse += nodes ? `M${x - 3} ${y - 2}h8v${h + 4}h-8z` : cell(x, y, h - gap);
  });
  put(el, "visibility", visible ? "visible" : "hidden");
  for (const name of looks) put(part(el, `.${name}`), "d", visible ? paths[name] : "");
  const pulse = part(el, ".pulse"); // lit once for each change
  put(pulse, "d", visible ? paths.pulse : "");
  mark(pulse, "picked", nodes);
  if (visible && pulse.dataset.rv !== last?.rv) pulse.animate([{ opacity: 1 }, { opacity: 0.35 }], { duration: 700 });
  put(pulse, "data-rv", last?.rv ?? null);
  const { full, closed, waiting, again, picked } = count;
  const others = (res.stations.dispatch?.vars.watchers ?? 0) - picked;
  if (nodes && picked) scene.text("dispatch.to", `to ${picked} nodes + ${others}`);
  scene.crowd = { n: scene.places.crowd.length, full, closed, waiting, dots: all };
  const found = nodes && picked ? `${picked} of ${all.length} picked by node` : "";
  tell(scene, el, visible, again ? `${all.length - again} resumed, ${again} listed` : found);
}

/** @param {Scene} scene @param {HTMLElement} el @param {boolean} visible @param {string} more a story's words */
function tell(scene, el, visible, more) {
  const { n, full, closed, waiting } = scene.crowd;
  const parts = [full && `${full} full`, closed && `${closed} closed`, waiting && `${waiting} wait`].filter(Boolean);
  if (n > most) parts.push(`${most} drawn`);
  const words = more || `${counted(n, "client")}: ${parts.join(", ") || "all keep up"}`;
  scene.text("crowd.says", visible ? words : "", words.length > 28 ? 190 : 0);
  label(el, words);
}

// newCrowd opens the client whose dot the viewer clicks, and remembers closed watchers.
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
    if (dots[at]?.[1]) open(dots[at][0]);
  });
  const note = (/** @type {probe.Record[]} */ list) => {
    for (const r of list) if (r.point === "WatcherForced" && here(r)) scene.closed.set(r.subject ?? "", r.t);
    for (const [id, t] of scene.closed) if (player.state.t - t > lasts) scene.closed.delete(id);
  };
  /** @type {Set<string>} */
  const asked = new Set();
  return {
    applied: note,
    shown() { // makes the log keep each event of a watcher with a lane, for its lane
      for (const { id, subject, shown } of scene.places.watchers.lanes.values()) {
        if (!shown || !subject.fill) asked.delete(id);
        else if (!asked.has(id)) look(id);
        if (shown && subject.fill) asked.add(id);
      }
    },
    jumped() {
      scene.closed.clear();
      note(player.tape.between(Math.max(1, player.cursor - lately), player.cursor + 1));
    },
  };
}
