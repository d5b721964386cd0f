// Handovers: what a run of records tells of who handed what to whom. Nothing here knows the document.
//
// A transfer is counted, not guessed: the fold numbers what goes into a queue and what comes out of it, and the k-th that
// came out is the k-th that went in. A queue of deltas need not keep that order (a DeltaFIFO gives by object): of it the
// oldest equal one is taken. What went in before the run, or comes out after it, is no transfer of the run, and neither is
// what still comes out of a queue whose subject is gone.
//
// Where there is no queue of ours between two lines, the same change is seen again at the other end: what etcd has committed
// by its watch, what was written to the wire by the client, what the client has decoded by its reflector, what the informer
// has stored by its listeners. That is a passage.

import { objectKey } from "../log/fold.js";
import { compareLines, newLines } from "./lines.js";
import { clientNames } from "../log/why.js";

// newHandovers returns {trace, switches}. trace folds records onto the picture before them, which it takes, and returns
// what happened between those that here accepts: columns in the order of the log, the lines from top to bottom; transfers,
// passages and spans between columns. None of the records may be missing: no count goes across a gap.
export function newHandovers(fold) {
  const who = newLines(fold.infos);

  function trace(state, records, here) {
    const columns = [];
    const lines = new Map();
    const on = (l, res) => {
      if (!lines.has(l.id)) lines.set(l.id, { ...l, opened: res?.subjects[l.owner]?.opened ?? 0 });
      return lines.get(l.id);
    };
    const transfers = newTransfers();
    const passages = newPassages();
    const spans = newSpans(fold.infos);
    who.begin();
    for (const [name, res] of Object.entries(state.resources)) {
      if (here({ resource: name })) spans.begin(name, res, (w) => on(who.at(w.point, w.subject, res, w.type), res));
    }
    for (const r of records) {
      const name = r.resource ?? "";
      if (!here(r)) {
        fold.apply(state, [r]);
        continue;
      }
      const column = { r, index: columns.length, line: on(who.at(r.point, r.subject ?? "", state.resources[name], r.type), state.resources[name]) };
      const before = queuesOf(state.resources[name], r);
      fold.apply(state, [r]);
      const res = state.resources[name];
      columns.push(column);
      who.note(r, res);
      transfers.see(column, before, queuesOf(res, r));
      passages.see(column, res);
      spans.see(column, name, res);
    }
    return { columns, transfers: transfers.list, passages: passages.list, spans: spans.all(), lines: [...lines.values()].sort(compareLines) };
  }

  return { trace, switches: who.switches };
}

const same = (a, b) => (a.type ?? "") === (b.type ?? "") && (a.key ?? "") === (b.key ?? "") && (a.rv ?? "0") === (b.rv ?? "0");

// queuesOf returns the queues that a record may have to do with, as they are now: how much has gone in and come out, and
// what stands in them.
function queuesOf(res, r) {
  const all = new Map();
  const note = (id, subject) => {
    for (const [name, q] of Object.entries(subject?.queues ?? {})) {
      all.set(`${id}@${subject.opened} ${name}`, { name, sent: q.sent, taken: q.received, tokens: name === "fifo" ? [...q.tokens] : [] });
    }
  };
  const id = r.subject ?? "";
  note(id, res?.subjects[id]);
  if (r.point === "ReflectorReceived") { // resultChan has a receiver that reports nothing else of it
    for (const [other, subject] of Object.entries(res?.subjects ?? {})) if (subject.kind === "watchchan") note(other, subject);
  }
  return all;
}

const most = 1024; // objects that one record can bring into a queue, or take out of it

// newTransfers joins those who brought something into a queue to those who took it out.
function newTransfers() {
  const list = [];
  const ends = new Map(); // by queue and number: {sent, taken}, the columns that are known
  const deltas = new Map(); // by queue of deltas: what stands in it, {what, column}, the oldest first; column is null if it came before
  const none = { sent: 0, taken: 0, tokens: [] };

  function see(column, before, after) {
    for (const [queue, now] of after) {
      const was = before.get(queue) ?? none;
      if (now.name === "fifo") {
        byContent(queue, was, now, column);
        continue;
      }
      grown(queue, was.sent, now.sent, "sent", column);
      grown(queue, was.taken, now.taken, "taken", column);
    }
  }

  // grown notes what one record added to a counter. A record of ours adds a few; one in a file may say anything.
  function grown(queue, was, now, side, column) {
    for (let n = Math.min(now - was, most) - 1; n >= 0; n--) end(queue, now - n, side, column);
  }

  function end(queue, k, side, column) {
    const pair = ends.get(`${queue} ${k}`) ?? {};
    pair[side] = column;
    ends.set(`${queue} ${k}`, pair);
    if (pair.sent && pair.taken && same(pair.sent.r, pair.taken.r)) list.push({ queue, sent: pair.sent, taken: pair.taken });
  }

  function byContent(queue, was, now, column) {
    if (!deltas.has(queue)) deltas.set(queue, was.tokens.map((what) => ({ what, column: null })));
    const standing = deltas.get(queue);
    if (now.sent > was.sent) standing.push({ what: column.r, column });
    if (now.taken === was.taken) return;
    const i = standing.findIndex((each) => same(each.what, column.r));
    if (i < 0) return;
    const [found] = standing.splice(i, 1);
    if (found.column) list.push({ queue, sent: found.column, taken: column });
  }

  return { list, see };
}

// newPassages joins what was given at one end to what was seen at the other. A revision is committed once, and its writer
// may be told after its watchers; a stream keeps its order, and what was on its way is lost with it.
function newPassages() {
  const list = [];
  const commits = new Map(); // by key and revision
  const early = []; // seen before the commit was reported
  const streams = new Map(); // by stream: columns that were given and not seen yet, the oldest first
  const current = new Map(); // by client: the watcher whose stream it reads
  const stored = new Map(); // by informer and key: the change that it applied last
  const given = (stream) => streams.get(stream) ?? [];
  const alike = (a, b) => same({ ...a, key: objectKey(a.key ?? "") }, { ...b, key: objectKey(b.key ?? "") });
  const give = (stream, column) => streams.set(stream, [...given(stream), column]);
  const take = (through, stream, column) => {
    const i = given(stream).findIndex((each) => alike(each.r, column.r));
    if (i >= 0) list.push({ through, sent: given(stream).splice(i, 1)[0], taken: column });
  };
  const drop = (stream, column) => streams.set(stream, given(stream).filter((each) => !alike(each.r, column.r)));
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
      case "WireOpened":
        for (const client of clientNames(res, r.subject)) {
          current.set(client, r.subject);
          streams.delete(`wire ${client}`);
        }
        break;
      case "FrameWritten":
        for (const client of clientNames(res, r.subject)) if ((current.get(client) ?? r.subject) === r.subject) give(`wire ${client}`, column);
        break;
      case "FrameDecoded":
        take("wire", `wire ${r.subject}`, column);
        give(`stream ${r.subject}`, column);
        break;
      case "ReflectorReceived":
        take("stream", `stream ${r.subject}`, column);
        break;
      case "ReflectorWatchEnded":
        streams.delete(`stream ${r.subject}`);
        break;
      case "IndexerUpdated":
        stored.set(`${r.subject} ${r.key}`, column);
        break;
      case "AddReceived": {
        const sent = stored.get(`${res.subjects[r.subject]?.texts.ListenerAdded} ${r.key}`);
        if (sent && sent.r.rv === r.rv) list.push({ through: "add", sent, taken: column });
        give(`next ${r.subject}`, column);
        break;
      }
      case "PendingPopped":
        give(`next ${r.subject}`, column);
        break;
      case "PendingPushed":
        drop(`next ${r.subject}`, column);
        break;
      case "HandlerCalled":
        take("next", `next ${r.subject}`, column);
    }
  }

  return { list, see };
}

// newSpans says how long who waited: {kind, line, since, from, to}, from and to being columns, null where the wait reaches
// beyond the run. To have nothing to do is no wait.
function newSpans(infos) {
  const ended = [];
  const open = new Map(); // by resource and the record that began it
  const waits = (res) => Object.values(res.waits).flat().filter((w) => w.kind !== "work");

  function begin(name, res, lineOf) {
    for (const w of waits(res)) open.set(`${name} ${w.seq}`, { name, kind: w.kind, line: lineOf(w), since: w.t, from: null, to: null });
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
    if (waiting.has(id)) open.set(id, { name, kind: infos.get(r.point).waits, line, since: r.t, from: column, to: null });
  }

  return { begin, see, all: () => [...ended, ...open.values()] };
}
