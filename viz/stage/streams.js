// The flow: a stream that is too fast for tokens. Its stripes get wider and faster with the logarithm of the rate.

/**
 * @typedef {import("./plan.js").Move} Move
 * @typedef {{ point: probe.PointName, subject: string, n: number }} Count
 */

// The period is long, because no viewer follows a single stripe, and with few cores the pipeline needs the CPU more.
export const flowPeriod = navigator.hardwareConcurrency > 2 ? 50 : 150; // ms between two drawings
const stripe = 24; // units from one stripe to the next
const fastest = (0.45 * stripe) / flowPeriod; // units a millisecond; faster stripes would seem to run backwards
const second = 1000; // ms
const apart = 100; // the minimum ms between two readings of the counters

// once lists the points whose records all take one way. The list each has the points with a way for each subject.
const once = /** @type {probe.PointName[]} */ (["TxnCommitted", "Etcd3IncomingSent", "Etcd3ResultSent", "RingAppend",
  "StoreUpdate", "IncomingSent", "IncomingReceived"]);
const each = /** @type {probe.PointName[]} */ (["InputSent", "ResultSent", "FrameWritten", "FrameDecoded",
  "ReflectorReceived", "FIFOAdded", "IndexerUpdated", "AddReceived"]);
// some stands for a record of any change: its version is above all of etcd's, and its args make every route draw a way.
const some = { seq: 0, t: 0, key: "some/change", rv: "9".repeat(20), args: [Infinity, 1, 1] };

export class Flow {
  /** @param {import("./plan.js").Planner} planner */
  constructor(planner) {
    this.planner = planner;
    /** @type {{ at: number, counts: Map<string, Count> }[]} */
    this.looks = []; // the readings of the last second, oldest first
    this.drawnAt = 0;
    this.travelled = 0; // ms that the stripes have moved
  }

  clear() { this.looks.length = 0; }

  // look reads the counters of a resource. Their growth is the number of tokens that have passed.
  /** @param {fold.Resource} res @param {number} now */
  look(res, now) {
    const { looks } = this;
    while (looks.length > 0 && looks[0].at < now - second - apart) looks.shift();
    if (now - (looks.at(-1)?.at ?? -Infinity) < apart) return;
    /** @type {Map<string, Count>} */
    const counts = new Map(once.map((point) => [point, { point, subject: "", n: res.points[point] ?? 0 }]));
    for (const [subject, s] of Object.entries(res.subjects)) {
      for (const point of each) {
        // a listener takes a notification at once, or pushes it behind others; both are drawn as one way
        const n = (s.counts[point] ?? 0) + (point === "AddReceived" ? s.counts.PendingPushed ?? 0 : 0);
        if (n) counts.set(`${point} ${subject}@${s.opened}`, { point, subject, n });
      }
    }
    looks.push({ at: now, counts });
  }

  // sums returns each way with the number of tokens on it in the last second, by name.
  /** @param {number} now */
  sums(now) {
    /** @type {Map<string, { n: number, way: Move }>} */
    const all = new Map();
    const [first, last] = [this.looks[0], this.looks.at(-1)];
    if (!last || now - last.at > second) return all;
    for (const [id, { point, subject, n }] of last.counts) {
      const passed = n - (first.counts.get(id)?.n ?? 0);
      const [way] = passed > 0 ? this.planner.plan([{ ...some, point, subject }]).moves : [];
      const name = `${point} ${way?.x} ${way?.y}`; // all watchers without a lane share one way
      if (point === "TxnCommitted") way?.legs.shift(); // leaves out the leg inside the HTTP station
      if (way?.legs.length) all.set(name, { n: (all.get(name)?.n ?? 0) + passed, way });
    }
    return all;
  }

  /** @param {number} now @param {import("./paint.js").Brush} brush @param {boolean} still */
  draw(now, brush, still) {
    this.travelled += Math.min(100, now - this.drawnAt);
    this.drawnAt = now;
    for (const { n, way } of this.sums(now).values()) this.drawWay(n, way, brush, still);
  }

  /** @param {number} n @param {Move} way @param {import("./paint.js").Brush} brush @param {boolean} still */
  drawWay(n, { legs }, brush, still) {
    const { ctx, colours } = brush;
    const speed = fastest * Math.min(1, 0.2 + 0.2 * Math.log10(1 + n));
    const lines = legs.map(({ bends, to }) => (bends ? `C${bends} ${to}` : `L${to}`));
    const path = new Path2D(`M${legs[0].from}${lines.join("")}`);
    ctx.save();
    Object.assign(ctx, { strokeStyle: colours.moving, lineWidth: Math.min(12, 1.5 + 2.2 * Math.log10(1 + n)) });
    Object.assign(ctx, { lineCap: "butt", globalAlpha: 0.28, textAlign: "center" });
    ctx.stroke(path);
    Object.assign(ctx, { globalAlpha: 0.95, lineDashOffset: still ? 0 : -((this.travelled * speed) % stripe) });
    ctx.setLineDash([stripe / 2, stripe / 2]);
    ctx.stroke(path);
    ctx.globalAlpha = 1;
    ctx.setLineDash([]);
    const level = legs.findLast(({ from: a, to: b }) => Math.abs(b[0] - a[0]) >= 60 && Math.abs(b[1] - a[1]) <= 30);
    if (level) brush.write(short(n), (level.from[0] + level.to[0]) / 2, (level.from[1] + level.to[1]) / 2);
    ctx.restore();
  }
}

/** @param {number} n */
const short = (n) => (n < 1000 ? `${n}/s` : `${(n / 1000).toFixed(n < 10000 ? 1 : 0)}k/s`);
