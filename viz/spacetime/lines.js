// Lines: which goroutine reports what. Every record stands on the line of the goroutine that reported it; where that
// may be any of several, it stands on a line that is a place.

import { squeeze } from "../lib/texts.js";

/**
 * @typedef {object} Line
 * @property {string} id
 * @property {string} title
 * @property {boolean} place
 * @property {string} owner
 * @property {string} group
 * @property {number} order
 * @property {number} [y] where it is drawn
 */

const longest = 22; // characters of a title

// groups have the lines from top to bottom, in the order in which an event meets them; those with a star are places.
// Each has the points that are reported there, or the stations all of whose other points are. In the groups that are
// not alone each subject has lines of its own.
/** @type {{ [group: string]: { [name: string]: string } }} */
const groups = {
  server: {
    "callers*": "http etcd FreshnessWait FreshnessReady FreshnessGivenUp ListServed WatcherAdded",
    "watchChan*": "etcd3",
    startWatching: "Etcd3IncomingBlocked Etcd3IncomingSent",
    scheduleEventProcessing: "Etcd3IncomingReceived",
    collectEventProcessing: "Etcd3ResultBlocked Etcd3ResultSent",
    startCaching: "ring store incoming",
    dispatchEvents: "dispatch IncomingReceived WatcherForced InputBlocked InputSent",
  },
  watcher: { processInterval: "watcher", WatchServer: "wire" },
  client: {
    receive: "FrameDecoded StreamBlocked StreamEnded",
    "reflector*": "reflector fifo",
    informer: "indexer processor FIFOWaited FIFOPopped FIFOProcessed",
  },
  listener: { "add*": "AddBlocked", pop: "listener", run: "handler" },
  controller: { "queue*": "WorkAdded", worker: "workqueue" },
  others: {
    "others*": "RingResize FIFOClosed ListenerAdded ListenerRemoved WatcherSummed StoreHolds IndexerHolds " +
      "EtcdLookedAt EtcdFailed ProgramStopped",
  },
};
const alone = new Set(["server", "others"]);
// older are the goroutines of the etcd watcher of the seeds' age, by those that do the same today.
/** @type {{ [name: string]: string }} */
const older = {
  watchChan: "etcdWatcher", startWatching: "etcdWatch", scheduleEventProcessing: "translate",
  collectEventProcessing: "translate",
};

/** @type {Map<string, { name: string, place: boolean, group: string, order: number }>} */
const roles = new Map(); // by point or station
for (const [group, names] of Object.entries(groups)) {
  for (const [name, reported] of Object.entries(names)) {
    const role = { name: name.replace("*", ""), place: name.endsWith("*"), group };
    for (const each of reported.split(" ")) roles.set(each, { ...role, order: roles.size });
  }
}
const order = Object.keys(groups);

// lineOf returns the line of a moment, a record or a wait: {id, title, place, owner, group, order}. infos are a fold's;
// switches are those with which the program runs.
/**
 * @param {import("../log/fold.js").Infos} infos @param {{ [name: string]: string }} switches
 * @param {{ point: string, subject?: string }} moment @returns {Line}
 */
export function lineOf(infos, switches, { point, subject = "" }) {
  // The cacher has a reflector of its own, in the goroutine that writes the cache.
  const where = subject === "cacher" && infos.get(point).station === "reflector" ? "store" : point;
  const found = roles.get(where) ?? roles.get(infos.get(point).station);
  if (!found) throw new Error(`no goroutine is known to report ${point}`);
  const { name, place, ...role } = found;
  const owner = alone.has(role.group) ? "" : subject;
  const own = (switches["etcd-watcher"] === "etcd2" && older[name]) || name;
  const nameless = role.group === "watcher" && !owner; // watches that ended before they began
  return { ...role, id: `${owner} ${own}`, owner, title: titleOf(owner, own), place: place || nameless };
}

// titleOf leaves out what goes without saying: that "scheduler-informer" is an informer.
/** @param {string} owner @param {string} role */
function titleOf(owner, role) {
  if (!owner || role === "informer") return squeeze(owner || role, longest);
  return `${squeeze(owner.replace(/-informer$/, ""), longest - 1 - role.length)} ${role}`;
}

// compareLines orders lines from top to bottom. Watchers are numbered in the order in which they were opened.
/** @param {Line} a @param {Line} b */
export const compareLines = (a, b) => order.indexOf(a.group) - order.indexOf(b.group)
  || a.owner.localeCompare(b.owner, "en", { numeric: true }) || a.order - b.order;
