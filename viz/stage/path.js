// Ways: what tokens move on. A way is a list of points; a leg between two that are neither beside nor above each other
// leaves and arrives level, as the rails do, unless its end brings control points of its own.

/**
 * @typedef {[x: number, y: number]} Spot
 * @typedef {[ax: number, ay: number, bx: number, by: number, x: number, y: number]} Curve a spot with control points
 * @typedef {Spot | [x: number, y: number, how: "straight"] | Curve} Point of a way
 * @typedef {{ from: Spot, to: Spot, bends: [Spot, Spot] | null, length: number }} Leg
 */

const level = 0.5; // units: a leg that rises less is straight

// endOf is where a point of a way is, without what leads there.
/** @param {Point} point @returns {Spot} */
export const endOf = (point) => (point.length === 6 ? [point[4], point[5]] : [point[0], point[1]]);

// legsOf returns the legs between points.
/** @param {Point[]} points */
export function legsOf(points) {
  /** @type {Leg[]} */
  const legs = [];
  for (let i = 1; i < points.length; i++) {
    const point = points[i];
    const [from, to] = [endOf(points[i - 1]), endOf(point)];
    const chord = Math.hypot(to[0] - from[0], to[1] - from[1]);
    if (chord < level) continue;
    const own = point.length === 6;
    const flat = point.length === 3 || Math.abs(to[1] - from[1]) < level || Math.abs(to[0] - from[0]) < level;
    const bends = own ? bendsOf(point) : flat ? null : levelBends(from, to);
    legs.push({ from, to, bends, length: own ? chord + 60 : chord });
  }
  return legs;
}

/** @param {Curve} point @returns {[Spot, Spot]} */
const bendsOf = ([ax, ay, bx, by]) => [[ax, ay], [bx, by]];

/** @param {Spot} from @param {Spot} to @returns {[Spot, Spot]} */
const levelBends = (from, to) => [[(from[0] + to[0]) / 2, from[1]], [(from[0] + to[0]) / 2, to[1]]];

/** @param {Leg[]} legs */
export const lengthOf = (legs) => legs.reduce((sum, leg) => sum + leg.length, 0);

// along returns the place so many units along the legs.
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
