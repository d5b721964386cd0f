// The level of detail: how much of the traffic is drawn, by how much of it there is. What is counted is exact at every
// level, and what must not be overlooked is drawn singly at every level.

import { limits } from "../lib/limits.js";

export const levels = [
  { name: "L0", words: "every event", most: 20 },
  { name: "L1", words: "tokens", most: 200 },
  { name: "L2", words: "sampled", most: limits.flowEvents },
  { name: "L3", words: "flow", most: Infinity },
];
const drawn = 40; // events a second that are drawn of a sample
const calm = 0.7; // a level is left downwards when the rate is so much below its threshold
const patience = 2000; // ms for which it has to be

// newLevel returns {at(rate, now), force(n), level, every, forced}: the level for a rate, and of how many events one is
// drawn. force(null) leaves the choice to the rate again.
export function newLevel() {
  const l = { level: 0, every: 1, forced: null, at, force };
  let below = 0; // since when the rate would do with less

  function at(rate, now) {
    const wanted = levels.findIndex((each) => rate <= each.most);
    const easily = levels.findIndex((each) => rate <= each.most * calm);
    if (l.forced !== null) l.level = l.forced;
    else if (wanted > l.level) l.level = wanted;
    else if (easily >= l.level) below = 0;
    else if (below === 0) below = now;
    else if (now - below > patience) [l.level, below] = [easily, 0];
    l.every = l.level < 2 ? 1 : powerOfTwo(Math.max(l.level === 2 ? 2 : 1, rate / drawn));
    return l;
  }

  function force(n) {
    l.forced = n;
    below = 0;
    l.level = n ?? 0;
  }

  return l;
}

// powerOfTwo rounds up: what is drawn then does not change with every breath of the rate.
function powerOfTwo(n) {
  return 2 ** Math.ceil(Math.log2(n));
}
