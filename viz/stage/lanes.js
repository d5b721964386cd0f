// Lanes: what there is several of. A lane for each watcher, each listener with its handler, each workqueue.

import { widthOf } from "../lib/canvas.js";
import { $, cut, label, mark, put, say, squeeze, widen } from "../lib/dom.js";
import { agentOf, namesOf } from "../log/fold.js";
import { showPipe } from "./pipe.js";

// kinds are the stations in which lanes stand, and the attributes that name their subjects.
const kinds = {
  watchers: ["watcher", "data-watcher"], listeners: ["listener", "data-listener"],
  handlers: ["handler", "data-handler-of"], workqueues: ["workqueue", "data-workqueue"],
};

// made is a new one of what the page has a prototype of (lanes.templ).
export const made = (name) => $(`#${name}`).content.querySelector("g").cloneNode(true);

// lanes keeps one group per subject in a container, in the order of the list unless an entry says its place. What does
// not fit is kept in the document, but not drawn; the last place then says how many more there are.
function lanes(scene, kind, list) {
  const [station, attribute] = kinds[kind];
  const { lane, listen, boxes } = scene.geometry;
  const size = kind === "watchers" ? lane : listen;
  const container = scene.root.querySelector(`#${kind}`);
  const known = scene.lanes[kind];
  for (const [id, el] of known) {
    if (list.some(([each]) => each === id)) continue;
    el.remove();
    known.delete(id);
  }
  const places = list.map(([, , place], n) => place ?? n);
  const rows = Math.max(0, ...places.map((place) => place + 1));
  const room = rows > size.room ? size.room - 1 : size.room;
  list.forEach(([id, subject], n) => {
    const [index, shown] = [places[n], places[n] < room];
    let el = known.get(id);
    if (!el) {
      el = made(`${station}-lane`);
      el.setAttribute(attribute, id);
      container.append(el);
      known.set(id, el);
    }
    put(el, "transform", `translate(0 ${index * size.height})`);
    mark(el, "over", !shown);
    el.lane = { id, index, subject, shown, at: [boxes[station].X, boxes[station].Y + index * size.height] };
    if (shown) wayIn(el, kind, scene);
  });
  return Math.max(0, rows - room);
}

// wayIn draws the rail from the fan-out to a lane.
function wayIn(el, kind, { geometry: g, tall }) {
  const path = el.querySelector(".way-in");
  if (!path) return;
  const [X, Y] = el.lane.at;
  const [from, to, axis] = kind === "watchers" ? [929, 0, g.serverAxis] : [g.boxes.processor.X, 302, g.clientAxis];
  if (tall && kind === "listeners") {
    const above = g.boxes.listener.Y - Y - 42;
    return put(path, "d", `M255 ${above}C255 ${above + 24} 316 -4 316 10Q316 26 302 26`);
  }
  const middle = (from - X + to) / 2;
  put(path, "d", `M${from - X} ${axis - Y}C${middle} ${axis - Y} ${middle} 26 ${to} 26`);
}

function opened(res, kind) {
  return Object.entries(res.subjects)
    .filter(([, subject]) => subject.kind === kind)
    .sort(([, a], [, b]) => a.opened - b.opened);
}

const more = (n) => (n > 0 ? `+${n} more` : "");

// nameOf is what a watcher's lane is called.
const nameOf = (subject) => agentOf(subject.texts.WireOpened);

// A lane's name ends before the counters, of which that of a large channel is wider.
const nameFont = "600 14px system-ui, sans-serif";
const [room, narrow, tallRoom] = [132, 108, 132]; // units
const most = 26; // letters of a name

// own is a client that the viewer has opened: kubectl, or a watcher of this page.
const own = (subject) => /^(kubectl|page-)/.test(nameOf(subject));

// naturally puts page-2 before page-10.
const naturally = new Intl.Collator("en", { numeric: true }).compare;

// inOrder gives lanes a fixed order: the informer on stage, in a story the informer, the viewer's own clients, and the
// others by their names.
function inOrder(list, scene) {
  const first = (s) => (scene.told?.story ? nameOf(s) === "informer" : serves(scene, s));
  const kind = (s) => (first(s) ? 0 : own(s) ? 1 : nameOf(s) ? 2 : 3);
  const ranks = new Map(list.map(([id, s]) => [id, [kind(s), nameOf(s), s.opened, id].join(" ")]));
  return list.sort(([a], [b]) => naturally(ranks.get(a), ranks.get(b)));
}

// forward gives the cast of a story the first lanes, each member its own place, also without a watcher; the order of
// the others stays.
function forward(list, scene) {
  const members = scene.told?.members ?? [];
  const place = ([id]) => members.findIndex((each) => each.subject === id);
  let others = members.length;
  return list.map((each) => [...each, place(each) >= 0 ? place(each) : others++]);
}

// reflects reports whether a subject is a reflector.
export const reflects = (subject) => Object.keys(subject?.counts ?? {}).some((each) => /^Reflector/.test(each));

// serves reports whether a watcher's client is the informer that is drawn.
export const serves = (scene, watcher) => namesOf(watcher).includes(scene.informer);

export function showWatchers(scene, res) {
  const list = forward(inOrder(opened(res, "watcher"), scene), scene);
  const hidden = lanes(scene, "watchers", list);
  scene.serving.clear();
  scene.text("watcher.n", list.length);
  scene.text("watcher.more", more(hidden));
  put(scene.root.querySelector("#watcher-rest"), "visibility", hidden > 0 ? "visible" : "hidden");
  scene.text("wire.n", list.length);
  scene.text("wire.streams", list.length === 1 ? "stream" : "streams");
  const others = list.filter(([, subject]) => !serves(scene, subject)).length; // whose ways lead off the stage
  scene.text("wire.others", others > 0 && others < list.length ? `${others} to others` : "");
  for (const [id, subject] of list) {
    const el = scene.lanes.watchers.get(id);
    const capacity = subject.vars.capacity ?? 0;
    el.pipes ??= ["input", "result"].map((name) => el.querySelector(`[data-queue="${name}"]`));
    for (const pipe of el.pipes) showPipe(scene, pipe, subject.queues[pipe.dataset.queue], capacity, el.lane.shown);
    if (serves(scene, subject)) scene.serving.add(id);
    if (!el.lane.shown) continue;
    label(el, cut(`${subject.texts.WireOpened ?? id}. It watches ${subject.texts.WatcherAdded ?? ""}`, 300));
    const member = scene.told?.members.find((each) => each.subject === id);
    mark(el, "pinned", Boolean(member));
    mark(el, "mine", own(subject) && !member);
    const [, watched = id] = /[^!]=([\w-]+)$/.exec(subject.texts.WatcherAdded) ?? []; // it has no connection
    const name = squeeze(nameOf(subject) || watched, most) + (own(subject) ? " · you" : "");
    const closed = subject.counts.WatcherForced ? " · closed" : ""; // it is there until its client has read the rest
    const [title, called] = [el.querySelector(".name"), (member?.name ?? name) + closed];
    const wide = scene.tall ? tallRoom : capacity < 100 ? room : narrow;
    say(title, called);
    widen(title, widthOf(called, nameFont) > wide ? wide : 0); // closer where it is wider than its room
    const end = serves(scene, subject) ? scene.edges.wireX : scene.edges.right + 6;
    put(el.querySelector(".way-out"), "d", `M218 26H${end - scene.geometry.boxes.watcher.X}`);
  }
}

// listening are the listeners that are drawn: all, in a story those of the client that is on stage.
const listening = (scene, res) => opened(res, "listener")
  .filter(([, s]) => !scene.told?.story || hangsOn(scene, s));

export function showListeners(scene, res) {
  const list = listening(scene, res);
  const hidden = lanes(scene, "listeners", list);
  lanes(scene, "handlers", list);
  scene.text("listener.more", more(hidden));
  for (const [id, subject] of list) {
    const el = scene.lanes.listeners.get(id);
    say(el.querySelector(".name"), squeeze(feeds(id), 10));
    label(el, cut(`listener ${id} of ${subject.texts.ListenerAdded || "an informer"}`, 200));
    mark(el, "elsewhere", !hangsOn(scene, subject));
    for (const name of ["add", "pending", "next"]) {
      showPipe(scene, el.querySelector(`[data-queue="${name}"]`), subject.queues[name], 0, el.lane.shown);
    }
    const { pending } = subject.queues;
    const calm = hangsOn(scene, subject) ? "pending 0" : "own informer"; // one that is not drawn
    say(el.querySelector('[data-queue="pending"] .num'), pending?.len ? `pending ${pending.len}/${pending.cap}` : calm);
    const handler = scene.lanes.handlers.get(id);
    const n = subject.counts.HandlerReturned ?? 0;
    const running = (subject.counts.HandlerCalled ?? 0) > n;
    const [slow, call] = [scene.told?.delays.get(id), scene.told?.calls.get(id)];
    const count = n === 1 ? "1 call" : `${n} calls`;
    const state = running ? (call ? `▶ ${call}` : "runs") : (call ?? (slow ? `takes ${slow}` : count));
    mark(handler, "running", running);
    mark(handler, "called", Boolean(call));
    say(handler.querySelector(".count"), call ? count : "");
    const words = handler.querySelector(".state");
    say(words, state);
    widen(words, call && state.length > 11 ? 90 : 0);
    put(handler, "aria-label", `handler of ${id}: ${state.replace("▶ ", "")}`);
  }
}

// hangsOn reports whether a listener belongs to the informer that is drawn. One of another informer is drawn where
// listeners are, and no rail leads to it.
export const hangsOn = (scene, listener) => (listener?.texts.ListenerAdded ?? scene.informer) === scene.informer;

// feeds is whose workqueue the handler of a listener fills, if it fills one: that of "scheduler" is called
// "scheduler-handler".
const feeds = (listener) => listener.replace(/-handler$/, "");

// beside gives each workqueue its place: that of the handler which fills it, or, if its owner watches by itself, one
// where no handler is, as long as there is one.
function beside(queues, handlers, room) {
  const own = new Set(queues.map(([id]) => handlers.indexOf(id)));
  const places = Array.from({ length: room + queues.length }, (_, i) => i);
  const free = [...places.filter((i) => i >= handlers.length && i < room),
    ...places.filter((i) => i < handlers.length && !own.has(i)), ...places.filter((i) => i >= room)];
  return queues.map(([id, subject]) => [id, subject, handlers.includes(id) ? handlers.indexOf(id) : free.shift()]);
}

export function showWorkqueues(scene, res) {
  const queues = Object.entries(res.subjects).filter(([, s]) => s.kind === "" && s.queues.workqueue)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const handlers = listening(scene, res).map(([id]) => feeds(id));
  const list = beside(queues, handlers, scene.geometry.listen.room);
  for (const [id, el] of scene.lanes.handlers) mark(el, "ends", !res.subjects[feeds(id)]?.queues.workqueue);
  const hidden = lanes(scene, "workqueues", list);
  scene.text("workqueue.more", more(hidden));
  for (const [id, subject] of list) {
    const el = scene.lanes.workqueues.get(id);
    say(el.querySelector(".name"), handlers.includes(id) ? `${cut(id, 11)}’s keys` : cut(id, 18));
    label(el, cut(subject.texts.Reconciled ?? id, 200));
    showPipe(scene, el.querySelector('[data-queue="workqueue"]'), subject.queues.workqueue, 0, el.lane.shown);
  }
}
