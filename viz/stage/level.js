// The level of detail: how much of the traffic is drawn, by how much of it there is. What is counted is exact at every
// level, and what must not be overlooked is drawn singly at every level.

import { limits } from "../lib/limits.js";

export const levels = [
  { words: "each change travels", most: 20 },
  { words: "each leaves a trail", most: 200 },
  { words: "sampled", most: limits.flowEvents },
  { words: "as a stream", most: Infinity },
];
const drawn = 40; // events a second that are drawn of a sample
const calm = 0.7; // a level is left downwards when the rate is so much below its threshold
const patience = 2000; // ms for which it has to be

// newLevel returns {at(rate, now), level, every}: the level for a rate, and of how many events one is drawn.
export function newLevel() {
  const l = { level: 0, every: 1, at };
  let below = 0; // since when the rate would do with less

  function at(rate, now) {
    const wanted = levels.findIndex((each) => rate <= each.most);
    const easily = levels.findIndex((each) => rate <= each.most * calm);
    if (wanted > l.level) l.level = wanted;
    else if (easily >= l.level) below = 0;
    else if (below === 0) below = now;
    else if (now - below > patience) [l.level, below] = [easily, 0];
    l.every = l.level < 2 ? 1 : powerOfTwo(Math.max(l.level === 2 ? 2 : 1, rate / drawn));
    return l;
  }

  return l;
}

// powerOfTwo rounds up: what is drawn then does not change with every breath of the rate.
function powerOfTwo(n) {
  return 2 ** Math.ceil(Math.log2(n));
}
