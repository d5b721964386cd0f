// @ts-nocheck
// Handovers: which line handed what to which, as a run of records tells it. Nothing here knows the document.
//
// Through a queue of ours, what was put in as the k-th is taken out as the k-th, as the fold counts them. Where no
// queue of ours is between two lines, the same change is seen again at the other end: etcd's watch reports what was
// committed, the client what was written to the wire, its reflector what it decoded, its listeners what the informer
// stored. What went in before the run, or comes out after it, is neither.

import { namesOf, objectKey } from "../log/fold.js";
import { compareLines, lineOf } from "./lines.js";

// again says of points at which a change is seen again, where it was seen before: from, of whom, and which way it came.
// A revision is committed once, and its writer may be told after its watchers.
const informer = (r, res) => res.subjects[r.subject]?.texts.ListenerAdded;
const fed = { from: ["IndexerUpdated"], whose: informer, says: "by hand, through addCh" };
const again = {
  Etcd3IncomingSent: { from: ["TxnCommitted"], whose: () => "", says: "by etcd's watch", races: true },
  FrameDecoded: { from: ["FrameWritten"], says: "over the wire" },
  ReflectorReceived: { from: ["FrameDecoded"], says: "by hand: nothing lies between" },
  AddReceived: fed, PendingPushed: fed,
  HandlerCalled: { from: ["AddReceived", "PendingPopped"], says: "by hand, through nextCh" },
};

const change = ({ key, rv }) => `${objectKey(key ?? "")} ${rv || 0}`;

// trace folds records onto the picture before them, which it takes, and returns what happened between those that here
// accepts: columns {r, line, index} in the order of the log; lines from top to bottom; arrows {sent, taken, says,
// queue} and spans {kind, line, since, from, to} between columns. from and to are null where a wait reaches beyond the
// run. To have nothing to do is no wait. modes are the switches with which the program runs.
export function trace(fold, modes, state, records, here) {
  const [columns, lines] = [[], new Map()];
  const [given, taken] = [[], []]; // what was handed over, and the columns that gave it, and that took it
  const spans = new Map(); // by the record that began it
  const lineAt = (moment) => {
    const line = lineOf(fold.infos, modes, moment);
    return lines.get(line.id) ?? lines.set(line.id, line).get(line.id);
  };

  // wait compares the waits with those before: they began, or ended, with a column, or before there was one.
  function wait(column) {
    const waits = Object.entries(state.resources).filter(([resource]) => here({ resource }))
      .flatMap(([, res]) => Object.values(res.waits).flat()).filter((w) => w.kind !== "work");
    const open = new Set(waits.map((w) => w.seq));
    for (const [seq, span] of spans) if (!open.has(seq)) span.to ??= column;
    for (const w of waits) {
      if (spans.has(w.seq)) continue;
      spans.set(w.seq, { kind: w.kind, line: lineAt(w), since: w.t, from: column, to: null });
    }
  }

  // hand notes what a record gave away or took: through queues, as these stood before, and where no queue is between.
  function hand(column, before, res) {
    const { r } = column;
    for (const [id, { subject, queue, sent, received }] of countersOf(res, r)) {
      const had = before.get(id) ?? { sent: 0, received: 0 };
      const says = `through ${subject} ${queue}`;
      // A DeltaFIFO gives by object.
      const nth = (k) => `${id} ${queue === "fifo" && modes.fifo === "delta" ? `${r.type} ${change(r)}` : k}`;
      if (sent === had.sent + 1) given.push({ id: nth(sent), column });
      if (received === had.received + 1) taken.push({ id: nth(received), column, says, queue, races: true });
    }
    const seen = (point, whose) => `${point} ${whose ?? ""} ${change(r)}`;
    const seers = r.point === "FrameWritten" ? namesOf(res.subjects[r.subject])
      : [r.point === "TxnCommitted" ? "" : r.subject]; // who may see again what the record tells
    for (const who of seers) given.push({ id: seen(r.point, who), column });
    const { from = [], whose = () => r.subject, ...way } = again[r.point] ?? {};
    for (const point of from) taken.push({ id: seen(point, whose(r, res)), column, ...way });
  }

  wait(null);
  for (const r of records) {
    const before = here(r) && countersOf(state.resources[r.resource ?? ""], r);
    fold.apply(state, [r]);
    if (!before) continue;
    const column = { r, line: lineAt(r), index: columns.length };
    columns.push(column);
    wait(column);
    hand(column, before, state.resources[r.resource ?? ""]);
  }
  const givers = Map.groupBy(given, ({ id }) => id);
  const arrows = taken.flatMap(({ id, column, says, queue, races }) => {
    const all = givers.get(id)?.map((each) => each.column) ?? [];
    const sent = all.findLast((giver) => giver.index < column.index) ?? (races && all[0]);
    return sent && sent !== column ? [{ sent, taken: column, says, queue }] : [];
  });
  return { columns, arrows, spans: [...spans.values()], lines: [...lines.values()].sort(compareLines) };
}

// countersOf says of every queue that a record may move how much has gone into it and out of it: those of its subject,
// and those of etcd's watches, from which the cacher's reflector takes.
const countersOf = (res, r) => new Map(Object.entries(res?.subjects ?? {})
  .filter(([subject, { kind }]) => subject === (r.subject ?? "") || kind === "watchchan")
  .flatMap(([subject, { opened, queues }]) => Object.entries(queues).map(([queue, { sent, received }]) =>
    [`${subject}@${opened} ${queue}`, { subject, queue, sent, received }])));
