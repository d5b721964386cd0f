// Lines: who handed what to whom. A run of records, folded one after the other, gives a line for everybody who reported
// any, a transfer for everything that one brought into a queue and another took out, and a span for every wait. Nothing
// here knows the document.
//
// A transfer is counted, not guessed: the fold numbers what goes into a queue and what comes out of it, and the k-th that
// came out is the k-th that went in. What went in before the run, or comes out after it, is no transfer of the run.
//
// Where there is no queue of ours between two lines, the same change is seen again at the other end: what etcd has committed
// by its watch, what was written to the wire by the client, what the client has decoded by its reflector. That is a passage.

import { squeeze } from "./dom.js";
import { objectKey } from "./fold.js";

const longest = 22; // characters of a line's title
const readers = new Set(["FreshnessWait", "FreshnessReady", "FreshnessGivenUp", "ListServed"]); // at the store, by whoever lists

// groups from top to bottom: the order in which an event meets them. Where several goroutines may be behind a line, it is
// a place: some role of the group that no point calls by one goroutine's name.
const groups = ["request", "etcd3", "cacher", "watcher", "client", "listener", "controller", "others"];
const roles = ["watchChan", "startWatching", "etcdWatch", "collectEventProcessing", "translate", "startCaching", "dispatchEvents",
  "processInterval", "WatchServer", "receive", "reflector", "informer", "pop", "run", "queue", "worker"];
const places = new Set(["requests", "watchChan", "reflector", "queue", "others"]);

export function newLines(fold) {
  const { infos } = fold;
  const doers = doersOf(infos);
  let watcher = "watchChan"; // which of the two watchers of etcd runs

  // lineOf says on whose line a moment stands: a group, an owner within it, a role.
  function lineOf(point, subject, res) {
    const info = infos.get(point);
    const lane = laneOf(doers.get(point), [`${subject}.worker`, watcher]);
    const informer = () => res?.subjects[subject]?.texts.ListenerAdded || (info.station === "listener" ? "informer" : subject);
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
        return line("client", informer(), lane);
    }
    switch (info.station) {
      case "http":
      case "etcd":
        return line("request", "", "requests");
      case "etcd3":
        return line("etcd3", "", lane || "watchChan");
      case "ring":
      case "store":
      case "incoming":
        return readers.has(point) ? line("request", "", "requests") : line("cacher", "", "startCaching");
      case "reflector":
        return subject === "cacher" ? line("cacher", "", "startCaching") : line("client", subject, "reflector");
      case "fifo":
        if (point === "FIFOClosed") break;
        return line("client", subject, point === "FIFOProcessed" ? "informer" : "reflector");
      case "indexer":
      case "processor":
        return line("client", subject, "informer");
      case "workqueue":
        return line("controller", subject, point === "WorkAdded" ? "queue" : "worker");
    }
    return line("others", "", "others");
  }

  // trace folds records onto the picture before them, which it takes, and returns what happened between those that here
  // accepts: columns in the order of the log, the lines from top to bottom; transfers, passages and spans between columns.
  // None of the records may be missing: nobody could count across a gap.
  function trace(state, records, here) {
    const columns = [];
    const lines = new Map();
    const transfers = [];
    const ends = new Map(); // by queue and number: {sent, taken}, the columns of those known
    const open = new Map(); // waits that have not ended, by the record that began them
    const spans = [];
    const passages = newPassages();

    const known = (l, opened) => {
      if (!lines.has(l.id)) lines.set(l.id, { ...l, opened });
      return lines.get(l.id);
    };
    const on = (point, subject, res) => {
      const l = lineOf(point, subject, res);
      return known(l, res?.subjects[l.owner]?.opened ?? 0);
    };
    const waits = (res) => Object.values(res?.waits ?? {}).flat().filter((w) => w.kind !== "work");
    const note = (queue, k, side, column) => {
      const pair = ends.get(`${queue} ${k}`) ?? {};
      pair[side] = column;
      ends.set(`${queue} ${k}`, pair);
      if (pair.sent && pair.taken) transfers.push({ queue, sent: pair.sent, taken: pair.taken });
    };
    for (const [name, res] of Object.entries(state.resources)) {
      if (!here({ resource: name })) continue;
      for (const w of waits(res)) open.set(w.seq, { name, kind: w.kind, line: on(w.point, w.subject, res), from: null, to: null });
    }
    for (const r of records) {
      const name = r.resource ?? "";
      const mine = here(r);
      const before = mine ? counts(state.resources[name], r) : null;
      const column = mine && { r, index: columns.length, line: on(r.point, r.subject ?? "", state.resources[name]) };
      fold.apply(state, [r]);
      if (!mine) continue;
      columns.push(column);
      const res = state.resources[name];
      passages.see(column, res);
      for (const [queue, now] of counts(res, r)) {
        const was = before.get(queue) ?? { sent: 0, received: 0 };
        for (let k = was.sent + 1; k <= now.sent; k++) note(queue, k, "sent", column);
        for (let k = was.received + 1; k <= now.received; k++) note(queue, k, "taken", column);
      }
      const waiting = new Set(waits(res).map((w) => w.seq));
      for (const [seq, span] of open) {
        if (span.name !== name || waiting.has(seq)) continue;
        open.delete(seq);
        spans.push({ ...span, to: column });
      }
      if (waiting.has(r.seq)) open.set(r.seq, { name, kind: infos.get(r.point).waits, line: column.line, from: column, to: null });
    }
    spans.push(...open.values());
    const order = (l) => [groups.indexOf(l.group), l.opened, l.owner, roles.indexOf(l.role)];
    return { columns, transfers, passages: passages.list, spans, lines: [...lines.values()].sort((a, b) => compare(order(a), order(b))) };
  }

  return { trace, switches: (now) => (watcher = now?.["etcd-watcher"] === "etcd2" ? "etcdWatcher" : "watchChan") };
}

// newPassages joins what was given at one end to what was seen at the other, told the columns in order. A revision is
// committed once, and its writer may be told after its watchers; a stream keeps its order.
function newPassages() {
  const list = [];
  const commits = new Map(); // by key and revision
  const early = []; // seen before the commit was reported
  const streams = new Map(); // by stream and event: columns that were given and not seen yet
  const give = (stream, r, column) => {
    const id = `${stream} ${r.type} ${objectKey(r.key ?? "")} ${r.rv}`;
    streams.set(id, [...(streams.get(id) ?? []), column]);
  };
  const take = (stream, r, column) => {
    const given = streams.get(`${stream} ${r.type} ${objectKey(r.key ?? "")} ${r.rv}`)?.shift();
    if (given) list.push({ through: stream.split(" ")[0], sent: given, taken: column });
  };
  const revision = (r) => `${r.key} ${r.rv}`;

  function see(column, res) {
    const { r } = column;
    switch (r.point) {
      case "TxnCommitted":
        commits.set(revision(r), column);
        for (const taken of early) if (revision(taken.r) === revision(r)) list.push({ through: "etcd", sent: column, taken });
        break;
      case "Etcd3IncomingSent":
        if (commits.has(revision(r))) list.push({ through: "etcd", sent: commits.get(revision(r)), taken: column });
        else early.push(column);
        break;
      case "FrameWritten":
        for (const client of clientsOf(res, r.subject)) give(`wire ${client}`, r, column);
        break;
      case "FrameDecoded":
        take(`wire ${r.subject}`, r, column);
        give(`stream ${r.subject}`, r, column);
        break;
      case "ReflectorReceived":
        take(`stream ${r.subject}`, r, column);
    }
  }

  return { list, see };
}

// clientsOf returns the names under which the client of a watcher may report: they are those that it gave the server.
function clientsOf(res, watcher) {
  const agent = (res?.subjects[watcher]?.texts.WireOpened ?? "").split(" ")[0].split("/")[0].replace(/^listwatch-/, "");
  return agent ? [agent, `${agent}-informer`] : [];
}

function line(group, owner, role) {
  return { id: `${group} ${owner} ${role}`, group, owner, role, title: titleOf(owner, role), place: places.has(role) };
}

// titleOf leaves out what goes without saying: that "scheduler-informer" is an informer.
function titleOf(owner, role) {
  if (!owner) return role;
  return role === "informer" ? squeeze(owner, longest) : `${squeeze(owner.replace(/-informer$/, ""), longest - 1 - role.length)} ${role}`;
}

// doersOf says of each point which goroutine reports it. One that had to wait for room reports itself how that ended.
function doersOf(infos) {
  const doers = new Map();
  for (const info of infos.values()) {
    if (info.lane) doers.set(info.name, info.lane);
    else if (!doers.has(info.name)) doers.set(info.name, "");
    const itself = info.waits === "room" ? info.until : (info.until ?? []).filter((name) => infos.get(name).queue === info.on);
    if (info.lane && info.on) for (const name of itself) if (!infos.get(name).lane) doers.set(name, info.lane);
  }
  return doers;
}

// laneOf is the last part of a goroutine's name; of several forms the one that begins as wanted, else the first.
function laneOf(lane, wanted) {
  const forms = lane.split(" ");
  return (forms.find((form) => wanted.some((begin) => form.startsWith(begin))) ?? forms[0]).split(".").at(-1);
}

// counts returns how much has gone into and out of the queues that a record may have to do with.
function counts(res, r) {
  const all = new Map();
  const note = (id, subject) => {
    for (const [queue, q] of Object.entries(subject?.queues ?? {})) all.set(`${id}@${subject.opened} ${queue}`, { sent: q.sent, received: q.received });
  };
  const id = r.subject ?? "";
  note(id, res?.subjects[id]);
  if (r.point === "ReflectorReceived") {
    for (const [other, subject] of Object.entries(res?.subjects ?? {})) if (subject.kind === "watchchan") note(other, subject);
  }
  return all;
}

function compare(a, b) {
  const i = a.findIndex((value, n) => value !== b[n]);
  return i < 0 ? 0 : a[i] < b[i] ? -1 : 1;
}
