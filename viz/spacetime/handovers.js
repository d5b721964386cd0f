// Handovers: the line of each record in a part of the log, and the items and changes that pass between lines. The fold
// counts a queue's items: the k-th put in is the k-th taken out. If no queue connects two lines, both ends report the
// same change. An arrow is drawn only if both of its records are in this part. A receiver may write its record first.

import { squeeze } from "../lib/texts.js";
import { namesOf, objectKey } from "../log/fold.js";

/**
 * @typedef {import("../log/fold.js").Fold} Fold
 * @typedef {object} Line
 * @property {string} id
 * @property {string} title
 * @property {string} owner
 * @property {number} order in the path
 * @property {boolean} place whether it is a station's, not a goroutine's
 * @typedef {{ r: probe.Record, line: Line, index: number }} Column
 * @typedef {{ sent: Column, taken: Column, says: string, queue?: string }} Arrow
 * @typedef {Map<string, { subject: string, queue: string, sent: number, received: number }>} Counters
 */

// again maps a point that reports a change again to the points that may precede it, and to words for the way between.
/** @type {{ [point in probe.PointName]?: [from: probe.PointName[], says: string] }} */
const again = {
  Etcd3IncomingSent: [["TxnCommitted"], "by etcd's watch"],
  FrameDecoded: [["FrameWritten"], "over the wire"],
  ReflectorReceived: [["FrameDecoded"], "by hand: nothing lies between"],
  AddReceived: [["IndexerUpdated"], "by hand, through addCh"],
  PendingPushed: [["IndexerUpdated"], "by hand, through addCh"],
  HandlerCalled: [["AddReceived", "PendingPopped"], "by hand, through nextCh"],
};

/** @param {{ key?: string, rv?: string }} r */
const change = ({ key, rv }) => `${objectKey(key ?? "")} ${rv || 0}`;

// trace folds records into state, the picture before them. It returns a column for each record on stage (here)
// in log order, their lines from top to bottom, and arrows. With delta, a FIFO's items are matched by type and change.
/**
 * @param {Fold} fold @param {boolean} delta @param {fold.State} state @param {probe.Record[]} records
 * @param {(r: { resource?: string }) => boolean} here
 */
export function trace(fold, delta, state, records, here) {
  /** @type {Column[]} */
  const columns = [];
  /** @type {{ id: string, column: Column }[]} */
  const given = []; // the items handed over, with the columns that gave them
  /** @type {{ id: string, column: Column, says: string, queue?: string }[]} */
  const taken = [];
  for (const r of records) {
    const before = here(r) && countersOf(state.resources[r.resource ?? ""], r);
    fold.apply(state, [r]);
    if (!before) continue;
    const res = state.resources[r.resource ?? ""];
    const column = { r, line: lineOf(fold.infos, r), index: columns.length };
    columns.push(column);
    for (const [id, { subject, queue, sent, received }] of countersOf(res, r)) {
      const had = before.get(id) ?? { sent: 0, received: 0 };
      const nth = (/** @type {number} */ k) => `${id} ${queue === "fifo" && delta ? `${r.type} ${change(r)}` : k}`;
      if (sent === had.sent + 1) given.push({ id: nth(sent), column });
      if (received === had.received + 1) {
        taken.push({ id: nth(received), column, says: `through ${subject} ${queue}`, queue });
      }
    }
    for (const who of seers(r, res)) given.push({ id: `${r.point} ${who} ${change(r)}`, column });
    const [from, says] = again[r.point] ?? [[], ""];
    const whose = from[0] === "TxnCommitted" ? "" : from[0] === "IndexerUpdated"
      ? res.subjects[r.subject ?? ""]?.texts.ListenerAdded?.informer : r.subject;
    for (const point of from) taken.push({ id: `${point} ${whose ?? ""} ${change(r)}`, column, says });
  }
  const givers = Map.groupBy(given, ({ id }) => id);
  const arrows = taken.flatMap(({ id, column, says, queue }) => {
    const all = givers.get(id)?.map((each) => each.column) ?? [];
    const sent = all.findLast((giver) => giver.index < column.index) ?? all[0];
    return sent && sent !== column ? [{ sent, taken: column, says, queue }] : [];
  });
  return { columns, arrows, lines: inOrder(columns.map(({ line }) => line)) };
}

/** @param {probe.Record} r @param {fold.Resource} res */
function seers({ point, subject = "" }, res) {
  return point === "FrameWritten" ? namesOf(res.subjects[subject]) : [point === "TxnCommitted" ? "" : subject];
}

// countersOf returns the counts of items put into and taken out of each queue that a record may change.
/** @param {fold.Resource | undefined} res @param {probe.Record} r @returns {Counters} */
const countersOf = (res, r) => new Map(Object.entries(res?.subjects ?? {})
  .filter(([subject, { kind }]) => subject === (r.subject ?? "") || kind === "watchchan")
  .flatMap(([subject, { opened, queues }]) => Object.entries(queues).map(([queue, { sent, received }]) =>
    [`${subject}@${opened} ${queue}`, { subject, queue, sent, received }])));

const longest = 22; // the maximum number of characters in a title

// laneOf returns the first goroutine that a point names, without its package; "" if it names none, or only viz.ui.
/** @param {fold.Point} info */
const laneOf = ({ lane = "" }) => (lane === "viz.ui" ? "" : lane.split(" ")[0].replace(/^.*\./, ""));

// lineOf returns the line of a record: the first goroutine that its point names or, if it names none, its station.
/** @param {import("../log/fold.js").Infos} infos @param {{ point: string, subject?: string }} r @returns {Line} */
export function lineOf(infos, { point, subject = "" }) {
  const info = infos.get(point);
  const lane = laneOf(info);
  // the Cacher's reflector runs in the goroutine that fills the ring
  const name = lane || (subject === "cacher" && info.station === "reflector" ? "ring" : info.station);
  const names = [...infos.values()].map((each) => laneOf(each) || each.station);
  const order = names.indexOf(name); // the table is in path order
  const owner = order < names.indexOf("watcher") ? "" : subject;
  const whose = squeeze(owner.replace(/-informer$/, ""), longest - 1 - name.length);
  const title = !owner ? squeeze(name, longest) : name === "informer" ? owner : `${whose} ${name}`;
  return { id: `${owner} ${name}`, title, owner, order, place: !lane };
}

// inOrder returns each line once, from top to bottom. Owners are in the order of the path, then by name, w2 before w10.
/** @param {Line[]} all */
function inOrder(all) {
  const lines = [...new Map(all.map((line) => [line.id, line])).values()];
  const first = new Map([...lines].sort((a, b) => b.order - a.order).map(({ owner, order }) => [owner, order]));
  return lines.sort((a, b) => (first.get(a.owner) ?? 0) - (first.get(b.owner) ?? 0)
    || a.owner.localeCompare(b.owner, "en", { numeric: true }) || a.order - b.order);
}
