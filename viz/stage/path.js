// Ways: the paths of tokens. A way is a list of points. A leg that is neither level nor upright leaves and arrives
// level, as the rails do.

/**
 * @typedef {[x: number, y: number]} Spot
 * @typedef {Spot | [x: number, y: number, how: "straight"]} Point of a way
 * @typedef {{ from: Spot, to: Spot, bends: [Spot, Spot] | null, length: number }} Leg
 */

const level = 0.5; // units: a leg that rises less is straight

/** @param {Point} point @returns {Spot} */
export const endOf = ([x, y]) => [x, y];

// legsOf returns the legs between points.
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

// along returns the spot that is at units along the legs.
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
