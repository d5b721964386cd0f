// Tokens: what an event looks like, and what it is called. The shape is its type, the colour is what becomes of it.
// Each shape has a sign inside, so that no viewer has to tell them apart by colour.

import { cut } from "../lib/texts.js";
import { objectKey } from "../log/fold.js";

/** @type {{ [type: string]: string }} */
const shapes = {
  ADDED: "added", MODIFIED: "modified", UPDATED: "modified", DELETED: "deleted", BOOKMARK: "bookmark", ERROR: "error",
};
// painted is what is drawn on a token's pill: the sign of its shape, and of one without a sign its outline.
/** @type {{ [shape: string]: string }} */
const painted = {
  added: "M-4 0H4M0 -4V4", modified: "M-4 1.5C-2 -3 0 -2 0 0C0 2 2 3 4 -1.5", deleted: "M-4 0H4",
  error: "M0 -3.5V3M0 5V6", bookmark: "M0 -6.3L5.6 0L0 6.3L-5.6 0Z",
  synthetic: "M5.6 0A5.6 5.6 0 1 1 -5.6 0A5.6 5.6 0 1 1 5.6 0Z",
};

// shapeOf names the shape for an event's type, in either half's words. Sync, Replaced, and moments that say nothing of
// a type are synthetic.
/** @param {string | undefined} type */
export const shapeOf = (type) => shapes[(type ?? "").toUpperCase()] ?? "synthetic";

// signOf is a path around the origin.
/** @param {string} shape */
export const signOf = (shape) => painted[shape];

const story = { prefix: "" }; // how the names of its pods begin

// callOwn leaves out the beginning that the names of a story's pods have in common; "": no story is told.
/** @param {string} prefix */
export const callOwn = (prefix) => (story.prefix = prefix);

// shortKey leaves out what goes without saying: the namespace, and the story.
/** @param {string} key */
export function shortKey(key) {
  const name = objectKey(key).replace(/^default\//, "");
  return story.prefix && name.startsWith(story.prefix) ? name.slice(story.prefix.length) : name;
}

// brief is a name of at most n letters. Of a longer one with dots the first part says enough, as of a node.
/** @param {string} name @param {number} n */
export const brief = (name, n) => cut(name.length > n ? name.split(".")[0] : name, n);
