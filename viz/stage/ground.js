// The ground: where things are on the stage. Go lays out a wide stage and a tall one, for a narrow window (layout.go,
// tall.go). What moves has its coordinates on the wide stage; a layout says where a point is on the stage that is
// shown. Nothing here knows the document.

/**
 * @typedef {import("./path.js").Spot} Spot
 * @typedef {import("./path.js").Point} Point
 * @typedef {stage.Geometry} Geometry
 * @typedef {{ X: number, Y: number, W: number, H: number }} Box
 * @typedef {{ x: number, y: number, w: number, h: number }} View what of the stage is seen
 * @typedef {object} Layout
 * @property {boolean} tall
 * @property {number} width
 * @property {number} height
 * @property {{ wireX: number, right: number, end: number }} edges
 * @property {(at: Spot) => Spot} place
 * @property {(name: probe.Station) => Box} boxOf
 */

// layouts returns the three: wide, tall, and that of the first view.
/** @param {Geometry} g @returns {{ [name in "wide" | "tall" | "first"]: Layout }} */
export function layouts(g) {
  const { tall: t } = g;
  const aside = g.boxes.watcher.X - t.boxes.watcher.X;
  /** @type {Layout} */
  const wide = {
    tall: false, width: g.width, height: g.height, edges: { wireX: g.wireX, right: g.width, end: g.width + 50 },
    place: (at) => at,
    boxOf: (name) => g.boxes[name],
  };
  const right = t.width + aside;
  return {
    wide,
    tall: {
      tall: true, width: t.width, height: t.height, edges: { wireX: t.wireX + aside, right, end: right + 50 },
      place: (at) => onTall(g, at),
      boxOf: (name) => t.boxes[name],
    },
    first: { ...wide, place: (at) => straight(g, at) },
  };
}

// straight moves a point of the wide stage onto the way of the first view, on which the stations that have no name
// are not drawn: through watchChan it leads straight on, and by the store, too.
/** @param {Geometry} g @param {Spot} at @returns {Spot} */
function straight({ boxes, pipes, anchors, ring, serverAxis, clientAxis }, [x, y]) {
  if (y >= anchors.wire[1]) return [x, Math.min(y, clientAxis)];
  if (x > boxes.ring.X + boxes.ring.W - 6 && x < boxes.incoming.X - 2) return [x, Math.min(y, ring.y)];
  const [left, right] = [boxes.etcd3.X - 28, boxes.etcd3.X + boxes.etcd3.W + 16];
  if (x < left || x > right || y === serverAxis) return [x, y];
  const [, above] = anchors["etcd3-incoming"];
  const [, below] = anchors["etcd3-out"];
  const middle = (above + below) / 2;
  const along = y < middle - 25 ? 125 + x / 2 : y < middle + 27 ? 340 : 364 + (x - pipes["etcd3-result"].X) * 0.46;
  return [along, serverAxis + (y - above) / 4];
}

// onTall moves a point of the wide stage with the station that is nearest to it.
/** @param {Geometry} g @param {Spot} at @returns {Spot} */
function onTall(g, [x, y]) {
  const { tall: t, boxes, anchors: { wire: [, between] } } = g;
  const down = (/** @type {probe.Station} */ name) => t.boxes[name].Y - boxes[name].Y;
  const above = y < between;
  if (x >= g.width - 10) return [t.width + x - g.width, y + down("watcher")];
  if (x > boxes.wire.X - 2) {
    return [t.wireX, Math.abs(y - between) < 11 ? t.wireY : y + down(above ? "watcher" : "reflector")];
  }
  if (x < boxes.http.X - 12) return [x - g.loopX + t.loopX, y + down(above ? "http" : "workqueue")];
  if (above && x > boxes.ring.X - 4 && x < boxes.ring.X + 16) return t.door; // the way into the ring comes from above
  const off = (/** @type {probe.Station} */ name) => Math.max(boxes[name].X - x, x - boxes[name].X - boxes[name].W);
  const there = stationsOf(g).filter((name) => name !== "wire" && boxes[name].Y < between === above);
  const nearest = there.reduce((best, name) => (off(name) < off(best) ? name : best));
  return [x + t.boxes[nearest].X - boxes[nearest].X, y + down(nearest)];
}

/** @param {Geometry} g */
export const stationsOf = (g) => /** @type {probe.Station[]} */ (Object.keys(g.boxes));

// placed moves a point of a way (path.js), with what leads there.
/** @param {Layout} layout @param {Point} point @returns {Point} */
export function placed({ place }, point) {
  if (point.length === 6) {
    const [ax, ay, bx, by, x, y] = point;
    return [...place([ax, ay]), ...place([bx, by]), ...place([x, y])];
  }
  const at = place([point[0], point[1]]);
  return point.length === 3 ? [...at, "straight"] : at;
}

// ---- queues

/** @typedef {keyof Geometry["pipes"]} Pipe the queues that are drawn */

/** @type {Set<string>} */
export const leftward = new Set(["fifo", "pending", "workqueue", "add", "next"]); // the client half runs right to left

// cellOf is where the n-th token of a queue stands, n from 0 at the exit: a token for each slot, or as many as fit.
/**
 * @param {Box} pipe @param {number} n @param {number} slots @param {boolean} left @param {number} [step]
 * @returns {Spot}
 */
export function cellOf(pipe, n, slots, left, step = slots > 0 ? pipe.W / slots : 15) {
  const along = (Math.min(n, slots > 0 ? slots - 1 : Math.floor(pipe.W / step) - 1) + 0.5) * step;
  return [left ? pipe.X + along : pipe.X + pipe.W - along, pipe.Y + pipe.H / 2];
}

// ---- the ring

/** @typedef {{ capacity: number }} Places of a ring */

export const few = 32; // of so few cells each has its version in it
const wide = 44; // the inner radius of such a ring

// turnOf is where a position lies, from 0 at slot 0 to 1 behind the last slot.
/** @param {Places} ring @param {number} pos */
export function turnOf(ring, pos) {
  return ring.capacity > 0 ? (((pos % ring.capacity) + ring.capacity) % ring.capacity) / ring.capacity : 0;
}

// atTurn is a point at a turn of the ring, so far from its middle.
/** @param {Geometry["ring"]} ring @param {number} r @param {number} turn @returns {Spot} */
export function atTurn({ x, y }, r, turn) {
  const angle = 2 * Math.PI * turn - Math.PI / 2;
  return [x + r * Math.cos(angle), y + r * Math.sin(angle)];
}

/** @param {Geometry["ring"]} g @param {Places} ring */
export const innerOf = (g, ring) => (ring.capacity > 0 && ring.capacity <= few ? wide : g.in);

// seat is a point of the ring: turn along it, depth 0 at its inner edge, 1 at its outer one.
/** @param {Geometry["ring"]} g @param {Places} ring @param {number} turn @param {number} depth */
export function seat(g, ring, turn, depth) {
  const from = innerOf(g, ring);
  return atTurn(g, from + (g.out - from) * depth, turn);
}

// ringSpot is where a position of the ring is drawn.
/** @param {Geometry["ring"]} g @param {Places} ring @param {number} pos */
export function ringSpot(g, ring, pos) {
  const depth = ring.capacity <= few ? 1.3 : 0.5; // beside a cell that has its version in it
  return seat(g, ring, turnOf(ring, pos) + 0.5 / Math.max(1, ring.capacity), depth);
}
