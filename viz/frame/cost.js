// The cost: what the page's frames take, for those who want to know whether it keeps up.

const kept = 600; // frames
const late = 17; // ms from one frame to the next, and more: one was missed on a screen of sixty a second

// newCost returns {note(gap, script), read()}: gap is the time since the frame before, script what was computed since,
// in ms. read tells of the last frames the middle, the 95th percentile and the longest, and how many of all frames came
// late.
export function newCost() {
  /** @type {number[]} */
  const gaps = [];
  /** @type {number[]} */
  const scripts = [];
  let frames = 0;
  let lateOnes = 0;

  /** @param {number} gap @param {number} script */
  function note(gap, script) {
    gaps[frames % kept] = gap;
    scripts[frames % kept] = script;
    frames++;
    if (gap > late) lateOnes++;
  }

  /** @param {number[]} all */
  function of(all) {
    const sorted = [...all].sort((a, b) => a - b);
    /** @param {number} q */
    const at = (q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? 0;
    return { p50: at(0.5), p95: at(0.95), max: at(1) };
  }

  return { note, read: () => ({ frames, late: lateOnes, gap: of(gaps), script: of(scripts) }) };
}
