// Handovers: which line handed what to which, as a run of records tells it. Nothing here knows the document.
//
// A transfer goes through a queue of ours: what is put in and what is taken out is the same change of the same object,
// the oldest first. A passage is where no queue of ours is between two lines and the change is seen again at the other
// end: etcd's watch reports what was committed, the client what was written to the wire, its reflector what it decoded,
// its listeners what the informer stored. What went in before the run, or comes out after it, is neither.

import { clientNames, objectKey } from "../log/fold.js";
import { compareLines, newLines } from "./lines.js";

// newHandovers returns {trace, switches}. trace folds records onto the picture before them, which it takes, and returns
// what happened between those that here accepts: columns in the order of the log, lines from top to bottom; transfers,
// passages and spans between columns.
export function newHandovers(fold) {
  const who = newLines(fold.infos);

  function trace(state, records, here) {
    const columns = [];
    const lines = new Map();
    const on = (l, res) => {
      if (!lines.has(l.id)) lines.set(l.id, { ...l, opened: res?.subjects[l.owner]?.opened ?? 0 });
      return lines.get(l.id);
    };
    const arrows = newArrows(fold.infos);
    const spans = newSpans(fold.infos);
    who.begin();
    for (const [name, res] of Object.entries(state.resources).filter(([resource]) => here({ resource }))) {
      spans.begin(name, res, (w) => on(who.at(w.point, w.subject, res, w.type), res));
      arrows.begin(res);
    }
    for (const r of records) {
      const name = r.resource ?? "";
      const before = state.resources[name];
      const line = here(r) && on(who.at(r.point, r.subject ?? "", before, r.type), before);
      fold.apply(state, [r]);
      if (!line) continue;
      const column = { r, line, index: columns.length };
      columns.push(column);
      who.note(r, state.resources[name]);
      arrows.see(column, state.resources[name]);
      spans.see(column, name, state.resources[name]);
    }
    const { transfers, passages } = arrows;
    return { columns, transfers, passages, spans: spans.all(), lines: [...lines.values()].sort(compareLines) };
  }

  return { trace, switches: who.switches };
}

// newArrows joins the record that gave something away to the record that took it: as transfers through queues, and as
// passages.
function newArrows(infos) {
  const transfers = [];
  const passages = [];
  const given = new Map(); // by what is handed over: the columns of those who gave it and still have it, oldest first
  const early = new Map(); // of those who took it, where the giver has yet to write its record
  const reads = new Map(); // by client: the watcher whose stream it reads
  const streams = new Map(); // by reflector: how many streams it has had
  const list = (all, id) => all.get(id) ?? all.set(id, []).get(id);
  const named = (where, { type, key, rv }) => `${where} ${type ?? ""} ${change({ key, rv })}`;
  const change = ({ key, rv }) => `${objectKey(key ?? "")} ${rv || 0}`;

  // give and take note the two ends of a handover. Where the two are reported without a common lock, who takes may be
  // the first to write (races). What many take is kept.
  function give(id, column, more, { races = false, kept = false } = {}) {
    const taken = races ? list(early, id).splice(0, kept ? Infinity : 1) : [];
    for (const each of taken) note(more, column, each);
    if (kept || taken.length === 0) list(given, id).push(column);
  }
  function take(id, column, more, { races = false, kept = false } = {}) {
    const sent = kept ? list(given, id).at(-1) : list(given, id).shift();
    if (sent) note(more, sent, column);
    else if (races) list(early, id).push(column);
  }
  const note = (more, sent, taken) => sent.line && (more.queue ? transfers : passages).push({ ...more, sent, taken });

  // begin takes notice of what stands in the queues before the run.
  function begin(res) {
    for (const [id, { opened, queues }] of Object.entries(res.subjects)) {
      for (const [name, { tokens }] of Object.entries(queues)) {
        for (const token of tokens) give(named(`${id}@${opened} ${name}`, token), { r: token });
      }
    }
  }

  function see(column, res) {
    const { r } = column;
    const { op, queue } = infos.get(r.point);
    if (["send", "push"].includes(op)) through(give, r.subject ?? "", queue, column, res, op === "send");
    if (["recv", "pop"].includes(op)) through(take, r.subject ?? "", queue, column, res, op === "recv");
    pass(column, res);
  }

  // through is one end of a transfer.
  function through(act, subject, name, column, res, races) {
    const queue = `${subject}@${res.subjects[subject]?.opened} ${name}`;
    // A key that is in the workqueue, or in the hands of a worker, is added later.
    const newest = res.subjects[subject]?.queues[name]?.tokens.at(-1);
    const waits = newest?.key !== (column.r.key ?? "") || list(given, named(queue, column.r)).length > 0;
    if (act === give && name === "workqueue" && waits) return;
    act(named(queue, column.r), column, { queue }, { races });
  }

  // pass sees what a record says of the ways without queues. A revision is committed once, and its writer may be told
  // after its watchers. A stream loses what is on its way when it ends.
  function pass(column, res) {
    const { r } = column;
    const stream = () => named(`stream ${r.subject} ${streams.get(r.subject) ?? 0}`, r);
    const stored = (informer) => `stored ${informer} ${change(r)}`; // every listener is given it
    const next = named(`next ${r.subject}`, r);
    switch (r.point) {
      case "TxnCommitted":
        return give(`etcd ${change(r)}`, column, { through: "etcd" }, { races: true, kept: true });
      case "Etcd3IncomingSent":
        return take(`etcd ${change(r)}`, column, { through: "etcd" }, { races: true, kept: true });
      case "WireOpened":
        for (const client of clientNames(res, r.subject)) reads.set(client, r.subject);
        return;
      case "FrameWritten":
        for (const client of clientNames(res, r.subject)) {
          if (!reads.has(client)) reads.set(client, r.subject);
          give(named(`wire ${client} ${r.subject}`, r), column, { through: "wire" });
        }
        return;
      case "FrameDecoded":
        take(named(`wire ${r.subject} ${reads.get(r.subject)}`, r), column, { through: "wire" });
        return give(stream(), column, { through: "stream" });
      case "ReflectorReceived": {
        const watches = Object.entries(res.subjects).filter(([, { kind }]) => kind === "watchchan");
        const [id] = watches.reduce((last, each) => (last[1]?.opened >= each[1].opened ? last : each), []);
        if (r.subject === "cacher" && id) through(take, id, "etcd3-result", column, res, true);
        return take(stream(), column, { through: "stream" });
      }
      case "ReflectorWatchEnded":
        return streams.set(r.subject, (streams.get(r.subject) ?? 0) + 1);
      case "IndexerUpdated":
        return give(stored(r.subject), column, { through: "add" }, { kept: true });
      case "PendingPopped":
        return give(next, column, { through: "next" });
      case "AddReceived":
        give(next, column, { through: "next" });
      // falls through
      case "PendingPushed":
        return take(stored(res.subjects[r.subject]?.texts.ListenerAdded), column, { through: "add" }, { kept: true });
      case "HandlerCalled":
        take(next, column, { through: "next" });
    }
  }

  return { transfers, passages, begin, see };
}

// newSpans says which line waited for how long: {kind, line, since, from, to}, from and to being columns, null where
// the wait reaches beyond the run. To have nothing to do is no wait.
function newSpans(infos) {
  const ended = [];
  const open = new Map(); // by resource and the record that began it
  const waits = (res) => Object.values(res.waits).flat().filter((w) => w.kind !== "work");

  function begin(name, res, lineOf) {
    for (const w of waits(res)) {
      open.set(`${name} ${w.seq}`, { name, kind: w.kind, line: lineOf(w), since: w.t, from: null, to: null });
    }
  }

  function see(column, name, res) {
    const waiting = new Set(waits(res).map((w) => `${name} ${w.seq}`));
    for (const [id, span] of open) {
      if (span.name !== name || waiting.has(id)) continue;
      open.delete(id);
      ended.push({ ...span, to: column });
    }
    const { r, line } = column;
    const id = `${name} ${r.seq}`;
    const { waits: kind } = infos.get(r.point);
    if (waiting.has(id)) open.set(id, { name, kind, line, since: r.t, from: column, to: null });
  }

  return { begin, see, all: () => [...ended, ...open.values()] };
}
