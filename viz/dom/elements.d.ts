// What the page keeps with its elements, and what a page without a port, or without a program, brings along.

interface Element extends HTMLOrSVGElement { // every element here is HTML or SVG
  lane?: import("../stage/places.js").Lane;
  pipes?: HTMLElement[]; // of a lane
  drawn?: boolean; // of a pipe
  tokens?: import("../stage/pipe.js").Held[]; // of a pipe, as they are drawn
  object?: fold.Token | null; // of a row, or of a token
  held?: probe.Waiting; // of a row of the world's panel
}

declare var listwatchWire: import("../lib/api.js").Wire | undefined;
