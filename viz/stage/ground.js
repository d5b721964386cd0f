// The ground: places on the stage. Tokens have coordinates of the wide stage, which a layout maps to its own.

/**
 * @typedef {[x: number, y: number]} Spot
 * @typedef {Spot | [x: number, y: number, how: "straight"]} Point of a way
 * @typedef {{ from: Spot, to: Spot, bends: [Spot, Spot] | null, length: number }} Leg
 * @typedef {stage.Geometry} Geometry
 * @typedef {{ X: number, Y: number, W: number, H: number }} Box
 * @typedef {{ x: number, y: number, w: number, h: number }} View the visible part of the stage
 * @typedef {probe.Station | "server-reflector"} Place the name of a box
 * @typedef {object} Layout
 * @property {boolean} tall
 * @property {number} width
 * @property {number} height
 * @property {(at: Spot) => Spot} place
 * @property {{ [name in Place]: Box }} boxes
 */

/** @param {Geometry} g @returns {{ [name in "wide" | "tall"]: Layout }} */
export function layouts(g) {
  const { tall: t } = g;
  const names = /** @type {(keyof Geometry["tall"]["turns"])[]} */ (Object.keys(t.turns));
  const turns = new Map(names.map((name) => [String(g.turns[name]), t.turns[name]]));
  return {
    wide: { tall: false, width: g.width, height: g.height, place: (at) => at, boxes: g.boxes },
    tall: {
      tall: true, width: t.width, height: t.height,
      place: (at) => turns.get(String(at)) ?? onTall(g, at), boxes: t.boxes,
    },
  };
}

// onTall moves a point of the wide stage along with the station nearest to it.
/** @param {Geometry} g @param {Spot} at @returns {Spot} */
function onTall({ boxes, tall: t }, at) {
  const name = nearest(boxes, at);
  return [at[0] + t.boxes[name].X - boxes[name].X, at[1] + t.boxes[name].Y - boxes[name].Y];
}

/** @param {Layout["boxes"]} boxes @param {Spot} at */
export function nearest(boxes, [x, y]) {
  const off = (/** @type {Place} */ name) => {
    const { X, Y, W, H } = boxes[name];
    return Math.hypot(Math.max(X - x, 0, x - X - W), Math.max(Y - y, 0, y - Y - H));
  };
  const all = /** @type {Place[]} */ (Object.keys(boxes));
  return all.reduce((a, b) => (off(b) < off(a) ? b : a));
}

/** @param {Layout} layout @param {Point} point @returns {Point} */
export const placed = ({ place }, [x, y, how]) => (how ? [...place([x, y]), how] : place([x, y]));

// ---- queues

/** @typedef {keyof Geometry["pipes"]} Pipe the name of a queue on the stage */

/** @type {Set<string>} */
export const leftward = new Set(["fifo", "pending", "workqueue", "add", "next"]); // the client half runs right to left

const chip = 15; // the width of an entry, in units, while the pipe has room
const thinnest = 3;

// drawnOf returns how many entries of a queue without slots are drawn. stepOf returns the width of an entry in units: a
// slot's or, without slots, chip, or less if the entries would not fit.
/** @param {{ W: number }} pipe @param {number} len */
export const drawnOf = ({ W }, len) => Math.min(len, Math.floor(W / thinnest));
/** @param {{ W: number }} pipe @param {number} len @param {number} slots */
export const stepOf = (pipe, len, slots) => (
  slots > 0 ? pipe.W / slots : Math.min(chip, pipe.W / drawnOf(pipe, len)));

// cellOf returns the spot of the n-th token of a queue, counted from 0 at the exit.
/** @param {Box} pipe @param {number} n @param {boolean} left @param {number} step @returns {Spot} */
export function cellOf(pipe, n, left, step) {
  const along = Math.min(pipe.W - step / 2, (n + 0.5) * step);
  return [left ? pipe.X + along : pipe.X + pipe.W - along, pipe.Y + pipe.H / 2];
}

// ---- the ring

/** @typedef {{ capacity: number }} Places the part of a ring that decides where its cells are */

export const few = 32; // in a ring of at most this many cells, each cell shows its version
const wide = 44; // the inner radius of a ring with few cells

// turnOf returns a position's place on the circle as a fraction of a turn, in [0, 1); slot 0 is at 0.
/** @param {Places} ring @param {number} pos */
export function turnOf(ring, pos) {
  return ring.capacity > 0 ? (((pos % ring.capacity) + ring.capacity) % ring.capacity) / ring.capacity : 0;
}

// atTurn returns the point at a turn of the ring, r units from its centre.
/** @param {Geometry["ring"]} ring @param {number} r @param {number} turn @returns {Spot} */
export function atTurn({ x, y }, r, turn) {
  const angle = 2 * Math.PI * turn - Math.PI / 2;
  return [x + r * Math.cos(angle), y + r * Math.sin(angle)];
}

/** @param {Geometry["ring"]} g @param {Places} ring */
export const innerOf = (g, ring) => (ring.capacity > 0 && ring.capacity <= few ? wide : g.in);

// seat returns a point of the ring: depth 0 is its inner edge, depth 1 its outer edge.
/** @param {Geometry["ring"]} g @param {Places} ring @param {number} turn @param {number} depth */
export function seat(g, ring, turn, depth) {
  const from = innerOf(g, ring);
  return atTurn(g, from + (g.out - from) * depth, turn);
}

/** @param {Geometry["ring"]} g @param {Places} ring @param {number} pos */
export function ringSpot(g, ring, pos) {
  const depth = ring.capacity <= few ? 1.3 : 0.5; // beside the cell if the cell shows its version
  return seat(g, ring, turnOf(ring, pos) + 0.5 / Math.max(1, ring.capacity), depth);
}

// ---- the ways of tokens, as lists of points. A leg is straight if it is marked, level or upright, or else a curve.

const level = 0.5; // units; a leg with a smaller width or height is straight, and one of less length is left out

/** @param {Point} point @returns {Spot} */
export const endOf = ([x, y]) => [x, y];

/** @param {Point[]} points */
export function legsOf(points) {
  /** @type {Leg[]} */
  const legs = [];
  for (let i = 1; i < points.length; i++) {
    const point = points[i];
    const [from, to] = [endOf(points[i - 1]), endOf(point)];
    const length = Math.hypot(to[0] - from[0], to[1] - from[1]);
    if (length < level) continue;
    const flat = point.length === 3 || Math.abs(to[1] - from[1]) < level || Math.abs(to[0] - from[0]) < level;
    const middle = (from[0] + to[0]) / 2;
    legs.push({ from, to, bends: flat ? null : [[middle, from[1]], [middle, to[1]]], length });
  }
  return legs;
}

/** @param {Leg[]} legs */
export const lengthOf = (legs) => legs.reduce((sum, leg) => sum + leg.length, 0);

// along returns the spot at a distance along the legs.
/** @param {Leg[]} legs @param {number} at @returns {Spot} */
export function along(legs, at) {
  let left = at;
  for (const leg of legs) {
    if (left > leg.length && leg !== legs.at(-1)) {
      left -= leg.length;
      continue;
    }
    const t = Math.min(1, Math.max(0, left / leg.length));
    const u = 1 - t;
    const { from: a, to: d, bends } = leg;
    if (!bends) return [a[0] * u + d[0] * t, a[1] * u + d[1] * t];
    const [b, c] = bends;
    const on = (/** @type {0 | 1} */ i) =>
      u * u * u * a[i] + 3 * u * u * t * b[i] + 3 * u * t * t * c[i] + t * t * t * d[i];
    return [on(0), on(1)];
  }
  return [0, 0];
}
