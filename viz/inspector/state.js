// How a place stands: what the picture at the cursor holds of it. Nothing here knows the document.

import { objectKey, shelfName } from "../log/fold.js";

/**
 * @typedef {{ station: probe.Station, queue: string, subject: string }} Place
 * @typedef {{ [queue: string]: string }} Titles
 * @typedef {[name: string, value: string | number | undefined]} Row
 */

/** @param {{ [name: string]: string | number | undefined }} values @param {string} [suffix] @returns {Row[]} */
const named = (values, suffix = "") => Object.keys(values).sort().map((name) => [name + suffix, values[name]]);

// flat are the texts of points by point and name.
/** @param {fold.Subject["texts"]} texts @returns {{ [name: string]: string }} */
const flat = (texts) => Object.fromEntries(Object.entries(texts).flatMap(([point, said]) => (
  Object.entries(said).map(([name, text]) => [`${point} ${name}`, text])
)));

// stateOf returns what is known of a place {station, queue, subject}: groups {title, rows} of [name, value]. titles has
// the names of the queues, and about(point) says whether one is reported there.
/**
 * @param {fold.Resource | undefined} res @param {Place} place @param {Titles} titles
 * @param {(point: string) => boolean} about
 */
export function stateOf(res, { station, queue, subject }, titles, about) {
  /** @type {{ title: string, rows: Row[] }[]} */
  const groups = [];
  /** @param {string} title @param {Row[]} rows */
  const add = (title, ...rows) => groups.push({ title, rows });
  if (!res) return groups;
  const whole = res.stations[station];
  if (whole && !queue && !subject) {
    const { point, subject: who, type, key } = whole.last;
    /** @type {Row[]} */
    const last = [["last", point], ["last about", [who, type, objectKey(key)].filter(Boolean).join(" ") || "–"]];
    add("station", ...named(whole.vars), ["records", whole.count], ...(point ? last : []));
  }
  if (station === "ring") {
    const { start, end, capacity, oldest, newest } = res.ring;
    /** @param {number} position */
    const slot = (position) => (capacity ? `${position}, in slot ${position % capacity}` : position);
    add("ring", ["capacity", capacity], ["startIndex", slot(start)], ["endIndex", slot(end)], ["holds", end - start],
      ["a watch may start from", oldest], ["the cache is at", newest]);
  }
  for (const [name, { n, rows }] of Object.entries(res.shelves)) { // several informers have one each
    if (!name.startsWith(shelfName(station))) continue;
    add(`${name}: objects, the newest change last`, ["in all", n],
      ...rows.map(({ key, rv, type }) => /** @type {Row} */ ([objectKey(key), `${rv} ${type}`])));
  }
  /** @param {[string, fold.Subject]} entry */
  const here = ([id, s]) => (!subject || id === subject) &&
    (queue ? s.queues[queue] : about(s.last.point) || s.kind === station);
  for (const [id, s] of Object.entries(res.subjects).filter(here).sort(([, a], [, b]) => a.opened - b.opened)) {
    for (const name of Object.keys(s.queues).sort()) {
      const { len, cap, high, sent, received, tokens } = s.queues[name];
      if (queue && name !== queue) continue;
      add(`${titles[name]} of ${id}`, ["len", len], ["cap", cap || "0: a hand-over, or without limit"], ["most", high],
        ["sent", sent], ["received", received],
        ...tokens.map(({ type, key, rv }, i) => /** @type {Row} */ ([`[${i}]`, `${type} ${objectKey(key)} ${rv}`])));
    }
    /** @type {Row[]} */
    const rv = s.rv === "0" ? [] : [["rv", s.rv]];
    if (queue) continue;
    add(`${s.kind} ${id}`.trim(), ...named(s.vars), ...named(flat(s.texts)), ...named(s.counts, " ×"), ...rv);
  }
  return groups;
}
