// Handovers: which line handed what to which, as a run of records tells it. Nothing here knows the document.
//
// A transfer goes through a queue of ours: what is put in and what is taken out is the same change of the same object,
// the oldest first. A passage is where no queue of ours is between two lines and the change is seen again at the other
// end: etcd's watch reports what was committed, the client what was written to the wire, its reflector what it decoded,
// its listeners what the informer stored. What went in before the run, or comes out after it, is neither.

import { clientNames, objectKey, youngest } from "../log/fold.js";
import { compareLines, newLines } from "./lines.js";

// newHandovers returns {trace, switches}. trace folds records onto the picture before them, which it takes, and returns
// what happened between those that here accepts: columns in the order of the log, lines from top to bottom; transfers,
// passages and spans between columns.
export function newHandovers(fold) {
  const who = newLines(fold.infos);

  function trace(state, records, here) {
    const columns = [];
    const lines = new Map();
    const lineOf = (r, res) => {
      const l = who.at(r.point, r.subject ?? "", res, r.type);
      if (!lines.has(l.id)) lines.set(l.id, { ...l, opened: res?.subjects[l.owner]?.opened ?? 0 });
      return lines.get(l.id);
    };
    const arrows = newArrows(fold.infos);
    const spans = newSpans();
    who.begin();
    for (const [name, res] of Object.entries(state.resources).filter(([resource]) => here({ resource }))) {
      spans.see(name, res, (w) => lineOf(w, res), null);
      arrows.begin(res);
    }
    for (const r of records) {
      const name = r.resource ?? "";
      const line = here(r) && lineOf(r, state.resources[name]);
      fold.apply(state, [r]);
      if (!line) continue;
      const column = { r, line, index: columns.length };
      const res = state.resources[name];
      columns.push(column);
      who.note(r, res);
      arrows.see(column, res);
      spans.see(name, res, () => line, column);
    }
    const { transfers, passages } = arrows;
    return { columns, transfers, passages, spans: spans.all, lines: [...lines.values()].sort(compareLines) };
  }

  return { trace, switches: who.switches };
}

// The ways without a queue of ours, in words. Where the two ends are reported without a common lock, who
// takes may be the first to write (races). What many take is kept.
const etcd = { says: "by etcd's watch", races: true, kept: true };
const wire = { says: "over the wire" };
const stream = { says: "by hand: nothing lies between" };
const add = { says: "by hand, through addCh", kept: true };
const next = { says: "by hand, through nextCh" };

// newArrows joins the record that gave something away to the record that took it: {sent, taken, says}.
function newArrows(infos) {
  const [transfers, passages] = [[], []];
  const given = new Map(); // by what is handed over: the columns of those who gave it and still have it, oldest first
  const early = new Map(); // of those who took it, where the giver has yet to write its record
  const reads = new Map(); // by client: the watcher whose stream it reads
  const streams = new Map(); // by reflector: how many streams it has had
  const list = (all, id) => all.get(id) ?? all.set(id, []).get(id);
  const change = ({ key, rv }) => `${objectKey(key ?? "")} ${rv || 0}`;
  const named = (where, r) => `${where} ${r.type ?? ""} ${change(r)}`;

  // give and take note the two ends of a handover.
  function give(way, id, column) {
    const taken = way.races ? list(early, id).splice(0, way.kept ? Infinity : 1) : [];
    for (const each of taken) note(way, column, each);
    if (way.kept || taken.length === 0) list(given, id).push(column);
  }
  function take(way, id, column) {
    const sent = way.kept ? list(given, id).at(-1) : list(given, id).shift();
    if (sent) note(way, sent, column);
    else if (way.races) list(early, id).push(column);
  }
  function note({ says, queue }, sent, taken) {
    if (sent.line) (queue ? transfers : passages).push({ sent, taken, says });
  }

  // begin takes notice of what stands in the queues before the run.
  function begin(res) {
    for (const [id, { opened, queues }] of Object.entries(res.subjects)) {
      for (const [name, { tokens }] of Object.entries(queues)) {
        for (const token of tokens) give({}, named(`${id}@${opened} ${name}`, token), { r: token });
      }
    }
  }

  function see(column, res) {
    const { point, subject = "" } = column.r;
    const { op, queue } = infos.get(point);
    if (["send", "push"].includes(op)) through(give, subject, queue, column, res, op === "send");
    if (["recv", "pop"].includes(op)) through(take, subject, queue, column, res, op === "recv");
    passes[point]?.(column.r, column, res);
  }

  // through is one end of a transfer.
  function through(act, subject, queue, column, res, races) {
    const id = named(`${subject}@${res.subjects[subject]?.opened} ${queue}`, column.r);
    // A key that is in the workqueue, or in the hands of a worker, is added later.
    const newest = res.subjects[subject]?.queues[queue]?.tokens.at(-1);
    const waits = newest?.key !== (column.r.key ?? "") || list(given, id).length > 0;
    if (act === give && queue === "workqueue" && waits) return;
    act({ says: `through ${subject} ${queue}`, queue, races }, id, column);
  }

  const read = (r) => named(`stream ${r.subject} ${streams.get(r.subject) ?? 0}`, r);
  const called = (r) => named(`next ${r.subject}`, r);
  const stored = (informer, r) => `stored ${informer} ${change(r)}`; // every listener is given it
  const fed = (r, column, res) => take(add, stored(res.subjects[r.subject]?.texts.ListenerAdded, r), column);

  // passes are what records say of the ways without queues. A revision is committed once, and its writer may be told
  // after its watchers. A stream loses what is on its way when it ends.
  const passes = {
    TxnCommitted: (r, column) => give(etcd, `etcd ${change(r)}`, column),
    Etcd3IncomingSent: (r, column) => take(etcd, `etcd ${change(r)}`, column),
    WireOpened: (r, column, res) => clientNames(res, r.subject).forEach((client) => reads.set(client, r.subject)),
    FrameWritten(r, column, res) {
      for (const client of clientNames(res, r.subject)) {
        if (!reads.has(client)) reads.set(client, r.subject);
        give(wire, named(`wire ${client} ${r.subject}`, r), column);
      }
    },
    FrameDecoded(r, column) {
      take(wire, named(`wire ${r.subject} ${reads.get(r.subject)}`, r), column);
      give(stream, read(r), column);
    },
    ReflectorReceived(r, column, res) {
      const watch = youngest(res, "watchchan");
      const id = watch && Object.keys(res.subjects).find((each) => res.subjects[each] === watch);
      if (id && r.subject === "cacher") through(take, id, "etcd3-result", column, res, true);
      take(stream, read(r), column);
    },
    ReflectorWatchEnded: (r) => streams.set(r.subject, (streams.get(r.subject) ?? 0) + 1),
    IndexerUpdated: (r, column) => give(add, stored(r.subject, r), column),
    PendingPopped: (r, column) => give(next, called(r), column),
    PendingPushed: fed,
    AddReceived(r, column, res) {
      give(next, called(r), column);
      fed(r, column, res);
    },
    HandlerCalled: (r, column) => take(next, called(r), column),
  };

  return { transfers, passages, begin, see };
}

// newSpans says which line waited for how long: {kind, line, since, from, to}, from and to being columns, null where
// the wait reaches beyond the run. To have nothing to do is no wait.
function newSpans() {
  const all = [];
  const open = new Map(); // by resource and the record that began it

  // see compares the waits of a resource with those before: they began, or ended, with a column, or before there was
  // one.
  function see(name, res, lineOf, column) {
    const waits = Object.values(res.waits).flat().filter((w) => w.kind !== "work");
    const ids = new Set(waits.map((w) => `${name} ${w.seq}`));
    for (const [id, span] of open) {
      if (!id.startsWith(`${name} `) || ids.has(id)) continue;
      open.delete(id);
      span.to = column;
    }
    for (const w of waits) {
      const id = `${name} ${w.seq}`;
      if (open.has(id)) continue;
      const span = { kind: w.kind, line: lineOf(w), since: w.t, from: column, to: null };
      open.set(id, span);
      all.push(span);
    }
  }

  return { all, see };
}
