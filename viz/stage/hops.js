// Hops: which change a record is about, and which records make up one hop of that change.

import { objectKey } from "../log/fold.js";

// route: a hurried token passes all points between two bars in one hop, and a greatly hurried one between double bars.
const route = "TxnCommitted | Etcd3IncomingSent Etcd3IncomingReceived | Etcd3ResultSent ReflectorReceived || " +
  "RingAppend StoreUpdate | IncomingSent IncomingReceived || InputReceived ResultSent ResultReceived FrameWritten || " +
  "FrameDecoded ReflectorReceived FIFOAdded | FIFOPopped IndexerUpdated || " +
  "AddReceived PendingPushed PendingPopped HandlerCalled || WorkAdded WorkGot";
const runs = route.split("||").map((each) => each.split(" "));
const phases = route.split("|").map((each) => each.split(" "));
const hurried = 1.3; // multiples of the reading pace
const greatly = 2;

/** @param {string[][]} groups @param {probe.Record} a @param {probe.Record} b */
const inOne = (groups, a, b) => groups.some((each) => each.includes(a.point) && each.includes(b.point));

// changeOf names the change that a record is about: one version of one object, in either half.
/** @param {{ rv?: string, key?: string }} r */
export const changeOf = (r) => `${r.rv ?? ""} ${objectKey(r.key ?? "")}`;

// together reports whether two records in a row are one hop: one step of two copies or, if hurried, two steps of one.
/** @param {probe.Record} a @param {probe.Record} b @param {number} pace */
export function together(a, b, pace) {
  if (changeOf(a) !== changeOf(b)) return false;
  if (a.point === b.point) return a.subject !== b.subject;
  const one = a.subject === b.subject || inOne(runs.slice(0, 2), a, b); // before the dispatcher there is only one copy
  return one && pace > hurried && inOne(pace > greatly ? runs : phases, a, b);
}

// departs reports whether a record is about leaving a place. The token sets out when such a record is folded.
/** @param {fold.Point} info @param {probe.Record} r */
export function departs(info, r) {
  if (info.op === "recv" || info.op === "pop") return true;
  if (info.name === "ReflectorReceived") return r.subject === "cacher"; // the Cacher's reflector takes from resultChan
  return info.name === "WatcherFiltered" || info.name === "FrameWritten";
}
