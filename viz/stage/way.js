// @ts-nocheck
// Ways: what tokens move on. A way is a list of points; a leg between two that are neither beside nor above each other
// leaves and arrives level, as the rails do, unless its end brings control points of its own.

const level = 0.5; // units: a leg that rises less is straight

// endOf is where a point of a way is, without what leads there.
export const endOf = (point) => point.filter(Number.isFinite).slice(-2);

// legsOf returns the legs between points: [x, y], [x, y, "straight"], or [ax, ay, bx, by, x, y] with a curve's control
// points.
export function legsOf(points) {
  const legs = [];
  for (let i = 1; i < points.length; i++) {
    const from = endOf(points[i - 1]);
    const to = endOf(points[i]);
    const chord = Math.hypot(to[0] - from[0], to[1] - from[1]);
    if (chord < level) continue;
    const own = points[i].length === 6 ? [points[i].slice(0, 2), points[i].slice(2, 4)] : null;
    const flat = points[i].length === 3 || Math.abs(to[1] - from[1]) < level || Math.abs(to[0] - from[0]) < level;
    const m = (from[0] + to[0]) / 2;
    legs.push({ from, to, bends: own ?? (flat ? null : [[m, from[1]], [m, to[1]]]), length: own ? chord + 60 : chord });
  }
  return legs;
}

export const lengthOf = (legs) => legs.reduce((sum, leg) => sum + leg.length, 0);

// along returns the place so many units along the legs.
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
    return [0, 1].map((i) => u * u * u * a[i] + 3 * u * u * t * b[i] + 3 * u * t * t * c[i] + t * t * t * d[i]);
  }
  return [0, 0];
}
