// A page whose program is not behind a port, or that has none, brings its own wire.
declare var listwatchWire: import("./api.js").Wire | undefined;
