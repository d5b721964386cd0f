// Places: where each lane stands. They follow from the picture, from the story that is told, and from the informer that
// is drawn. Nothing here knows the document.

import { agentOf, namesOf } from "../log/fold.js";

/**
 * @typedef {import("./path.js").Spot} Spot
 * @typedef {{ id: string, index: number, subject: fold.Subject, shown: boolean, at: Spot }} Lane
 * @typedef {{ lanes: Map<string, Lane>, hidden: number }} Group
 * @typedef {"watchers" | "listeners" | "handlers" | "workqueues"} Kind
 * @typedef {{ [kind in Kind]: Group } & { informer: string, serving: Set<string> }} Places
 * @typedef {[id: string, subject: fold.Subject, place?: number]} Entry
 * @typedef {{ members: { subject: string }[] }} StoryView
 * @typedef {object} Scene
 * @property {Pick<stage.Geometry, "lane" | "listen" | "boxes">} geometry
 * @property {StoryView | null} story
 * @property {string} informer
 */

// nameOf is what a watcher's lane is called.
/** @param {fold.Subject} subject */
export const nameOf = (subject) => agentOf(subject.texts.WireOpened?.agent);

// own is a client that the viewer has opened: kubectl, or a watcher of this page.
/** @param {fold.Subject} subject */
export const own = (subject) => /^(kubectl|page-)/.test(nameOf(subject));

// reflects reports whether a subject is a reflector.
/** @param {fold.Subject | undefined} subject */
export const reflects = (subject) => Object.keys(subject?.counts ?? {}).some((each) => /^Reflector/.test(each));

// serves reports whether a watcher's client is the informer that is drawn.
/** @param {{ informer: string }} scene @param {fold.Subject} watcher */
export const serves = (scene, watcher) => namesOf(watcher).includes(scene.informer);

// hangsOn reports whether a listener belongs to the informer that is drawn. One of another informer is drawn where
// listeners are, and no rail leads to it.
/** @param {{ informer: string }} scene @param {fold.Subject | undefined} listener */
export const hangsOn = (scene, listener) =>
  (listener?.texts.ListenerAdded?.informer ?? scene.informer) === scene.informer;

// feeds is whose workqueue the handler of a listener fills, if it fills one: that of "scheduler" is called
// "scheduler-handler".
/** @param {string} listener */
export const feeds = (listener) => listener.replace(/-handler$/, "");

// placesOf returns the lanes of a resource by their kind: {lanes, hidden}, of which lanes has {id, index, subject,
// shown, at} by id, and hidden is how many there is no room for; and which watchers serve the informer. scene has its
// geometry, what is told, and the informer.
/** @param {Scene} scene @param {fold.Resource} res @returns {Places} */
export function placesOf(scene, res) {
  const { informer } = scene;
  const { lane, listen } = scene.geometry;
  const watchers = opened(res, "watcher");
  const listeners = opened(res, "listener").filter(([, s]) => !scene.story || hangsOn(scene, s));
  return {
    informer, serving: new Set(watchers.filter(([, s]) => serves(scene, s)).map(([id]) => id)),
    watchers: placed(scene, "watcher", forward(inOrder(watchers, scene), scene), lane),
    listeners: placed(scene, "listener", listeners, listen),
    handlers: placed(scene, "handler", listeners, listen),
    workqueues: placed(scene, "workqueue", beside(res, listeners.map(([id]) => feeds(id)), listen.room), listen),
  };
}

// placed gives each of a list its place: the one that an entry says, or the next. Of those that have no room the last
// place says how many there are.
/**
 * @param {Scene} scene @param {probe.Station} station @param {Entry[]} list
 * @param {{ height: number, room: number }} size @returns {Group}
 */
function placed(scene, station, list, { height, room: most }) {
  const { X, Y } = scene.geometry.boxes[station];
  const rows = list.reduce((n, [, , index], i) => Math.max(n, (index ?? i) + 1), 0);
  const room = rows > most ? most - 1 : most;
  const lanes = /** @type {Map<string, Lane>} */ (new Map(list.map(([id, subject, place], i) => {
    const index = place ?? i;
    return /** @type {const} */ ([id, { id, index, subject, shown: index < room, at: [X, Y + index * height] }]);
  })));
  return { lanes, hidden: Math.max(0, rows - room) };
}

/** @param {fold.Resource} res @param {string} kind @returns {Entry[]} */
function opened(res, kind) {
  return Object.entries(res.subjects)
    .filter(([, subject]) => subject.kind === kind)
    .sort(([, a], [, b]) => a.opened - b.opened);
}

// inOrder gives lanes a fixed order: the informer on stage, in a story the informer, the viewer's own clients, and the
// others by their names, page-2 before page-10.
/** @param {Entry[]} list @param {Scene} scene */
function inOrder(list, scene) {
  /** @param {fold.Subject} s */
  const first = (s) => (scene.story ? nameOf(s) === "informer" : serves(scene, s));
  /** @param {fold.Subject} s */
  const kind = (s) => (first(s) ? 0 : own(s) ? 1 : nameOf(s) ? 2 : 3);
  /** @param {Entry} entry */
  const rank = ([id, s]) => [kind(s), nameOf(s), s.opened, id].join(" ").toLowerCase()
    .replace(/\d+/g, (n) => n.padStart(20, "0"));
  const ranked = list.map((each) => ({ each, rank: rank(each) }));
  return ranked.sort((a, b) => (a.rank < b.rank ? -1 : 1)).map(({ each }) => each);
}

// forward gives the cast of a story the first lanes, each member its own place, also without a watcher; the order of
// the others stays.
/** @param {Entry[]} list @param {Scene} scene @returns {Entry[]} */
function forward(list, scene) {
  const cast = new Map((scene.story?.members ?? []).map(({ subject }, i) => [subject, i]));
  let others = scene.story?.members.length ?? 0;
  return list.map(([id, subject]) => [id, subject, cast.get(id) ?? others++]);
}

// beside gives each workqueue its place: that of the handler which fills it, or, if its owner watches by itself, one
// where no handler is, as long as there is one.
/** @param {fold.Resource} res @param {string[]} handlers @param {number} room @returns {Entry[]} */
function beside(res, handlers, room) {
  const queues = Object.entries(res.subjects).filter(([, s]) => s.kind === "" && s.queues.workqueue)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const filled = new Map(handlers.map((id, i) => [id, i]));
  const own = new Set(queues.map(([id]) => filled.get(id)));
  const places = Array.from({ length: room + queues.length }, (_, i) => i);
  const free = [...places.filter((i) => i >= handlers.length && i < room),
    ...places.filter((i) => i < handlers.length && !own.has(i)), ...places.filter((i) => i >= room)];
  return queues.map(([id, subject]) => [id, subject, filled.get(id) ?? free.shift()]);
}
