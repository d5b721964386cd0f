// Queries: which records are meant, as internal/observe/probe/query.go says it. Nothing here knows the document.

import { objectKey } from "./fold.js";

/**
 * What is left out means every record. Resource, subject, type and fields are patterns, see like.
 * @typedef {object} Query
 * @property {string[]} [points] any of them
 * @property {string} [resource]
 * @property {string} [subject]
 * @property {string} [type]
 * @property {string} [key] in either half's form
 * @property {string} [rv]
 * @property {Record<string, string>} [fields] texts by name
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
 * @param {Record<string, string>} fields
 * @param {Record<string, string>} [texts]
 */
export const says = (fields, texts = {}) => Object.entries(fields).every(([name, is]) => like(is, texts[name] ?? ""));

/**
 * matches reports whether a record is meant, or what stands in a queue, on a shelf or in the ring.
 * @param {Query} q
 * @param {{point?: string, resource?: string, subject?: string, type?: string, key?: string, rv?: string,
 *   texts?: Record<string, string>}} r
 */
export function matches(q, r) {
  if (q.points && !q.points.includes(r.point ?? "")) return false;
  if ((q.rv && q.rv !== r.rv) || (q.key && objectKey(q.key) !== objectKey(r.key ?? ""))) return false;
  if ((q.resource && !like(q.resource, r.resource ?? "")) || (q.type && !like(q.type, r.type ?? ""))) return false;
  return (!q.subject || like(q.subject, r.subject ?? "")) && says(q.fields ?? {}, r.texts);
}
