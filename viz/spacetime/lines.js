// Lines: who reports what. Every record stands on the line of the goroutine that reported it; where that may be any of
// several, on a line that is a place.

import { squeeze } from "../lib/dom.js";

const longest = 22; // characters of a title

// groups and their lines, from top to bottom: the order in which an event meets them.
const groups = ["etcd", "cacher", "watcher", "client", "listener", "controller", "others"];
const roles = ["callers", "watchChan", "etcdWatcher", "startWatching", "etcdWatch", "scheduleEventProcessing", "translate", "collectEventProcessing",
  "startCaching", "dispatchEvents", "processInterval", "WatchServer", "receive", "reflector", "informer", "pop", "run", "queue", "worker"];
const places = new Set(["callers", "watchChan", "etcdWatcher", "reflector", "queue", "others"]);

const called = new Set(["FreshnessWait", "FreshnessReady", "FreshnessGivenUp", "ListServed", "WatcherAdded"]); // by the goroutine that lists or watches
// anybody are the points of which no line can be told: a ring grows by its writer and by a knob, a queue is closed by whatever ends its
// informer, and some goroutines are not part of the path.
const anybody = new Set(["RingResize", "FIFOClosed", "StoreHolds", "IndexerHolds", "EtcdLookedAt", "EtcdFailed", "ProgramStopped"]);

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
    switch (lane) {
      case "startCaching":
      case "dispatchEvents":
        return line("cacher", "", lane);
      case "processInterval":
      case "WatchServer":
        return line("watcher", subject, lane);
      case "receive":
        return line("client", subject, lane);
      case "pop":
      case "run":
        return line("listener", subject, lane);
      case "worker":
        return line("controller", subject, lane);
      case "informer":
        return info.station === "listener" ? distributor(subject, res, type) : informer(subject, res);
    }
    switch (info.station) {
      case "http":
      case "etcd":
        return line("etcd", "", "callers");
      case "etcd3":
        if (point === "Etcd3IncomingReceived") return line("etcd", "", watcher === "watchChan" ? "scheduleEventProcessing" : "translate");
        return line("etcd", "", lane || watcher);
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

  // informer is the line of the goroutine that empties a queue: an informer, or, of a queue without a reflector, any other.
  const informer = (subject, res) => (watches(res?.subjects[subject]) ? line("client", subject, "informer") : others);

  // distributor is the line of the goroutine that hands something to a listener: its informer, unless that has nothing to do, or
  // cannot have come so far since the listener was added.
  function distributor(listener, res, type) {
    const name = res?.subjects[listener]?.texts.ListenerAdded;
    if (!name || res.waits[`FIFOWaited ${name}`] || (adding.has(listener) && type === "ADDED")) return others;
    return line("client", name, "informer");
  }

  // note is told every record once its line is known.
  function note(r, res) {
    if (r.point === "ListenerAdded") adding.add(r.subject);
    if (r.point === "IndexerUpdated") for (const l of adding) if (res.subjects[l]?.texts.ListenerAdded === r.subject) adding.delete(l);
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
  return { id: `${group} ${owner} ${role}`, group, owner, role, title: titleOf(owner, role), place: places.has(role) || (group === "watcher" && !owner) };
}

const others = line("others", "", "others");

// titleOf leaves out what goes without saying: that "scheduler-informer" is an informer.
function titleOf(owner, role) {
  if (!owner) return squeeze(role, longest);
  return role === "informer" ? squeeze(owner, longest) : `${squeeze(owner.replace(/-informer$/, ""), longest - 1 - role.length)} ${role}`;
}

// watches reports whether a subject is one whose queue a reflector fills.
const watches = (subject) => Boolean(subject?.counts.ReflectorWatching || subject?.counts.ReflectorListed || subject?.counts.ReflectorReceived);

// doersOf says of each point by which goroutine it is reported, "" if the table does not tell. One that had to wait for room
// reports itself how that ended.
function doersOf(infos) {
  const doers = new Map([...infos.values()].map((info) => [info.name, info.lane ?? ""]));
  for (const info of infos.values()) {
    if (!info.lane || !info.on) continue;
    const itself = info.waits === "room" ? info.until : info.until.filter((name) => infos.get(name).queue === info.on);
    for (const name of itself) if (!doers.get(name)) doers.set(name, info.lane);
  }
  return doers;
}

// laneOf is the last part of a goroutine's name; of several forms that of the mode that runs, else the first.
function laneOf(lane, mode) {
  const forms = lane.split(" ");
  return (forms.find((form) => form.startsWith(mode)) ?? forms[0]).split(".").at(-1);
}
