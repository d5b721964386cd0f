// The cost: what the page's frames take, for those who want to know whether it keeps up.

const kept = 600; // frames
const late = 17; // ms from one frame to the next, and more: one was missed on a screen of sixty a second

// newCost returns {note(gap, script), read()}: gap is the time since the frame before, script what was computed since, in ms.
export function newCost() {
  const gaps = new Float32Array(kept);
  const scripts = new Float32Array(kept);
  let n = 0;
  let lateOnes = 0;

  function note(gap, script) {
    gaps[n % kept] = gap;
    scripts[n % kept] = script;
    n++;
    if (gap > late) lateOnes++;
  }

  const at = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? 0;

  // read tells of the last frames: the middle, the 95th percentile and the longest, and how many of all frames came late.
  function read() {
    const of = (all) => {
      const sorted = [...all.subarray(0, Math.min(n, kept))].sort((a, b) => a - b);
      return { p50: at(sorted, 0.5), p95: at(sorted, 0.95), max: sorted.at(-1) ?? 0 };
    };
    return { frames: n, late: lateOnes, gap: of(gaps), script: of(scripts) };
  }

  return { note, read };
}
