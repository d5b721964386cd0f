// Tokens: the look and the name of an event. The shape shows the event's type, the colour its state. Most shapes have a
// sign inside, and the others have their own outline, so that no viewer depends on colour.

import { squeeze } from "../lib/texts.js";
import { objectKey } from "../log/fold.js";

/** @type {{ [type: string]: string }} */
const shapes = {
  ADDED: "added", MODIFIED: "modified", UPDATED: "modified", DELETED: "deleted", BOOKMARK: "bookmark", ERROR: "error",
};

// shapeOf returns the shape for an event's type in either half; Sync, Replaced and untyped records are synthetic.
/** @param {string | undefined} type */
export const shapeOf = (type) => shapes[(type ?? "").toUpperCase()] ?? "synthetic";

const story = { prefix: "" }; // the common prefix of the names of the story's pods

// callOwn sets the prefix that shortKey removes from the names of a story's pods; "" outside stories.
/** @param {string} prefix */
export const callOwn = (prefix) => (story.prefix = prefix);

// shortKey returns a key's namespace, if not default, and its name, without the story's prefix.
/** @param {string} key */
export function shortKey(key) {
  const name = objectKey(key).replace(/^default\//, "");
  return story.prefix && name.startsWith(story.prefix) ? name.slice(story.prefix.length) : name;
}

// byTurn splits a story's name for a version into the pod's name and the version's number, or "".
/** @param {string} name @returns {[name: string, turn: string]} */
export const byTurn = (name) => [name.replace(/\d+$/, ""), /\d*$/.exec(name)?.[0] ?? ""];

// brief shortens a name to n letters. Of a longer name with dots, such as a node's, it uses only the first part.
/** @param {string} name @param {number} n */
export const brief = (name, n) => squeeze(name.length > n ? name.split(".")[0] : name, n);
