// The wire of a page whose program has no port, or that has no program.
declare var listwatchWire: import("./api.js").Wire | undefined;
