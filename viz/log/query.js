// Queries: which records are meant, as internal/observe/probe/query.go says it. Nothing here knows the document.

import { objectKey } from "./fold.js";

/**
 * @typedef {object} Meant a record, or what stands in a queue, on a shelf or in the ring
 * @property {number} [seq]
 * @property {string} [point]
 * @property {string} [resource]
 * @property {string} [subject]
 * @property {string} [type]
 * @property {string} [key]
 * @property {string} [rv]
 * @property {number[]} [args]
 * @property {probe.Record["texts"]} [texts]
 * @typedef {{ station: string, args: string[] }} Info what is declared of a record's point
 */

/**
 * like reports whether a text is one of the alternatives of a pattern, in which * stands for any text; alone for any
 * but none.
 * @param {string} pattern
 * @param {string} text
 */
export const like = (pattern, text) => pattern === text || pattern.split("|").some((each) => likeOne(each, text));

/** @param {string} pattern @param {string} text */
function likeOne(pattern, text) {
  if (pattern === "*") return text !== "";
  const parts = pattern.split("*");
  const last = parts.pop() ?? "";
  if (parts.length === 0) return pattern === text;
  let at = 0;
  for (const [i, part] of parts.entries()) {
    const found = text.indexOf(part, at);
    if (found < 0 || (i === 0 && found > 0)) return false;
    at = found + part.length;
  }
  return text.length >= at + last.length && text.endsWith(last);
}

/**
 * says reports whether texts are as a query's fields want them.
 * @param {{ [name: string]: string }} fields
 * @param {{ [name: string]: string | undefined }} [texts]
 */
export const says = (fields, texts = {}) => Object.entries(fields).every(([name, is]) => like(is, texts[name] ?? ""));

/**
 * matches reports whether a record is meant. Only with info, what is declared of its point, it knows its station, and
 * its numbers by name.
 * @param {probe.Query} q
 * @param {Meant} r
 * @param {Info} [info]
 */
export function matches(q, r, info) {
  const { seq = 0, point, resource = "", subject = "", type = "", key = "", rv, args = [], texts } = r;
  if (q.points?.length && !q.points.some((each) => each === point)) return false;
  if ((q.from && seq < q.from) || (q.to && seq >= q.to) || (q.station && q.station !== info?.station)) return false;
  if ((q.rv && q.rv !== rv) || (q.key && objectKey(q.key) !== objectKey(key))) return false;
  if ((q.resource && !like(q.resource, resource)) || (q.type && !like(q.type, type))) return false;
  if (q.subject && !like(q.subject, subject)) return false;
  if (!q.fields) return true;
  const numbers = Object.fromEntries((info?.args ?? []).map((name, i) => [name, String(args[i] ?? 0)]));
  return says(q.fields, { ...texts, ...numbers });
}

/**
 * parametersOf is a query as parts of an address.
 * @param {probe.Query} q
 */
export const parametersOf = ({ points = [], fields, ...rest }) => ({ ...fields, ...rest, point: points.join() });
