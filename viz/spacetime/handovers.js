// Handovers: which line handed what to which, as a run of records tells it. Nothing here knows the document.
//
// Through a queue of ours, what was put in as the k-th is taken out as the k-th, as the fold counts them. Where no
// queue of ours is between two lines, the same change is seen again at the other end: etcd's watch reports what was
// committed, the client what was written to the wire, its reflector what it decoded, its listeners what the informer
// stored. What went in before the run, or comes out after it, is neither.

import { namesOf, objectKey } from "../log/fold.js";
import { compareLines, lineOf } from "./lines.js";

/**
 * @typedef {import("./lines.js").Line} Line
 * @typedef {import("../log/fold.js").Fold} Fold
 * @typedef {{ [name: string]: string }} Switches
 * @typedef {Map<string, { subject: string, queue: string, sent: number, received: number }>} Counters
 * @typedef {{ r: probe.Record, line: Line, index: number }} Column
 * @typedef {{ sent: Column, taken: Column, says: string, queue?: string }} Arrow
 * @typedef {{ kind: string, line: Line, since: number, from: Column | null, to: Column | null }} Span
 * @typedef {{ id: string, column: Column }} Given
 * @typedef {Given & { says: string, queue?: string, races?: boolean }} Taken
 * @typedef {object} Passage
 * @property {probe.PointName[]} from
 * @property {(r: probe.Record, res: fold.Resource) => string | undefined} [whose]
 * @property {string} says
 * @property {boolean} [races]
 */

// again says of points at which a change is seen again, where it was seen before: from, of whom, and which way it came.
// A revision is committed once, and its writer may be told after its watchers.
/** @param {probe.Record} r @param {fold.Resource} res */
const informer = (r, res) => res.subjects[r.subject ?? ""]?.texts.ListenerAdded?.informer;
/** @type {Passage} */
const fed = { from: ["IndexerUpdated"], whose: informer, says: "by hand, through addCh" };
/** @type {{ [point in probe.PointName]?: Passage }} */
const again = {
  Etcd3IncomingSent: { from: ["TxnCommitted"], whose: () => "", says: "by etcd's watch", races: true },
  FrameDecoded: { from: ["FrameWritten"], says: "over the wire" },
  ReflectorReceived: { from: ["FrameDecoded"], says: "by hand: nothing lies between" },
  AddReceived: fed, PendingPushed: fed,
  HandlerCalled: { from: ["AddReceived", "PendingPopped"], says: "by hand, through nextCh" },
};

/** @param {{ key?: string, rv?: string }} r */
const change = ({ key, rv }) => `${objectKey(key ?? "")} ${rv || 0}`;

// trace folds records onto the picture before them, which it takes, and returns what happened between those that here
// accepts: columns in the order of the log; lines from top to bottom; arrows and spans between columns. from and to are
// null where a wait reaches beyond the run. To have nothing to do is no wait. switches are those with which the
// program runs.
/**
 * @param {Fold} fold @param {Switches} switches @param {fold.State} state @param {probe.Record[]} records
 * @param {(r: { resource?: string }) => boolean} here
 */
export function trace(fold, switches, state, records, here) {
  const run = new Run(fold, switches, here);
  run.wait(state, null);
  for (const r of records) {
    const before = here(r) && countersOf(state.resources[r.resource ?? ""], r);
    fold.apply(state, [r]);
    if (!before) continue;
    const column = { r, line: run.lineAt(r), index: run.columns.length };
    run.columns.push(column);
    run.wait(state, column);
    run.hand(column, before, state.resources[r.resource ?? ""]);
  }
  const { columns, spans, lines } = run;
  return { columns, arrows: run.arrows(), spans: [...spans.values()], lines: [...lines.values()].sort(compareLines) };
}

// A Run is what is known of records on the way through them.
class Run {
  /** @param {Fold} fold @param {Switches} switches @param {(r: { resource?: string }) => boolean} here */
  constructor(fold, switches, here) {
    this.fold = fold;
    this.switches = switches;
    this.here = here;
    /** @type {Column[]} */
    this.columns = [];
    /** @type {Map<string, Line>} */
    this.lines = new Map();
    /** @type {Given[]} */
    this.given = []; // what was handed over, and the columns that gave it
    /** @type {Taken[]} */
    this.taken = []; // … and that took it
    /** @type {Map<number, Span>} */
    this.spans = new Map(); // by the record that began it
  }

  /** @param {{ point: string, subject?: string }} moment */
  lineAt(moment) {
    const line = lineOf(this.fold.infos, this.switches, moment);
    const known = this.lines.get(line.id) ?? line;
    this.lines.set(line.id, known);
    return known;
  }

  // wait compares the waits with those before: they began, or ended, with a column, or before there was one.
  /** @param {fold.State} state @param {Column | null} column */
  wait(state, column) {
    const waits = Object.entries(state.resources).filter(([resource]) => this.here({ resource }))
      .flatMap(([, res]) => Object.values(res.waits).flat()).filter((w) => w.kind !== "work");
    const open = new Set(waits.map((w) => w.seq));
    for (const [seq, span] of this.spans) if (!open.has(seq)) span.to ??= column;
    for (const w of waits) {
      if (this.spans.has(w.seq)) continue;
      this.spans.set(w.seq, { kind: w.kind, line: this.lineAt(w), since: w.t, from: column, to: null });
    }
  }

  // hand notes what a record gave away or took: through queues, as these stood before, and where no queue is between.
  /** @param {Column} column @param {Counters} before @param {fold.Resource} res */
  hand(column, before, res) {
    const { r } = column;
    for (const [id, { subject, queue, sent, received }] of countersOf(res, r)) {
      const had = before.get(id) ?? { sent: 0, received: 0 };
      const says = `through ${subject} ${queue}`;
      const byObject = queue === "fifo" && this.switches.fifo === "delta"; // a DeltaFIFO gives by object
      const nth = (/** @type {number} */ k) => `${id} ${byObject ? `${r.type} ${change(r)}` : k}`;
      if (sent === had.sent + 1) this.given.push({ id: nth(sent), column });
      if (received === had.received + 1) this.taken.push({ id: nth(received), column, says, queue, races: true });
    }
    const seen = (/** @type {string} */ point, /** @type {string | undefined} */ whose) =>
      `${point} ${whose ?? ""} ${change(r)}`;
    const seers = r.point === "FrameWritten" ? namesOf(res.subjects[r.subject ?? ""])
      : [r.point === "TxnCommitted" ? "" : r.subject]; // who may see again what the record tells
    for (const who of seers) this.given.push({ id: seen(r.point, who), column });
    const passage = again[r.point];
    for (const point of passage?.from ?? []) {
      const whose = passage?.whose ? passage.whose(r, res) : r.subject;
      this.taken.push({ id: seen(point, whose), column, says: passage?.says ?? "", races: passage?.races });
    }
  }

  arrows() {
    const givers = Map.groupBy(this.given, ({ id }) => id);
    return this.taken.flatMap(({ id, column, says, queue, races }) => {
      const all = givers.get(id)?.map((each) => each.column) ?? [];
      const sent = all.findLast((giver) => giver.index < column.index) ?? (races && all[0]);
      return sent && sent !== column ? [{ sent, taken: column, says, queue }] : [];
    });
  }
}

// countersOf says of every queue that a record may move how much has gone into it and out of it: those of its subject,
// and those of etcd's watches, from which the cacher's reflector takes.
/** @param {fold.Resource | undefined} res @param {probe.Record} r */
const countersOf = (res, r) => new Map(Object.entries(res?.subjects ?? {})
  .filter(([subject, { kind }]) => subject === (r.subject ?? "") || kind === "watchchan")
  .flatMap(([subject, { opened, queues }]) => Object.entries(queues).map(([queue, { sent, received }]) =>
    [`${subject}@${opened} ${queue}`, { subject, queue, sent, received }])));
