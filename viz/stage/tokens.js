// Tokens: the look and the name of an event. The shape shows its type, the colour its fate. Most shapes have a
// sign inside, the others an outline of their own, so that no viewer depends on colour.

import { squeeze } from "../lib/texts.js";
import { objectKey } from "../log/fold.js";

/** @type {{ [type: string]: string }} */
const shapes = {
  ADDED: "added", MODIFIED: "modified", UPDATED: "modified", DELETED: "deleted", BOOKMARK: "bookmark", ERROR: "error",
};
// painted maps a shape to the path drawn on a token's pill: the shape's sign, or its outline if it has no sign.
/** @type {{ [shape: string]: string }} */
const painted = {
  added: "M-4 0H4M0 -4V4", modified: "M-4 1.5C-2 -3 0 -2 0 0C0 2 2 3 4 -1.5", deleted: "M-4 0H4",
  error: "M0 -3.5V3M0 5V6", bookmark: "M0 -6.3L5.6 0L0 6.3L-5.6 0Z",
  synthetic: "M5.6 0A5.6 5.6 0 1 1 -5.6 0A5.6 5.6 0 1 1 5.6 0Z",
};

// shapeOf returns the shape for an event's type in either half; Sync, Replaced and records without one are synthetic.
/** @param {string | undefined} type */
export const shapeOf = (type) => shapes[(type ?? "").toUpperCase()] ?? "synthetic";

// signOf returns the path for a shape, around the origin.
/** @param {string} shape */
export const signOf = (shape) => painted[shape];

const story = { prefix: "" }; // the common prefix of the names of the story's pods

// callOwn sets the prefix that shortKey removes from the names of a story's pods; "" outside stories.
/** @param {string} prefix */
export const callOwn = (prefix) => (story.prefix = prefix);

// shortKey returns a key without the default namespace and without the story's prefix.
/** @param {string} key */
export function shortKey(key) {
  const name = objectKey(key).replace(/^default\//, "");
  return story.prefix && name.startsWith(story.prefix) ? name.slice(story.prefix.length) : name;
}

// byTurn splits a story's name for a version into the pod's name and its turn.
/** @param {string} name @returns {[name: string, turn: string]} */
export const byTurn = (name) => [name.replace(/\d+$/, ""), /\d*$/.exec(name)?.[0] ?? ""];

// brief shortens a name to n letters. Of a longer name with dots, such as a node's, it uses only the first part.
/** @param {string} name @param {number} n */
export const brief = (name, n) => squeeze(name.length > n ? name.split(".")[0] : name, n);
