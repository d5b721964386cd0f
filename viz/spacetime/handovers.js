// Handovers: which line handed what to which, as a run of records tells it. Nothing here knows the document.
//
// A transfer is counted, not guessed: the fold numbers what goes into a queue and what comes out of it, and the k-th
// that came out is the k-th that went in. A queue of deltas need not keep that order (a DeltaFIFO gives by object):
// there the oldest equal one is taken. What went in before the run, or comes out after it, is no transfer of the run,
// and neither is what still comes out of a queue whose subject is gone.
//
// Where no queue of ours is between two lines, the same change is seen again at the other end: etcd's watch reports
// what was committed, the client what was written to the wire, its reflector what it decoded, its listeners what the
// informer stored. That is a passage.

import { objectKey } from "../log/fold.js";
import { clientNames } from "../log/fold.js";
import { compareLines, newLines } from "./lines.js";

const most = 1024; // objects that one record can bring into a queue, or take out of it

// newHandovers returns {trace, switches}. trace folds records onto the picture before them, which it takes, and returns
// what happened between those that here accepts: columns in the order of the log, lines from top to bottom; transfers,
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
      const before = state.resources[name];
      const queues = queuesOf(before, r);
      const column = { r, index: columns.length };
      if (here(r)) column.line = on(who.at(r.point, r.subject ?? "", before, r.type), before);
      fold.apply(state, [r]);
      if (!column.line) continue;
      const res = state.resources[name];
      columns.push(column);
      who.note(r, res);
      transfers.see(column, queues, queuesOf(res, r));
      passages.see(column, res);
      spans.see(column, name, res);
    }
    const sorted = [...lines.values()].sort(compareLines);
    return { columns, transfers: transfers.list, passages: passages.list, spans: spans.all(), lines: sorted };
  }

  return { trace, switches: who.switches };
}

const idOf = (r) => `${r.type ?? ""} ${r.key ?? ""} ${r.rv ?? "0"}`;
const same = (a, b) => idOf(a) === idOf(b);

// queuesOf returns the queues that a record may have to do with, as they are now: how much has gone in and come out,
// and what stands in them. A reflector is the receiver of resultChan, too, and reports nothing else of it.
function queuesOf(res, r) {
  const all = new Map();
  for (const [id, subject] of Object.entries(res?.subjects ?? {})) {
    if (id !== (r.subject ?? "") && !(r.point === "ReflectorReceived" && subject.kind === "watchchan")) continue;
    for (const [name, { sent, received: taken, tokens }] of Object.entries(subject.queues)) {
      all.set(`${id}@${subject.opened} ${name}`, { name, sent, taken, tokens: name === "fifo" ? [...tokens] : [] });
    }
  }
  return all;
}

// newTransfers joins the record that brought something into a queue to the record that took it out.
function newTransfers() {
  const list = [];
  const ends = new Map(); // by queue and number: {sent, taken}, the columns that are known
  const deltas = new Map(); // by queue of deltas: what stands in it, the oldest first; column is null if it came before
  const none = { sent: 0, taken: 0, tokens: [] };

  function see(column, before, after) {
    for (const [queue, now] of after) {
      const was = before.get(queue) ?? none;
      if (now.name === "fifo") byContent(queue, was, now, column);
      else for (const side of ["sent", "taken"]) grown(queue, was[side], now[side], side, column);
    }
  }

  // grown notes what one record added to a counter. A record of ours adds a few; one in a file may say anything: beyond
  // 2^53 a counter that is increased by one stays as it is, so the loop does not count in it.
  function grown(queue, was, now, side, column) {
    for (let left = Math.min(now - was, most); left > 0; left--) {
      const k = now - left + 1;
      const pair = { ...ends.get(`${queue} ${k}`), [side]: column };
      ends.set(`${queue} ${k}`, pair);
      if (pair.sent && pair.taken && same(pair.sent.r, pair.taken.r)) list.push({ queue, ...pair });
    }
  }

  function byContent(queue, was, now, column) {
    if (!deltas.has(queue)) deltas.set(queue, was.tokens.map((what) => ({ what, column: null })));
    const standing = deltas.get(queue);
    if (now.sent > was.sent) standing.push({ what: column.r, column });
    const i = now.taken === was.taken ? -1 : standing.findIndex((each) => same(each.what, column.r));
    const [found] = i < 0 ? [] : standing.splice(i, 1);
    if (found?.column) list.push({ queue, sent: found.column, taken: column });
  }

  return { list, see };
}

// newPassages joins what was given at one end to what was seen at the other. A revision is committed once, and its
// writer may be told after its watchers. A stream keeps its order, and loses what is on its way when it ends.
function newPassages() {
  const list = [];
  const commits = new Map(); // by key and revision
  const early = []; // seen before the commit was reported
  const streams = new Map(); // by stream: columns that were given and not seen yet, the oldest first
  const current = new Map(); // by client: the watcher whose stream it reads
  const stored = new Map(); // by informer and key: the change that it applied last
  const given = (stream) => streams.get(stream) ?? [];
  const objectOf = (r) => ({ ...r, key: objectKey(r.key ?? "") });
  const alike = (a, b) => same(objectOf(a.r), objectOf(b.r));
  const give = (stream, column) => streams.set(stream, [...given(stream), column]);
  const drop = (stream, column) => streams.set(stream, given(stream).filter((each) => !alike(each, column)));
  const take = (through, stream, column) => {
    const i = given(stream).findIndex((each) => alike(each, column));
    if (i >= 0) list.push({ through, sent: given(stream).splice(i, 1)[0], taken: column });
  };
  const revision = (r) => `${r.key} ${r.rv}`;

  function see(column, res) {
    const { r } = column;
    switch (r.point) {
      case "TxnCommitted":
        commits.set(revision(r), column);
        for (const taken of early) {
          if (revision(taken.r) === revision(r)) list.push({ through: "etcd", sent: column, taken });
        }
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
        for (const client of clientNames(res, r.subject)) {
          if ((current.get(client) ?? r.subject) === r.subject) give(`wire ${client}`, column);
        }
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
