// The state of a place, in the picture at the cursor.

import { objectKey, shelfName } from "../log/fold.js";

/**
 * @typedef {{ station: probe.Station, queue: string, subject: string }} Place
 * @typedef {{ [queue: string]: string }} Titles
 * @typedef {[name: string, value: string | number | undefined]} Row
 */

// rowsOf lists the fields of a part of the picture under their own names; a token, an object or a record is one row.
/** @param {object} part @param {string} [path] @returns {Row[]} */
const rowsOf = (part, path = "") => Object.entries(part).flatMap(([name, value]) => {
  if (typeof value !== "object") return value === undefined ? [] : [[path + name, value]];
  if (!("key" in value)) return rowsOf(value, `${path}${name} `);
  const { point, subject, type, key, rv } = value;
  return [[path + name, [point, subject, type, objectKey(key), rv].filter(Boolean).join(" ")]];
});

// meant returns a query for the records about a place and a resource; for a queue, the records that change it.
/**
 * @param {Iterable<[string, fold.Point]>} infos @param {string} resource @param {Place} place @returns {probe.Query}
 */
export function meant(infos, resource, { station, queue, subject }) {
  const points = [...infos].filter(([, info]) => info.queue === queue).map(([, info]) => info.name);
  return { resource: `|${resource}`, subject, ...(queue ? { points } : { station }) };
}

// stateOf returns the state of a place: groups {title, rows} of [name, value]. titles has the names of the queues;
// about reports whether a record is about the place.
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
