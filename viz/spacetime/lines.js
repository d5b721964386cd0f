// Lines: which goroutine reports what. Every record stands on the line of the goroutine that reported it; where that
// may be any of several, it stands on a line that is a place.

import { squeeze } from "../lib/dom.js";

const longest = 22; // characters of a title

// groups have the lines from top to bottom, in the order in which an event meets them; those with a star are places. In
// the groups that are not alone each subject has lines of its own.
const groups = Object.entries({
  etcd: "callers* watchChan* etcdWatcher* startWatching etcdWatch scheduleEventProcessing translate " +
    "collectEventProcessing",
  cacher: "startCaching dispatchEvents", watcher: "processInterval WatchServer", client: "receive reflector* informer",
  listener: "pop run", controller: "queue* worker", others: "others*",
});
const alone = new Set(["etcd", "cacher", "others"]);
const roles = new Map(groups.flatMap(([group, names], i) => names.split(" ").map((name, n) => {
  const role = name.replace("*", "");
  return [role, { group, order: [i, n], place: role !== name }];
})));

// Reported, whatever the table of points tells: by the goroutine that lists or watches; by any, for a ring grows by its
// writer and by a knob, and what ends an informer closes its queue; and by any that adds to a queue.
const own = new Map(Object.entries({
  callers: "FreshnessWait FreshnessReady FreshnessGivenUp ListServed WatcherAdded",
  others: "RingResize FIFOClosed StoreHolds IndexerHolds EtcdLookedAt EtcdFailed ProgramStopped", queue: "WorkAdded",
}).flatMap(([role, points]) => points.split(" ").map((point) => [point, role])));
// Reported, where the table of points does not tell by whom, by the goroutine that does all that is done at a station.
const residents = {
  http: "callers", etcd: "callers", ring: "startCaching", store: "startCaching", incoming: "startCaching",
  indexer: "informer", processor: "informer", workqueue: "worker", reflector: "reflector", fifo: "reflector",
};

// newLines returns {at, note, begin, switches} for the infos of a fold.
export function newLines(infos) {
  const doers = doersOf(infos);
  const adding = new Set(); // listeners that are being shown what is there already
  let watcher = "watchChan"; // which of the two watchers of etcd runs

  // at returns the line of a moment, given the resource as it was before: {id, owner, role, title, order, place}.
  function at(point, subject, res, type = "") {
    const { station } = infos.get(point);
    const lane = laneOf(doers.get(point), watcher);
    const role = station === "etcd3" ? watcher : residents[station] ?? "others";
    const fed = watches(res?.subjects[subject]); // else its queue may be emptied by any goroutine
    if (own.has(point)) return line(own.get(point), subject);
    if (point === "Etcd3IncomingReceived") {
      return line(watcher === "watchChan" ? "scheduleEventProcessing" : "translate");
    }
    if (lane === "informer" && station === "listener") return distributor(subject, res, type);
    if (lane === "informer" || point === "FIFOProcessed" || (station === "fifo" && !fed)) {
      return line(fed ? "informer" : "others", subject);
    }
    if (roles.has(lane)) return line(lane, subject);
    return line(role === "reflector" && subject === "cacher" ? "startCaching" : role, subject);
  }

  // distributor is the line of the goroutine that hands something to a listener: its informer, unless the informer has
  // nothing to do, or cannot have come so far since the listener was added.
  function distributor(listener, res, type) {
    const name = res?.subjects[listener]?.texts.ListenerAdded;
    const early = adding.has(listener) && type === "ADDED";
    return line(!name || early || res.waits[`FIFOWaited ${name}`] ? "others" : "informer", name);
  }

  // note is told every record once its line is known.
  function note(r, res) {
    if (r.point === "ListenerAdded") adding.add(r.subject);
    if (r.point !== "IndexerUpdated") return;
    for (const each of adding) if (res.subjects[each]?.texts.ListenerAdded === r.subject) adding.delete(each);
  }

  return {
    at, note,
    begin: () => adding.clear(),
    switches: (now) => (watcher = now?.["etcd-watcher"] === "etcd2" ? "etcdWatcher" : "watchChan"),
  };
}

// compareLines orders lines from top to bottom; opened says when the subject appeared that owns one.
export function compareLines(a, b) {
  const order = (l) => [l.order[0], l.opened, l.owner, l.order[1]];
  const [m, n] = [order(a), order(b)];
  const i = m.findIndex((value, at) => value !== n[at]);
  return i < 0 ? 0 : m[i] < n[i] ? -1 : 1;
}

function line(role, subject = "") {
  const { group, order, place } = roles.get(role);
  const owner = alone.has(group) ? "" : subject;
  const title = titleOf(owner, role);
  return { id: `${owner} ${role}`, owner, role, title, order, place: place || (group === "watcher" && !owner) };
}

// titleOf leaves out what goes without saying: that "scheduler-informer" is an informer.
function titleOf(owner, role) {
  if (!owner || role === "informer") return squeeze(owner || role, longest);
  return `${squeeze(owner.replace(/-informer$/, ""), longest - 1 - role.length)} ${role}`;
}

// watches reports whether a reflector fills the queue of a subject.
const watches = (subject) =>
  ["ReflectorWatching", "ReflectorListed", "ReflectorReceived"].some((point) => subject?.counts[point]);

// doersOf says of each point which goroutine reports it, "" if the table does not tell. A goroutine that had to wait
// for room reports itself how that ended.
function doersOf(infos) {
  const doers = new Map([...infos.values()].map((info) => [info.name, info.lane ?? ""]));
  for (const { lane, on, waits, until } of infos.values()) {
    if (!lane || !on) continue;
    const itself = waits === "room" ? until : until.filter((name) => infos.get(name).queue === on);
    for (const name of itself) doers.set(name, doers.get(name) || lane);
  }
  return doers;
}

// laneOf is the last part of a goroutine's name; of several forms that of the mode that runs, else the first.
function laneOf(lane, mode) {
  const forms = lane.split(" ");
  return (forms.find((form) => form.startsWith(mode)) ?? forms[0]).split(".").at(-1);
}
