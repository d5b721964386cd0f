// Lanes: one for each watcher, each listener with its handler, and each workqueue.

import { sans, widthOf } from "../dom/canvas.js";
import { $, label, mark, part, put, say } from "../dom/dom.js";
import { counted, cut, squeeze } from "../lib/texts.js";
import { showCrowd } from "./crowd.js";
import { showPipe } from "./pipe.js";
import { feeds, nameOf, own, serves } from "./places.js";
import { brief, shortKey } from "./tokens.js";

const most = 32; // the maximum number of lanes of a kind in the document

/**
 * @typedef {import("./places.js").Kind} Kind
 * @typedef {import("./places.js").Lane} Lane
 * @typedef {import("./scene.js").Scene} Scene
 */

// words joins the named texts of a record, in the order of the names.
/** @param {probe.Record["texts"]} texts @param {probe.TextName[]} names */
const words = (texts, ...names) => names.map((name) => texts?.[name]).filter(Boolean).join(" ");

// kinds maps a kind of lane to its station and to the attribute that names a lane's subject.
/** @type {{ [kind in Kind]: [station: probe.Station, attribute: string] }} */
const kinds = {
  watchers: ["watcher", "data-watcher"], listeners: ["listener", "data-listener"],
  handlers: ["handler", "data-handler-of"], workqueues: ["workqueue", "data-workqueue"],
};

// made returns a copy of one of the page's prototypes (lanes.templ).
/** @param {string} name */
export function made(name) {
  const { content } = $(`#${name}`, HTMLTemplateElement);
  return /** @type {HTMLElement} */ (part(content, "g").cloneNode(true));
}

// lanes updates the elements of a kind's lanes, and returns these lanes: those that are drawn, and the first 32 (most).
// Any further watchers have no element; they are only dots in the crowd (crowd.js).
/** @param {Scene} scene @param {Kind} kind */
function lanes(scene, kind) {
  const [station, attribute] = kinds[kind];
  const known = scene.lanes[kind];
  const { lanes: all } = scene.places[kind];
  const kept = [...all.values()].filter(({ shown, index }) => shown || index < most);
  const ids = new Set(kept.map(({ id }) => id));
  for (const [id, el] of known) {
    if (ids.has(id)) continue;
    el.remove();
    known.delete(id);
  }
  return kept.map((lane) => {
    const el = known.get(lane.id) ?? made(`${station}-lane`);
    if (!known.has(lane.id)) {
      el.setAttribute(attribute, lane.id);
      part(scene.root, `#${kind}`).append(el);
      known.set(lane.id, el);
    }
    put(el, "transform", `translate(0 ${lane.at[1] - scene.geometry.boxes[station].Y})`);
    mark(el, "over", !lane.shown);
    el.lane = lane;
    if (lane.shown) wayIn(el, lane, kind, scene);
    return { el, ...lane };
  });
}

/** @param {Element} el @param {Lane} lane @param {Kind} kind @param {Scene} scene */
function wayIn(el, { at: [X, Y] }, kind, { geometry: g, tall }) {
  const path = el.querySelector(".way-in");
  if (!path) return;
  const [from, to, axis] = kind === "watchers" ? [g.turns.hub[0], 0, g.serverAxis]
    : [g.boxes.processor.X, g.stops.enters, g.clientAxis];
  if (tall && kind === "listeners") {
    const above = g.boxes.listener.Y - Y - 50;
    return put(path, "d", `M260 ${above - 64}V${above}C260 ${above + 34} 316 -14 316 10Q316 26 302 26`);
  }
  if (tall) return put(path, "d", "M-16 10Q-16 26 0 26"); // begins at the rail that passes all lanes
  const middle = (from - X + to) / 2;
  put(path, "d", `M${from - X} ${axis - Y}C${middle} ${axis - Y} ${middle} ${g.laneAxis} ${to} ${g.laneAxis}`);
}

/** @param {number} n */
const more = (n) => (n > 0 ? `+${n} more` : "");

export const nameFont = `600 14px ${sans}`;
const room = 148; // the maximum width of a name, in units
const late = 100; // more versions or notifications than this make a client or a handler late
const letters = 26; // the maximum number of letters in a name

/** @param {Scene} scene @param {fold.Resource} res */
export function showWatchers(scene, res) {
  const { n } = scene.places;
  scene.text("watcher.n", n);
  scene.text("wire.n", counted(n, "stream"));
  for (const lane of lanes(scene, "watchers")) showWatcher(scene, res, lane);
  showCrowd(scene, res);
}

// unread returns how many versions lie between the last event written to a watcher's client and the last one that the
// client has read. It returns 0 for a client of another program, which does not report what it reads.
/** @param {fold.Resource} res @param {fold.Subject} watcher */
function unread({ subjects }, watcher) {
  const name = nameOf(watcher);
  const { rv = "0" } = subjects[`${name}-informer`] ?? subjects[name] ?? {};
  return rv === "0" ? 0 : Number(watcher.rv) - Number(rv);
}

/** @param {Scene} scene @param {fold.Resource} res @param {Lane & { el: Element }} lane */
function showWatcher(scene, res, { id, subject, shown, el }) {
  const capacity = subject.vars.capacity ?? 0;
  el.pipes ??= ["input", "result"].map((name) => part(el, `[data-queue="${name}"]`));
  for (const pipe of el.pipes) showPipe(scene, pipe, subject.queues[pipe.dataset.queue ?? ""], capacity, shown);
  if (!shown) return;
  const { WireOpened: opened, WatcherAdded: added } = subject.texts;
  const who = opened ? words(opened, "agent", "path", "query") : id;
  label(el, cut(`${who}. It watches ${words(added, "prefix", "labels", "fields")}`, 300));
  const member = scene.story?.members.find((each) => each.subject === id);
  mark(el, "pinned", Boolean(member));
  mark(el, "mine", own(subject) && !member);
  const [, watched = id] = /[^!]=([\w-]+)$/.exec(words(added, "labels", "fields")) ?? []; // its selector's value
  const plain = serves(scene, subject) ? "your controller" : nameOf(subject) || watched;
  const name = squeeze(plain, letters) + (own(subject) ? " · you" : "");
  const closed = Boolean(subject.counts.WatcherForced);
  mark(el, "closed", closed);
  mark(el, "few", Boolean(added?.fields)); // its field selector lets few events through
  const [title, called] = [part(el, ".name"), member?.name ?? name];
  say(title, called);
  put(title, "textLength", widthOf(called, nameFont) > room ? room : null); // condensed if too wide
  // Outside a stream only one change is under way at a time. A client that has yet to get this one is not late.
  const behind = scene.streaming ? unread(res, subject) : 0;
  mark(el, "late", behind > late);
  const { t = 0, since = t } = scene.closed.get(id) ?? {};
  const ms = Math.ceil((t - since) / 1e6);
  const long = ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`;
  const evicted = closed && `evicted${ms > 0 ? `, ${long} behind` : ""}`;
  const blind = el.querySelector(`[data-hand="line.stall"][aria-pressed="true"]`);
  const sent = subject.rv === "0" ? "" : `has ${subject.rv}`;
  const has = blind ? "does not read" : behind > late ? `${behind} behind` : sent;
  say(part(el, ".has"), evicted || has);
  const { boxes: { watcher: { X, Y, W, H } }, laneAxis, guest, wireX } = scene.geometry;
  const yours = scene.serving.has(id) && !closed; // the client is the informer below
  mark(el, "yours", yours);
  const [down, below] = [wireX - X, Y + H - (el.lane?.at[1] ?? Y)];
  const end = yours ? `${down - 10}Q${down} ${laneAxis} ${down} ${laneAxis + 10}V${below}` : guest.X;
  put(part(el, ".way-out"), "d", `M${W} ${laneAxis}H${end}`);
}

/** @param {Scene} scene */
export function showListeners(scene) {
  scene.text("listener.more", more(scene.places.listeners.hidden));
  for (const { el, id, subject } of lanes(scene, "handlers")) showHandler(scene, el, id, subject);
  for (const { el, id, subject, shown } of lanes(scene, "listeners")) {
    say(part(el, ".name"), squeeze(feeds(id), 10));
    label(el, cut(`listener ${id} of ${subject.texts.ListenerAdded?.informer || "an informer"}`, 200));
    for (const name of ["add", "pending", "next"]) {
      showPipe(scene, part(el, `[data-queue="${name}"]`), subject.queues[name], 0, shown);
    }
    const { pending } = subject.queues;
    mark(el, "late", (pending?.len ?? 0) > late);
    say(part(el, '[data-queue="pending"] .num'), pending?.len ? `pending ${pending.len}/${pending.cap}` : "pending 0");
  }
}

/** @param {Scene} scene @param {Element} el @param {string} id @param {fold.Subject} subject */
function showHandler(scene, el, id, { counts, last }) {
  const n = counts.HandlerReturned ?? 0;
  const running = (counts.HandlerCalled ?? 0) > n;
  const [slow, call] = [scene.story?.now.delays.get(id), scene.story?.now.calls.get(id)];
  const count = n === 1 ? "1 call" : `${n} calls`;
  const done = last.point === "HandlerReturned" && scene.followed(last) && `✓ ${brief(shortKey(last.key), 10)}`;
  const state = running ? (call ? `▶ ${call}` : "runs") : (call ?? (slow ? `takes ${slow}` : done || count));
  mark(el, "followed", Boolean(done));
  mark(el, "running", running);
  mark(el, "called", Boolean(call));
  say(part(el, ".count"), call ? count : "");
  const words = part(el, ".state");
  say(words, state);
  put(words, "textLength", call && state.length > 11 ? 90 : null);
  put(el, "aria-label", `handler of ${id}: ${state.replace("▶ ", "")}`);
}

/** @param {Scene} scene @param {fold.Resource} res */
export function showWorkqueues(scene, res) {
  for (const [id, el] of scene.lanes.handlers) mark(el, "ends", !res.subjects[feeds(id)]?.queues.workqueue);
  const handlers = new Set([...scene.lanes.handlers.keys()].map(feeds));
  scene.text("workqueue.more", more(scene.places.workqueues.hidden));
  for (const { el, id, subject, shown } of lanes(scene, "workqueues")) {
    say(part(el, ".name"), handlers.has(id) ? `${cut(id, 11)}’s keys` : cut(id, 18));
    label(el, cut(subject.texts.Reconciled?.did ?? id, 200));
    showPipe(scene, part(el, '[data-queue="workqueue"]'), subject.queues.workqueue, 0, shown);
  }
}
