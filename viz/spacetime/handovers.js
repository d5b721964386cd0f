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

import { clientNames, objectKey } from "../log/fold.js";
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
    const arrows = newArrows();
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
      arrows.transfer(column, queues, queuesOf(res, r));
      arrows.pass(column, res);
      spans.see(column, name, res);
    }
    const { transfers, passages } = arrows;
    return { columns, transfers, passages, spans: spans.all(), lines: [...lines.values()].sort(compareLines) };
  }

  return { trace, switches: who.switches };
}

const same = (a, b) => ["type", "rv"].every((name) => (a[name] || "0") === (b[name] || "0"))
  && objectKey(a.key ?? "") === objectKey(b.key ?? "");

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

// newArrows joins the record that gave something away to the record that took it: as transfers through queues, and as
// passages.
function newArrows() {
  const transfers = [];
  const passages = [];
  const ends = new Map(); // by what is handed over once: {sent, taken}, the columns that are known
  const streams = new Map(); // by stream: what was given and not taken yet, the oldest first
  const current = new Map(); // by client: the watcher whose stream it reads

  // meet notes one end of what is handed over once. Its two ends may be reported in either order.
  function meet(list, more, id, side, column) {
    const pair = { ...ends.get(id), [side]: column };
    ends.set(id, pair);
    if (pair.sent && pair.taken && (more.through || same(pair.sent.r, pair.taken.r))) list.push({ ...more, ...pair });
  }

  const given = (stream) => streams.get(stream) ?? [];
  const give = (stream, column) => streams.set(stream, [...given(stream), column]);

  // drop takes the oldest equal one out of a stream, and returns its column, if it has one: it may come from before.
  function drop(stream, column) {
    const i = given(stream).findIndex(({ r }) => same(r, column.r));
    const [found] = i < 0 ? [] : given(stream).splice(i, 1);
    return found?.line && found;
  }

  function take(list, more, stream, column) {
    const sent = drop(stream, column);
    if (sent) list.push({ ...more, sent, taken: column });
  }

  // transfer sees what a record has put into queues and taken out of them. A record of ours adds a few to a counter;
  // one in a file may say anything: beyond 2^53 a counter that is increased by one stays as it is, so the loop does not
  // count in it.
  function transfer(column, before, after) {
    for (const [queue, now] of after) {
      const was = before.get(queue) ?? { sent: 0, taken: 0, tokens: [] };
      if (now.name === "fifo") {
        if (!streams.has(queue)) streams.set(queue, was.tokens.map((r) => ({ r })));
        if (now.sent > was.sent) give(queue, column);
        if (now.taken > was.taken) take(transfers, { queue }, queue, column);
        continue;
      }
      for (const side of ["sent", "taken"]) {
        for (let left = Math.min(now[side] - was[side], most); left > 0; left--) {
          meet(transfers, { queue }, `${queue} ${now[side] - left + 1}`, side, column);
        }
      }
    }
  }

  // pass sees what a record says of the ways without queues. A revision is committed once, and its writer may be told
  // after its watchers. A stream keeps its order, and loses what is on its way when it ends.
  function pass(column, res) {
    const { r } = column;
    const clients = () => clientNames(res, r.subject);
    switch (r.point) {
      case "TxnCommitted":
        return meet(passages, { through: "etcd" }, `${r.key} ${r.rv}`, "sent", column);
      case "Etcd3IncomingSent":
        return meet(passages, { through: "etcd" }, `${r.key} ${r.rv}`, "taken", column);
      case "WireOpened":
        for (const client of clients()) {
          current.set(client, r.subject);
          streams.delete(`wire ${client}`);
        }
        return;
      case "FrameWritten":
        for (const client of clients()) {
          if ((current.get(client) ?? r.subject) === r.subject) give(`wire ${client}`, column);
        }
        return;
      case "FrameDecoded":
        take(passages, { through: "wire" }, `wire ${r.subject}`, column);
        return give(`stream ${r.subject}`, column);
      case "ReflectorReceived":
        return take(passages, { through: "stream" }, `stream ${r.subject}`, column);
      case "ReflectorWatchEnded":
        return streams.delete(`stream ${r.subject}`);
      case "IndexerUpdated":
        return streams.set(`stored ${r.subject} ${r.key}`, [column]); // every listener is given it
      case "AddReceived": {
        const [sent] = given(`stored ${res.subjects[r.subject]?.texts.ListenerAdded} ${r.key}`);
        if (sent && sent.r.rv === r.rv) passages.push({ through: "add", sent, taken: column });
      }
      // falls through
      case "PendingPopped":
        return give(`next ${r.subject}`, column);
      case "PendingPushed":
        return drop(`next ${r.subject}`, column);
      case "HandlerCalled":
        take(passages, { through: "next" }, `next ${r.subject}`, column);
    }
  }

  return { transfers, passages, transfer, pass };
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
