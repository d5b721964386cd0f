// The state of a place at the cursor, and the chain of waits from its queue to the goroutine that can end them.

import { milliseconds } from "../lib/texts.js";
import { namesOf, objectKey, shelfName, youngest } from "../log/fold.js";

/**
 * @typedef {import("../log/fold.js").Infos} Infos
 * @typedef {{ station: probe.Station, queue: string, subject: string }} Place
 * @typedef {{ [queue: string]: string }} Titles
 * @typedef {[name: string, value: string | number | undefined]} Row
 * @typedef {object} Link a link of a chain
 * @property {string} queue
 * @property {string} subject
 * @property {number} len
 * @property {number} cap
 * @property {fold.Wait | null} taker
 */

// rowsOf lists the fields of a part of the picture. A token, an object or a record is one row.
/** @param {object} part @param {string} [path] @returns {Row[]} */
const rowsOf = (part, path = "") => Object.entries(part).flatMap(([name, value]) => {
  if (typeof value !== "object") return value === undefined ? [] : [[path + name, value]];
  if (!("key" in value)) return rowsOf(value, `${path}${name} `);
  const { point, subject, type, key, rv } = value;
  return [[path + name, [point, subject, type, objectKey(key), rv].filter(Boolean).join(" ")]];
});

// meant returns a query for a resource's records about a place. It must agree with part.matches (inspector.go).
/**
 * @param {Iterable<[string, fold.Point]>} infos @param {string} resource @param {Place} place
 * @returns {probe.Query}
 */
export function meant(infos, resource, { station, queue, subject }) {
  const points = [...infos].flatMap(([, info]) => info.queue === queue ||
    (subject && !info.queue && info.station === station) ? [info.name] : []);
  return { resource: `|${resource}`, subject, ...(queue ? { points } : { station }) };
}

// stateOf returns a place's state. titles has the names of the queues; about(r) reports whether r is about the place.
/**
 * @param {fold.Resource | undefined} res @param {Place} place @param {Titles} titles
 * @param {(r: fold.Last) => boolean} about
 */
export function stateOf(res, { station, queue, subject }, titles, about) {
  /** @type {{ title: string, rows: Row[] }[]} */
  const groups = [];
  /** @param {string} title @param {object | undefined} part */
  const add = (title, part) => part && groups.push({ title, rows: rowsOf(part) });
  if (!res) return groups;
  if (!queue && !subject) add("station", res.stations[station]);
  if (station === "ring") add("ring", { ...res.ring, cells: [] });
  for (const [name, shelf] of Object.entries(res.shelves)) { // each informer has a shelf of its own
    if (name.startsWith(shelfName(station))) add(`${name}: objects, the newest change last`, shelf);
  }
  /** @param {[string, fold.Subject]} entry */
  const here = ([id, s]) => (!subject || id === subject) &&
    (queue ? s.queues[queue] : about(s.last) || s.kind === station);
  for (const [id, s] of Object.entries(res.subjects).filter(here).sort(([, a], [, b]) => a.opened - b.opened)) {
    for (const name of Object.keys(s.queues).sort()) {
      if (!queue || name === queue) add(`${titles[name]} of ${id}`, s.queues[name]);
    }
    if (!queue) add(`${s.kind} ${id}`.trim(), { ...s, queues: {} });
  }
  return groups;
}

// ---- the chain of waits

const most = 64; // the maximum number of chains of a place, for its longest queues, because each searches all waits

// ways describes the hand-overs without a queue: from the StreamWatcher to the reflector, from a watcher to its client.
/** @type {{ [queue: string]: { name: string, station: probe.Station, takers: string } }} */
const ways = {
  stream: { name: "the hand-over to the reflector of", station: "reflector", takers: "reflector.Run" },
  wire: { name: "the stream to", station: "wire", takers: "StreamWatcher.receive" },
};

/** @type {{ [kind: string]: string }} */
const waitsFor = {
  room: "room at the next one", taker: "the next one to take it", version: "a newer version",
  client: "its client to read", return: "its own code to return", work: "something to do",
};

/** @param {fold.Wait[]} waits */
const oldest = (waits) => waits.reduce((/** @type {fold.Wait | null} */ a, b) => (a && a.seq <= b.seq ? a : b), null);
/** @param {string} names */
const orAny = (names) => names.replaceAll(" ", " or ") || "any goroutine";

/** @param {Infos} infos */
export function newWhy(infos) {
  const points = [...infos.values()];

  // why follows the waits from a queue of a subject. The goroutine that takes from the queue may wait at another queue.
  // If it waits at none, or at a queue of the chain, the chain ends. After a watcher, it goes on in a reporting client.
  /** @param {fold.Resource} res @param {string} queue @param {string} subject */
  function why(res, queue, subject) {
    const waits = Object.values(res.waits).flat();
    /** @type {Link[]} */
    const chain = [];
    while (queue && !chain.some((l) => l.queue === queue && l.subject === subject)) {
      const [name, who, { len = 0, cap = 0 }] = [queue, subject, res.subjects[subject]?.queues[queue] ?? {}];
      const taker = oldest(waits.filter((w) => infos.get(w.point)?.holds?.includes(name) && takes(res, w, name, who)));
      chain.push({ queue, subject, len, cap, taker });
      [queue, subject] = next(res, taker);
    }
    return chain;
  }

  /** @param {string} queue */
  function ends(queue) {
    const here = points.filter((info) => info.queue === queue);
    const fills = here.filter(({ op }) => op === "send" || op === "push");
    const takers = new Set(here.filter((info) => !fills.includes(info)).flatMap(({ lane = "" }) => lane.split(" ")));
    return { station: fills[0]?.station, takers: [...takers].join(" ").trim() };
  }

  // chains describes the chains from the queues at a place, the longest queue first. t is the picture's time.
  /** @param {fold.Resource | undefined} res @param {number} t @param {Place} place @param {Titles} titles */
  function chains(res, t, { station, queue, subject }, titles) {
    if (!res) return [];
    const names = points.filter((i) => (queue ? i.queue === queue : i.station === station)).map((i) => i.queue);
    const found = Object.keys(res.subjects).filter((id) => !subject || id === subject).sort()
      .flatMap((id) => Object.entries(res.subjects[id].queues).map(([name, q]) => ({ name, id, q })))
      .filter(({ name }) => names.includes(name)).sort((a, b) => b.q.len - a.q.len);
    return found.slice(0, most).map(({ name, id }) => why(res, name, id).map((l) => linkOf(l, t, titles)));
  }

  /** @param {Link} link @param {number} t @param {Titles} titles */
  function linkOf({ queue, subject, len, cap, taker }, t, titles) {
    const { name, station, takers } = ways[queue] ?? { name: `${titles[queue]} of`, ...ends(queue) };
    const about = taker?.key ? ` (${objectKey(taker.key)})` : "";
    const waits = !taker ? `${orAny(takers)} takes from it`
      : `${orAny(takers)} has waited ${milliseconds(t - taker.t)} for ${waitsFor[taker.kind]}${about}`;
    return { name: `${name} ${subject}`, station, queue: ways[queue] ? "" : queue, subject, len, cap, waits };
  }

  return { why, chains };
}

/** @param {fold.Resource} res @param {fold.Wait | null} w @returns {[queue: string, subject: string]} */
function next(res, w) {
  if (w?.kind !== "client") return [w?.on ?? "", w?.subject ?? ""];
  // the chain continues in the watcher's client, if the client reports records, too
  const client = namesOf(res.subjects[w.subject]).find((id) => (res.subjects[id]?.counts.FrameDecoded ?? 0) > 0);
  return client ? ["wire", client] : ["", ""];
}

// takes reports whether a waiting goroutine receives from this queue, not from another one with the same name. Only the
// cacher's reflector receives from etcd3-result, and only for the youngest watch. From any other queue, the queue's
// owner receives, or a subject of another kind, as the only dispatcher does from incoming.
/** @param {fold.Resource} res @param {fold.Wait} w @param {string} queue @param {string} subject */
function takes(res, w, queue, subject) {
  if (queue === "etcd3-result") return res.subjects[subject] === youngest(res, "watchchan");
  return res.subjects[w.subject]?.kind !== res.subjects[subject]?.kind || w.subject === subject;
}
