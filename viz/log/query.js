// Queries: selecting records, as in internal/observe/probe/query.go.

import { objectKey } from "./fold.js";

/**
 * @typedef {object} Meant a record, or an entry of a queue, a shelf or the ring
 * @property {string} [point]
 * @property {string} [resource]
 * @property {string} [subject]
 * @property {string} [type]
 * @property {string} [key]
 * @property {string} [rv]
 * @property {number[]} [args]
 * @property {probe.Record["texts"]} [texts]
 * @typedef {{ station: string, args: string[] }} Info the declaration of a record's point
 */

/**
 * like reports whether a text matches one of the alternatives of a pattern, in which * matches any text; a lone *
 * matches any text but the empty one.
 * @param {string} pattern
 * @param {string} text
 */
export const like = (pattern, text) => pattern === text || pattern.split("|").some((each) => likeOne(each, text));

/** @param {string} pattern @param {string} text */
function likeOne(pattern, text) {
  if (pattern === "*") return text !== "";
  if (!pattern.includes("*")) return pattern === text;
  return new RegExp(`^${pattern.split("*").map((part) => part.replace(/\W/g, "\\$&")).join("[^]*")}$`).test(text);
}

/**
 * says reports whether texts match the patterns of a query's fields.
 * @param {{ [name: string]: string }} fields
 * @param {{ [name: string]: string | undefined }} [texts]
 */
export const says = (fields, texts = {}) => Object.entries(fields).every(([name, is]) => like(is, texts[name] ?? ""));

/**
 * matches reports whether a query selects a record. Without info, it cannot match stations or numbers.
 * @param {probe.Query} q
 * @param {Meant} r
 * @param {Info} [info]
 */
export function matches(q, r, info) {
  const { point, resource = "", subject = "", type = "", key = "", rv, args = [], texts } = r;
  if (q.points?.length && !q.points.some((each) => each === point)) return false;
  if (q.station && q.station !== info?.station) return false;
  if ((q.rv && q.rv !== rv) || (q.key && objectKey(q.key) !== objectKey(key))) return false;
  if ((q.resource && !like(q.resource, resource)) || (q.type && !like(q.type, type))) return false;
  if (q.subject && !like(q.subject, subject)) return false;
  if (!q.fields) return true;
  const numbers = Object.fromEntries((info?.args ?? []).map((name, i) => [name, String(args[i] ?? 0)]));
  return says(q.fields, { ...texts, ...numbers });
}

/**
 * parametersOf returns a query as parameters of an address.
 * @param {probe.Query} q
 */
export const parametersOf = ({ points = [], fields, ...rest }) => ({ ...fields, ...rest, point: points.join() });
