// Lines: which goroutine reports what. Every record stands on the line of the goroutine that reported it; where that
// may be any of several, it stands on a line that is a place.

import { squeeze } from "../lib/dom.js";

const longest = 22; // characters of a title

// groups and roles are the order from top to bottom in which an event meets the lines.
const groups = ["etcd", "cacher", "watcher", "client", "listener", "controller", "others"];
const roles = [
  "callers", "watchChan", "etcdWatcher", "startWatching", "etcdWatch", "scheduleEventProcessing", "translate",
  "collectEventProcessing", "startCaching", "dispatchEvents", "processInterval", "WatchServer", "receive", "reflector",
  "informer", "pop", "run", "queue", "worker",
];
const places = new Set(["callers", "watchChan", "etcdWatcher", "reflector", "queue", "others"]);

// byLane has the group of each goroutine whose name says it all.
const byLane = {
  startCaching: "cacher", dispatchEvents: "cacher", processInterval: "watcher", WatchServer: "watcher",
  receive: "client",
  pop: "listener", run: "listener", worker: "controller",
};

// Reported by the goroutine that lists or watches.
const called = new Set(["FreshnessWait", "FreshnessReady", "FreshnessGivenUp", "ListServed", "WatcherAdded"]);
// Reported by any goroutine: a ring grows by its writer and by a knob, and what ends an informer closes its queue.
const anybody = new Set([
  "RingResize", "FIFOClosed", "StoreHolds", "IndexerHolds", "EtcdLookedAt", "EtcdFailed", "ProgramStopped",
]);

// newLines returns {at, note, begin, switches} for the infos of a fold.
export function newLines(infos) {
  const doers = doersOf(infos);
  const adding = new Set(); // listeners that are being shown what is there already
  let watcher = "watchChan"; // which of the two watchers of etcd runs

  // at returns the line of a moment, given the resource as it was before: {id, group, owner, role, title, place}.
  function at(point, subject, res, type = "") {
    const info = infos.get(point);
    const lane = laneOf(doers.get(point), watcher);
    if (anybody.has(point)) return others;
    if (called.has(point)) return line("etcd", "", "callers");
    if (byLane[lane]) return line(byLane[lane], byLane[lane] === "cacher" ? "" : subject, lane);
    if (lane === "informer") {
      return info.station === "listener" ? distributor(subject, res, type) : informer(subject, res);
    }
    switch (info.station) {
      case "http":
      case "etcd":
        return line("etcd", "", "callers");
      case "etcd3":
        if (point !== "Etcd3IncomingReceived") return line("etcd", "", lane || watcher);
        return line("etcd", "", watcher === "watchChan" ? "scheduleEventProcessing" : "translate");
      case "ring":
      case "store":
      case "incoming":
        return line("cacher", "", "startCaching");
      case "reflector":
        return subject === "cacher" ? line("cacher", "", "startCaching") : line("client", subject, "reflector");
      case "fifo":
        if (point === "FIFOProcessed" || !watches(res?.subjects[subject])) return informer(subject, res);
        return line("client", subject, "reflector");
      case "indexer":
      case "processor":
        return line("client", subject, "informer");
      case "workqueue":
        return line("controller", subject, point === "WorkAdded" ? "queue" : "worker");
    }
    return others;
  }

  // informer is the line of the goroutine that empties a queue. That of a queue without a reflector may be any.
  const informer = (subject, res) => (watches(res?.subjects[subject]) ? line("client", subject, "informer") : others);

  // distributor is the line of the goroutine that hands something to a listener: its informer, unless the informer has
  // nothing to do, or cannot have come so far since the listener was added.
  function distributor(listener, res, type) {
    const name = res?.subjects[listener]?.texts.ListenerAdded;
    const early = adding.has(listener) && type === "ADDED";
    return !name || early || res.waits[`FIFOWaited ${name}`] ? others : line("client", name, "informer");
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
  const order = (l) => [groups.indexOf(l.group), l.opened, l.owner, roles.indexOf(l.role)];
  const [m, n] = [order(a), order(b)];
  const i = m.findIndex((value, at) => value !== n[at]);
  return i < 0 ? 0 : m[i] < n[i] ? -1 : 1;
}

function line(group, owner, role) {
  const place = places.has(role) || (group === "watcher" && !owner);
  return { id: `${group} ${owner} ${role}`, group, owner, role, title: titleOf(owner, role), place };
}

const others = line("others", "", "others");

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
