// Places: the spots of the lanes, which follow from the folded state, the running story and the informer on stage.

import { agentOf, opened } from "../log/fold.js";

/**
 * @typedef {import("./ground.js").Spot} Spot
 * @typedef {{ id: string, index: number, subject: fold.Subject, shown: boolean, at: Spot }} Lane
 * @typedef {{ lanes: Map<string, Lane>, hidden: number }} Group
 * @typedef {"watchers" | "listeners" | "handlers" | "workqueues"} Kind
 * @typedef {{ [kind in Kind]: Group } & { informer: string, serving: Set<string>, n: number, crowd: Entry[] }} Places
 *   n: the number of open watchers; crowd: these and the closed ones, in the order in which they opened
 * @typedef {[id: string, subject: fold.Subject, place?: number]} Entry
 * @typedef {{ members: { subject: string }[] }} StoryView
 * @typedef {object} Scene
 * @property {Pick<stage.Geometry, "lane" | "listen" | "boxes" | "clientAxis" | "laneAxis">} geometry
 * @property {StoryView | null} story
 * @property {string} [front] the id of a watcher that must be drawn
 * @property {string} informer
 * @property {Map<string, { subject: fold.Subject }>} closed the watchers that were evicted lately
 */

/** @type {WeakMap<object, string>} */
const names = new WeakMap(); // names by WireOpened's texts, cached because each frame needs the name of every watcher

/** @param {fold.Subject} subject */
export function nameOf({ texts: { WireOpened: said } }) {
  if (!said) return "";
  const name = names.get(said) ?? agentOf(said.agent);
  names.set(said, name);
  return name;
}

// own reports whether a watcher's client is the viewer's: kubectl, or a watcher opened on a page.
/** @param {fold.Subject} subject */
export const own = (subject) => ours.test(nameOf(subject));
const ours = /^(kubectl|page-)/;

export const programs = /\/leases(\/|$)|\/status$/; // paths to which programs write often, and viewers do not

/** @param {fold.Subject | undefined} subject */
export const reflects = (subject) => Object.keys(subject?.counts ?? {}).some((each) => /^Reflector/.test(each));

// serves reports whether a watcher's client is the informer on stage.
/** @param {{ informer: string }} scene @param {fold.Subject} watcher */
export const serves = (scene, watcher) => named(scene, nameOf(watcher));
/** @param {{ informer: string }} scene @param {string} name */
export const named = ({ informer }, name) => name !== "" && (informer === name || informer === `${name}-informer`);

// guestOf returns the lane of a client that is not the one on stage, by the name of the client's informer.
/** @param {Pick<Places, "watchers" | "serving">} places @param {string | undefined} client */
export const guestOf = ({ watchers: { lanes }, serving }, client = "") => [...lanes.values()].find(({ id, subject }) =>
  !serving.has(id) && named({ informer: client }, nameOf(subject)));

// hangsOn reports whether a listener belongs to the informer on stage. Other listeners are not drawn.
/** @param {{ informer: string }} scene @param {fold.Subject | undefined} listener */
export const hangsOn = (scene, listener) =>
  (listener?.texts.ListenerAdded?.informer ?? scene.informer) === scene.informer;

// feeds returns the owner of the workqueue that a listener's handler may fill: "scheduler" for "scheduler-handler".
/** @param {string} listener */
export const feeds = (listener) => listener.replace(/-handler$/, "");

// numberOf returns the number in a watcher's id; later watchers have higher ones.
/** @param {string} id */
const numberOf = (id) => Number(id.replace(/\D/g, ""));

// placesOf returns a resource's lanes by kind, how many have no room, the crowd, and the informer with its watchers.
/** @param {Scene} scene @param {fold.Resource} res @returns {Places} */
export function placesOf(scene, res) {
  const { informer } = scene;
  const { lane, listen } = scene.geometry;
  const watchers = opened(res, "watcher");
  const closed = [...scene.closed].filter(([id]) => !res.subjects[id])
    .map(([id, { subject }]) => /** @type {Entry} */ ([id, subject]));
  const crowd = closed.length > 0 ? [...watchers, ...closed].sort(([a], [b]) => numberOf(a) - numberOf(b)) : watchers;
  const drawn = scene.story ? watchers : crowd.filter(([id, s]) => res.subjects[id] || nameOf(s));
  const listeners = opened(res, "listener").filter(([, s]) => hangsOn(scene, s));
  return {
    informer, n: watchers.length, crowd,
    serving: new Set(watchers.filter(([, s]) => serves(scene, s)).map(([id]) => id)),
    watchers: placed(scene, "watcher", forward(inOrder(drawn, scene), scene), lane),
    listeners: placed(scene, "listener", listeners, listen, listeners.length),
    handlers: placed(scene, "handler", listeners, listen, listeners.length),
    workqueues: placed(scene, "workqueue", queued(scene, res, listeners.map(([id]) => feeds(id))), listen,
      listeners.length),
  };
}

// placed gives each entry the lane that it names, or else the one of its index. The lowest lane is the first watcher's,
// where the wire goes down. If high > 0, the group has that many rows, centred on the client half's rail.
/**
 * @param {Scene} scene @param {probe.Station} station @param {Entry[]} list
 * @param {{ height: number, room: number }} size @param {number} [high] @returns {Group}
 */
function placed(scene, station, list, { height, room: most }, high = 0) {
  const { boxes, clientAxis, laneAxis } = scene.geometry;
  const { X, Y } = boxes[station];
  const rows = list.reduce((n, [, , index], i) => Math.max(n, (index ?? i) + 1), 0);
  const room = rows > most ? most - 1 : most;
  const top = clientAxis - laneAxis - ((Math.min(high, most) - 1) / 2) * height;
  const lanes = /** @type {Map<string, Lane>} */ (new Map(list.map(([id, subject, place], i) => {
    const index = place ?? i;
    const y = high > 0 ? top + index * height : Y + (most - 1 - index) * height;
    return /** @type {const} */ ([id, { id, index, subject, shown: index < room && index > -2, at: [X, y] }]);
  })));
  return { lanes, hidden: Math.max(0, rows - room) };
}

// inOrder sorts watchers for lanes: the informer on stage (in a story, the client named informer), the viewer's own
// clients, then the others, each kind by name, page-2 before page-10. A closed lane comes after its client's new one.
/** @param {Entry[]} list @param {Scene} scene */
function inOrder(list, scene) {
  /** @param {string} name */
  const first = (name) => (scene.story ? name === "informer" : named(scene, name));
  /** @param {string} name */
  const kind = (name) => (first(name) ? 0 : ours.test(name) ? 1 : name ? 2 : 3);
  /** @param {Entry} entry */
  const rank = ([id, s]) => {
    const name = nameOf(s);
    return [kind(name), name, s.counts.WatcherForced ?? 0, s.opened, id].join(" ").toLowerCase()
      .replace(/\d+/g, (n) => n.padStart(20, "0"));
  };
  const ranked = list.map((each) => ({ each, rank: rank(each) }));
  return ranked.sort((a, b) => (a.rank < b.rank ? -1 : 1)).map(({ each }) => each);
}

// forward gives the cast of a story the first lanes, one for each member even if it has no watcher. If there are many
// lanes, the subject that must be drawn gets the last drawn one; the others keep their order.
/** @param {Entry[]} list @param {Scene} scene @returns {Entry[]} */
function forward(list, scene) {
  const cast = new Map((scene.story?.members ?? []).map(({ subject }, i) => [subject, i]));
  let others = scene.story?.members.length ?? 0;
  const seen = list.findIndex(([id]) => id === scene.front);
  const last = scene.geometry.lane.room - 2;
  if (seen > last && list.length > last + 2) list.splice(last, 0, ...list.splice(seen, 1));
  return list.map(([id, subject]) => [id, subject, cast.get(id) ?? others++]);
}

// queued returns the handlers' workqueues, each beside its handler. In a story, others are above, the fullest lowest.
/** @param {Scene} scene @param {fold.Resource} res @param {string[]} handlers @returns {Entry[]} */
function queued(scene, res, handlers) {
  const queues = Object.entries(res.subjects).filter(([, s]) => s.kind === "" && s.queues.workqueue)
    .sort(([, a], [, b]) => b.queues.workqueue.len - a.queues.workqueue.len);
  let above = 0;
  return queues.filter(([id]) => scene.story || handlers.includes(id)).map(([id, subject]) => (
    [id, subject, handlers.includes(id) ? handlers.indexOf(id) : --above]));
}
