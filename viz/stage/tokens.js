// @ts-nocheck
// Tokens: what an event looks like. The shape is its type, the colour is what becomes of it. Each shape has a sign
// inside, so that no viewer has to tell them apart by colour.

const shapes = {
  ADDED: "added", MODIFIED: "modified", UPDATED: "modified", DELETED: "deleted", BOOKMARK: "bookmark", ERROR: "error",
};
// painted is what is drawn on a token's pill: the sign of its shape, and of one without a sign its outline.
const painted = {
  added: "M-4 0H4M0 -4V4", modified: "M-4 1.5C-2 -3 0 -2 0 0C0 2 2 3 4 -1.5", deleted: "M-4 0H4",
  error: "M0 -3.5V3M0 5V6", bookmark: "M0 -6.3L5.6 0L0 6.3L-5.6 0Z",
  synthetic: "M5.6 0A5.6 5.6 0 1 1 -5.6 0A5.6 5.6 0 1 1 5.6 0Z",
};

// shapeOf names the shape for an event's type, in either half's words. Sync, Replaced, and moments that say nothing of
// a type are synthetic.
export const shapeOf = (type) => shapes[(type ?? "").toUpperCase()] ?? "synthetic";

// signOf is a path around the origin.
export const signOf = (shape) => painted[shape];
