// Shares: how a goroutine spends its time. At work, held up by another one, idle: of the last second of the log.

const period = 1e9; // ns of the log that a share is of
const width = 1e8; // of one bucket
const buckets = period / width;

// newShare returns {begin(t), end(t), stop(t), go(t), of(now)}: the work begins and ends, and within it another one
// stops the goroutine and lets it go on. of tells {busy, held}, each between 0 and 1.
export function newShare() {
  const busy = new Float64Array(buckets);
  const held = new Float64Array(buckets);
  let newest = 0; // the bucket that time has reached, counted from the beginning
  let begun = 0;
  let stopped = 0;

  // reach empties the buckets that time has passed since.
  function reach(t) {
    const now = Math.floor(t / width);
    for (let n = Math.max(newest + 1, now - buckets + 1); n <= now; n++) busy[n % buckets] = held[n % buckets] = 0;
    newest = Math.max(newest, now);
  }

  // add spreads a span over the buckets it lies in.
  function add(sums, from, to) {
    for (let t = Math.max(from, to - period); t < to; ) {
      const n = Math.floor(t / width);
      const end = Math.min(to, (n + 1) * width);
      if (n > newest - buckets) sums[n % buckets] += end - t;
      t = end;
    }
  }

  function end(t) {
    reach(t);
    if (begun) add(busy, begun, t);
    begun = 0;
  }

  function go(t) {
    reach(t);
    if (stopped) add(held, stopped, t);
    stopped = 0;
  }

  function of(now) {
    reach(now);
    const open = (from) => (from ? Math.min(period, now - from) : 0);
    const sum = (sums, from) => Math.min(1, (sums.reduce((a, b) => a + b, 0) + open(from)) / period);
    const stop = sum(held, stopped);
    return { held: stop, busy: Math.max(0, sum(busy, begun) - stop) };
  }

  return { end, go, of, begin: (t) => (begun = t), stop: (t) => (stopped = t) };
}

// showShare draws a share into three bars: the whole, what is work, what is held up.
export function showShare([track, work, stop], { busy, held }) {
  const full = Number(track.getAttribute("width"));
  const w = busy > 0 ? Math.max(1.5, busy * full) : 0;
  const h = held > 0 ? Math.max(1.5, held * full) : 0;
  work.setAttribute("width", w.toFixed(1));
  stop.setAttribute("width", h.toFixed(1));
  stop.setAttribute("x", (Number(track.getAttribute("x")) + w).toFixed(1));
}

// shareWords says a share in words.
export function shareWords({ busy, held }) {
  return `${percent(busy)} at work, ${percent(held)} held up, ${percent(Math.max(0, 1 - busy - held))} idle`;
}

function percent(share) {
  return share > 0 && share < 0.01 ? "<1 %" : `${Math.round(share * 100)} %`;
}
