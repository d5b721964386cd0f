// Tokens: what an event looks like. The shape is its type, the colour is what becomes of it. Each shape has a sign
// inside, so that no viewer has to tell them apart by colour.

const shapes = {
  ADDED: "added", MODIFIED: "modified", UPDATED: "modified", DELETED: "deleted", BOOKMARK: "bookmark", ERROR: "error",
};
const disc = "M8 0A8 8 0 1 1 -8 0A8 8 0 1 1 8 0Z";
const square = "M-4.5 -7.5H4.5Q7.5 -7.5 7.5 -4.5V4.5Q7.5 7.5 4.5 7.5H-4.5Q-7.5 7.5 -7.5 4.5V-4.5Q-7.5 -7.5 -4.5 -7.5Z";
const paths = {
  modified: square, bookmark: "M0 -9L8 0L0 9L-8 0Z", error: "M0 -9L9 8H-9Z",
  deleted: "M-3.5 -8H3.5L8 -3.5V3.5L3.5 8H-3.5L-8 3.5V-3.5Z",
};
const signs = {
  added: "M-4 0H4M0 -4V4", modified: "M-4 1.5C-2 -3 0 -2 0 0C0 2 2 3 4 -1.5", deleted: "M-4 0H4",
  error: "M0 -3.5V3M0 5V6",
};

// shapeOf names the shape for an event's type, in either half's words. Sync, Replaced, and moments that say nothing of
// a type are synthetic.
export const shapeOf = (type) => shapes[(type ?? "").toUpperCase()] ?? "synthetic";

// pathOf is the outline of a shape, about 16 units around the origin, and signOf the sign in it.
export const pathOf = (shape) => paths[shape] ?? disc;
export const signOf = (shape) => signs[shape] ?? "";
